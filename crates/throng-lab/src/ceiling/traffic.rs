//! The loads of a calibration: what their users do, for how long.

use std::time::Duration;

use throng_base::units::show_duration;
use throng_load::scenario::Protocol;

use crate::measure::Window;
use crate::test_bed::{CHANNELS, TCP};

/// What the users of a scenario say, from the least to the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Traffic {
    /// Nothing.
    #[default]
    Silent,
    /// Messages that nobody answers, or whose answers nobody waits for.
    Sent,
    /// Messages that are answered.
    Answered,
}

/// One load.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) target: &'static str,
    pub(super) scenario: String,
    /// The longest that it should take.
    pub(super) seconds: u64,
}

/// All loads of one calibration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    protocol: Protocol,
    traffic: Traffic,
    length: Duration,
}

impl Parts {
    pub(super) fn new(protocol: Protocol, talk: Traffic, length: Duration) -> Self {
        Self { protocol, traffic: talk, length }
    }

    /// The handler of the peer: what does least with what comes.
    pub(super) fn handler(&self) -> &'static str {
        match (self.protocol, self.traffic) {
            (Protocol::Tcp, Traffic::Sent) => "hold",
            (Protocol::Tcp, _) => "echo",
            (Protocol::Ws | Protocol::Phoenix, _) => "channels",
        }
    }

    /// Users who connect, go, and come back at once.
    pub(super) fn connects(&self, users: u64) -> Part {
        let hold = show_duration(self.busy_for());
        let over = show_duration(ARRIVING);
        let load = format!("[{{ramp: {{to: {users}, over: {over}}}}}, {{hold: {{for: {hold}}}}}]");
        self.part("connects", &load, &one_class(&self.user("")))
    }

    /// Users who talk without a pause, if they talk.
    pub(super) fn messages(&self, users: u64) -> Option<Part> {
        let exchange = match (self.protocol, self.traffic) {
            (_, Traffic::Silent) => return None,
            (Protocol::Tcp, Traffic::Sent) => "send: x",
            (Protocol::Tcp, Traffic::Answered) => "{send: x}, {expect: x}",
            (Protocol::Ws, Traffic::Sent) => HEARTBEAT,
            (Protocol::Ws, Traffic::Answered) => HEARTBEAT_ANSWERED,
            (Protocol::Phoenix, _) => PUSH,
        };
        let span = show_duration(ARRIVING + self.busy_for());
        let talking = format!("{{repeat: {{for: {span}, do: [{exchange}]}}}}");
        let users_do = one_class(&self.user(&talking));
        Some(self.part("messages", &arrivals(users, ARRIVING), &users_do))
    }

    /// Users who come at `per_s` and stay a while. A few of them have a timer that is due again and again; the others have one each, so
    /// that what they take is a user's memory and not a timer's.
    pub(super) fn users(&self, per_s: f64, most: u64) -> Part {
        let over = self.share(COMING_SHARE);
        let users = ((per_s * over.as_secs_f64()) as u64).clamp(1, most.max(1));
        let span = show_duration(over + QUIET);
        let staying = self.user(&format!("wait: {span}"));
        let period = show_duration(TICK);
        let ticking = format!("{{every: {{period: {period}, for: {span}, do: [{{wait: 1ms}}]}}}}");
        let ticking = self.user(&ticking);
        let classes = format!(
            "users:\n  staying: {{weight: {STAYING_FOR_EACH_TICKING}, {staying}}}\n  ticking: {{{ticking}}}\n"
        );
        self.part("users", &arrivals(users, over), &classes)
    }

    /// When the first two loads are as busy as they get: everybody has come and nobody has gone.
    pub(super) fn busy_window(&self) -> Window {
        let arrived_ms = ARRIVING.as_millis() as u64;
        let until = ARRIVING + self.busy_for();
        // An interval ends a little after its boundary, and the first begins before the load does.
        let until_ms = until.as_millis() as u64 + arrived_ms / 2;
        Window { from_ms: 3 * arrived_ms / 2, until_ms, span_ms_least: arrived_ms / 2 }
    }

    fn part(&self, name: &'static str, load: &str, users: &str) -> Part {
        let (protocol, target) = match self.protocol {
            Protocol::Tcp => ("tcp", TCP),
            Protocol::Ws => ("ws", CHANNELS_V2),
            Protocol::Phoenix => ("phoenix", CHANNELS),
        };
        // The target is known only when the peer listens, and is then given beside the scenario.
        let nowhere = target.replace('@', "127.0.0.1:1");
        let scenario = format!("target: {nowhere}\nprotocol: {protocol}\nload: {load}\n{users}\n");
        Part { name, target, scenario, seconds: self.length.as_secs() + 1 }
    }

    /// A user who connects, takes these steps, and is gone.
    fn user(&self, steps: &str) -> String {
        let join = match self.protocol {
            Protocol::Tcp | Protocol::Ws => "",
            Protocol::Phoenix => JOIN,
        };
        let all = ["connect", join, steps, "close: reset"];
        let all: Vec<_> = all.into_iter().filter(|step| !step.is_empty()).collect();
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

/// Users who all do the same.
fn one_class(user: &str) -> String {
    format!("users: {{user: {{{user}}}}}")
}

/// Users who come once, evenly.
fn arrivals(users: u64, over: Duration) -> String {
    // The rate is a whole number a second, at least one; `most` keeps it to the users.
    let per_s = (users as f64 / over.as_secs_f64()).ceil().max(1.0);
    let over = show_duration(over);
    format!("[{{arrivals: {{rate: {per_s:.0}/s, for: {over}, most: {users}, spacing: even}}}}]")
}

/// V2 of the protocol, in which a heartbeat is the shortest message that is answered.
const CHANNELS_V2: &str = "ws://@/socket/websocket?vsn=2.0.0";
const HEARTBEAT: &str = r#"send: '[null,"1","phoenix","heartbeat",{}]'"#;
const HEARTBEAT_ANSWERED: &str =
    r#"{send: '[null,"1","phoenix","heartbeat",{}]'}, {expect: {contains: '"ok"'}}"#;
/// A topic of its own for each user: nobody hears of it.
const JOIN: &str = r#"join: {topic: "rooms:${user.id}"}"#;
const PUSH: &str = r#"push: {topic: "rooms:${user.id}", event: echo, payload: {n: 1}}"#;

/// How often the timer of a few users is due, …
const TICK: Duration = Duration::from_millis(10);
/// … and how many others there are for each of them.
const STAYING_FOR_EACH_TICKING: u32 = 99;
/// How long users take to come who are to be busy afterwards.
const ARRIVING: Duration = Duration::from_millis(100);
/// Shares of the whole length: how long the busy are busy, …
const BUSY_SHARE: f64 = 0.2;
/// which leaves two whole intervals even where the recorder of a machine with much to do is late, …
const BUSY_LEAST: Duration = Duration::from_millis(400);
/// … and over which time those come who stay for a while.
const COMING_SHARE: f64 = 0.25;
/// How long all of them are there: two intervals, of which at least one lies within it.
const QUIET: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use throng_load::scenario::Scenario;

    use super::*;

    const SECONDS: Duration = Duration::from_secs(2);

    #[test]
    fn every_part_is_a_scenario() {
        for protocol in [Protocol::Tcp, Protocol::Ws, Protocol::Phoenix] {
            for talk in [Traffic::Silent, Traffic::Sent, Traffic::Answered] {
                for length in [Duration::from_millis(100), SECONDS, Duration::from_secs(60)] {
                    let parts = Parts::new(protocol, talk, length);
                    let all = [parts.connects(1), parts.users(0.3, 9), parts.users(1e6, 20_000)];
                    for part in all.into_iter().chain(parts.messages(1_000)) {
                        if let Err(mistakes) = Scenario::parse(&part.scenario, part.name) {
                            panic!("{}", mistakes.render(false));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn users_who_say_nothing_are_not_measured_saying_something() {
        assert!(Parts::new(Protocol::Tcp, Traffic::Silent, SECONDS).messages(10).is_none());
        assert!(Parts::new(Protocol::Ws, Traffic::Sent, SECONDS).messages(10).is_some());
    }

    #[test]
    fn no_more_users_come_than_there_is_room_for() {
        let part = Parts::new(Protocol::Tcp, Traffic::Silent, SECONDS).users(50_000.0, 800);
        assert!(part.scenario.contains("most: 800,"), "{}", part.scenario);
    }

    #[test]
    fn all_of_it_takes_about_as_long_as_asked_for() {
        // Users go over as long a time as they come.
        let shares = 2.0 * BUSY_SHARE + 2.0 * COMING_SHARE;
        let fixed = (2 * ARRIVING + QUIET).as_secs_f64() / SECONDS.as_secs_f64();
        assert!((0.9..=1.2).contains(&(shares + fixed)), "{}", shares + fixed);
    }
}
