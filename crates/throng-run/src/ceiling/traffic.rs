//! The loads of a calibration.

use std::time::Duration;

use throng_base::units::show_duration;
use throng_load::program::Traffic;
use throng_load::protocols::{CalibrationMessages, CalibrationTraffic, Protocol};

use crate::rates::Window;

/// One load of a calibration.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) target: String,
    pub(super) scenario: String,
    /// The longest that the load should take.
    pub(super) seconds: u64,
}

/// All loads of one calibration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    protocol: Protocol,
    traffic: Traffic,
    length: Duration,
    over_tls: bool,
}

impl Parts {
    pub(super) fn new(
        protocol: Protocol,
        traffic: Traffic,
        length: Duration,
        over_tls: bool,
    ) -> Self {
        Self { protocol, traffic, length, over_tls }
    }

    /// Returns the kind of the peer: the one that does least with a message.
    pub(super) fn handler(&self) -> &'static str {
        self.messages_of_traffic().server
    }

    fn messages_of_traffic(&self) -> &'static CalibrationMessages {
        let calibration = &self.protocol.row().calibration;
        match self.traffic {
            Traffic::Sent => &calibration.sent,
            Traffic::Silent | Traffic::Answered => &calibration.answered,
        }
    }

    /// Returns the load of users that connect, close, and reconnect at once: over TLS with full
    /// handshakes.
    pub(super) fn connects(&self, users: u64) -> Part {
        self.connects_that("connects", users, "0%")
    }

    /// Returns the same load over TLS, with handshakes that resume sessions.
    pub(super) fn resumed_connects(&self, users: u64) -> Part {
        self.connects_that("resumed", users, "100%")
    }

    fn connects_that(&self, name: &'static str, users: u64, resume: &str) -> Part {
        let hold = show_duration(self.busy_for());
        let over = show_duration(ARRIVING);
        let load = format!("[{{ramp: {{to: {users}, over: {over}}}}}, {{hold: {{for: {hold}}}}}]");
        self.part_with(name, &load, &one_class(&self.user("")), resume)
    }

    /// Returns the load of users that send messages without a pause; none for silent users.
    pub(super) fn messages(&self, users: u64) -> Option<Part> {
        if self.traffic == Traffic::Silent {
            return None;
        }
        let exchange = self.messages_of_traffic().steps;
        let span = show_duration(ARRIVING + self.busy_for());
        let sending = format!("{{repeat: {{for: {span}, do: [{exchange}]}}}}");
        let users_do = one_class(&self.user(&sending));
        Some(self.part("messages", &arrivals(users, ARRIVING), &users_do))
    }

    /// Returns the load of users that arrive at `per_s` and stay a while. A few of them have a
    /// timer that is due again and again. The others have one timer each, so that their memory is
    /// a user's and not a timer's.
    pub(super) fn users(&self, per_s: f64, most: u64) -> Part {
        let over = self.share(COMING_SHARE);
        let users = ((per_s * over.as_secs_f64()) as u64).clamp(1, most.max(1));
        let span = show_duration(over + QUIET);
        let staying = self.user(&format!("wait: {span}"));
        let period = show_duration(TICK);
        let ticking = format!("{{every: {{period: {period}, for: {span}, do: [{{wait: 1ms}}]}}}}");
        let ticking = self.user(&ticking);
        let classes = format!(
            "users:\n  staying: {{weight: {STAYING_PER_TICKING}, {staying}}}\n  \
             ticking: {{{ticking}}}\n"
        );
        self.part("users", &arrivals(users, over), &classes)
    }

    /// Returns the window in which the first two loads are at their height: all users have arrived
    /// and none has left.
    pub(super) fn busy_window(&self) -> Window {
        let arrived_ms = ARRIVING.as_millis() as u64;
        let until = ARRIVING + self.busy_for();
        // An interval ends a little after its boundary, and the first starts before the load.
        let until_ms = until.as_millis() as u64 + arrived_ms / 2;
        Window { from_ms: 3 * arrived_ms / 2, until_ms, span_ms_least: arrived_ms / 2 }
    }

    fn part(&self, name: &'static str, load: &str, users: &str) -> Part {
        self.part_with(name, load, users, "100%")
    }

    /// Returns a load. `resume` is the share of its connects that resume a session of TLS.
    fn part_with(&self, name: &'static str, load: &str, users: &str, resume: &str) -> Part {
        let CalibrationTraffic { protocol, target, .. } = self.protocol.row().calibration;
        let mut target = target.to_owned();
        let mut tls = String::new();
        if self.over_tls {
            let scheme = self.protocol.scheme();
            target = target.replacen(scheme.as_str(), scheme.over_tls(), 1);
            // The signature of the server is verified all the same.
            tls = format!("tls: {{verify: none, resume: {resume}}}\n");
        }
        // The target is known only when the peer listens; the command line then names it.
        let nowhere = target.replace('@', "127.0.0.1:1");
        let scenario =
            format!("target: {nowhere}\n{tls}protocol: {protocol}\nload: {load}\n{users}\n");
        Part { name, target, scenario, seconds: self.length.as_secs() + 1 }
    }

    /// Returns a user that connects, runs `steps`, and closes.
    fn user(&self, steps: &str) -> String {
        let begin = self.protocol.row().calibration.begin;
        let all = begin.iter().copied().chain([steps, "close: reset"]);
        let all: Vec<_> = all.filter(|step| !step.is_empty()).collect();
        format!("user: [{}], on_error: stop", all.join(", "))
    }

    fn busy_for(&self) -> Duration {
        self.share(BUSY_SHARE).max(BUSY_LEAST)
    }

    fn share(&self, share: f64) -> Duration {
        let ms = (self.length.as_secs_f64() * share * 1000.0).round();
        Duration::from_millis((ms as u64).max(1))
    }
}

/// Returns one class of users.
fn one_class(user: &str) -> String {
    format!("users: {{user: {{{user}}}}}")
}

/// Returns a phase in which `users` arrive evenly.
fn arrivals(users: u64, over: Duration) -> String {
    // The rate is a whole number per second, at least one; `most` limits the users.
    let per_s = (users as f64 / over.as_secs_f64()).ceil().max(1.0);
    let over = show_duration(over);
    format!("[{{arrivals: {{rate: {per_s:.0}/s, for: {over}, most: {users}, spacing: even}}}}]")
}

/// The period of the timer that a few users have.
const TICK: Duration = Duration::from_millis(10);
/// The number of other users for each user with such a timer.
const STAYING_PER_TICKING: u32 = 99;
/// The time in which the users of a busy load arrive.
const ARRIVING: Duration = Duration::from_millis(100);
/// The share of the whole length for each busy load.
const BUSY_SHARE: f64 = 0.2;
/// The least time of a busy load. It has two whole intervals even where a busy machine makes the
/// recorder late.
const BUSY_LEAST: Duration = Duration::from_millis(400);
/// The share of the whole length in which the users that stay arrive.
const COMING_SHARE: f64 = 0.25;
/// The time in which all of them are connected. At least one whole interval lies within it.
const QUIET: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use throng_load::scenario::Scenario;

    use super::*;

    const SECONDS: Duration = Duration::from_secs(2);

    #[test]
    fn every_part_is_a_scenario() {
        for protocol in Protocol::ALL.iter().copied() {
            for traffic in [Traffic::Silent, Traffic::Sent, Traffic::Answered] {
                for (length, over_tls) in
                    [(Duration::from_millis(100), true), (SECONDS, false), (SECONDS * 30, true)]
                {
                    let parts = Parts::new(protocol, traffic, length, over_tls);
                    let resumed = over_tls.then(|| parts.resumed_connects(1));
                    let all = [parts.connects(1), parts.users(0.3, 9), parts.users(1e6, 20_000)];
                    let all = all.into_iter().chain(resumed);
                    for part in all.chain(parts.messages(1_000)) {
                        assert_eq!(part.scenario.contains("tls:"), over_tls);
                        if let Err(mistakes) = Scenario::parse(&part.scenario, part.name) {
                            panic!("{}", mistakes.render(false));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn silent_users_have_no_load_of_messages() {
        assert!(Parts::new(Protocol::Tcp, Traffic::Silent, SECONDS, false).messages(10).is_none());
        assert!(Parts::new(Protocol::Ws, Traffic::Sent, SECONDS, false).messages(10).is_some());
    }

    #[test]
    fn no_more_users_arrive_than_there_is_room_for() {
        let parts = Parts::new(Protocol::Tcp, Traffic::Silent, SECONDS, false);
        let part = parts.users(50_000.0, 800);
        assert!(part.scenario.contains("most: 800,"), "{}", part.scenario);
    }

    #[test]
    fn all_of_it_takes_about_as_long_as_asked_for() {
        // Users leave over the same time as they arrive.
        let shares = 2.0 * BUSY_SHARE + 2.0 * COMING_SHARE;
        let fixed = (2 * ARRIVING + QUIET).as_secs_f64() / SECONDS.as_secs_f64();
        assert!((0.9..=1.2).contains(&(shares + fixed)), "{}", shares + fixed);
    }
}
