//! The server begins messages over WebSockets, and does not end them; or the users hold more of
//! what the server sent than their cores may.

use throng_measure::{ErrorKind, Finding, LoadCounters, Severity, Side};
use throng_report::render::{bytes, count};

use super::{Rule, RuleTrait};
use crate::counted::counted;
use crate::impact::FAILURES_ONE_IN;
use crate::run_view::{Growth, Peak, RunView};

pub(super) const RULE: Rule = Rule::new("messages_unfinished", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::GoesOn])
    .explains(&[
        "answers_incomplete",
        "answers_missing",
        "never_answers",
        "server_closes_early",
        "server_slow",
        "server_stalled",
        "wrong_answers",
    ]);

/// The generator knows on how many connections a message has begun and not ended. A server with
/// large messages has many of them at any moment, and ends as many all the time.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let refused = run.load_growth("held_refused", |counters| counters.held_refused);
    let incomplete = incomplete(run);
    let held = run.peak_of("load.counters.held_bytes", |sample| {
        Some(sample.load()?.counters.held_bytes as i64)
    });
    let unended = Unended::of(run);
    let bytes_held = held.as_ref().map_or(0, |held| held.value);
    let (side, text, remedy) = match (&unended, &incomplete) {
        (Some(unended), _) => (Side::Server, unended.sentence(bytes_held), REMEDY),
        (None, Some(growth)) => (Side::Server, gave_up(growth), REMEDY),
        (None, None) if refused.is_some() => (Side::Client, held_too_much(bytes_held), HELD_REMEDY),
        (None, None) => return None,
    };
    let refusals = refused.as_ref().map_or_else(String::new, |refused| {
        let users = counted(refused.by(), "time a user was", "times a user was");
        format!(" {users} refused more memory (held_bytes_max).")
    });
    let severity = match (&incomplete, &refused) {
        (None, None) => Severity::Noted,
        _ => Severity::Stopped,
    };
    let finding = Finding::new(RULE.id, side, text + &refusals).with_severity(severity);
    let finding = finding.with_evidence(unended.map(|unended| unended.peak));
    let finding = finding.with_evidence(held.filter(|held| held.value > 0));
    Some(finding.with_evidence(incomplete).with_evidence(refused).remedied_by(remedy))
}

/// Returns the growth of messages that users gave up on, if most failures are such.
fn incomplete(run: &RunView<'_>) -> Option<Growth> {
    let growth = run.load_growth("messages_incomplete", |counters| counters.messages_incomplete)?;
    let ended: Vec<_> = KINDS.iter().filter_map(|kind| run.errors(kind)).collect();
    let all = run.counted().map_or(0, |load| load.counters.messages_received);
    let is_rare = growth.by().saturating_mul(FAILURES_ONE_IN) < all;
    let is_most = growth.by().saturating_mul(2) >= Growth::total(&ended);
    (is_most && (!is_rare || run.thresholds.no_errors())).then_some(growth)
}

fn gave_up(growth: &Growth) -> String {
    let [began, each] = match growth.by() {
        1 => ["a message", "A part of it"],
        _ => ["messages", "A part of each"],
    };
    let many = match growth.by() {
        1 => String::new(),
        many => format!("{} ", count(many as f64)),
    };
    format!(
        "The server began {many}{began} and did not end {}. {each} had arrived when the user gave \
         up, or the connection ended.",
        if growth.by() == 1 { "it" } else { "them" }
    )
}

fn held_too_much(bytes_held: i64) -> String {
    format!(
        "The users held all that their cores may hold of what the server sent: {} of messages that \
         no step had read, of parts of answers, and of stored values.",
        bytes(bytes_held as f64)
    )
}

/// Messages that a server has begun and does not end.
struct Unended {
    peak: Peak,
    /// Time for which at least half as many were not complete.
    span_ms: u64,
    /// Messages that ended in that time.
    ended: u64,
}

impl Unended {
    /// Looks at the time around the peak in which at least half as many messages were unfinished.
    fn of(run: &RunView<'_>) -> Option<Self> {
        let name = "load.counters.messages_unfinished";
        let peak =
            run.peak_of(name, |sample| Some(sample.load()?.counters.messages_unfinished as i64))?;
        let half = (peak.value as u64).div_ceil(2).max(1);
        let counters: Vec<(u64, &LoadCounters)> = run
            .samples()
            .iter()
            .filter_map(|sample| Some((sample.interval.at_ms, &sample.load()?.counters)))
            .collect();
        let is_within =
            |(_, counters): &&(u64, &LoadCounters)| counters.messages_unfinished >= half;
        let at = counters.iter().position(|(_, it)| it.messages_unfinished == peak.value as u64)?;
        let first = counters[..=at].iter().rev().take_while(is_within).last()?;
        let last = counters[at..].iter().take_while(is_within).last()?;
        let (span_ms, ended) =
            (last.0 - first.0, last.1.messages_received.saturating_sub(first.1.messages_received));
        let goes_on = span_ms >= SPAN_MIN_MS && ended.saturating_mul(2) < half;
        goes_on.then_some(Self { peak, span_ms, ended })
    }

    fn sentence(&self, bytes_held: i64) -> String {
        let ended = match self.ended {
            0 => "none ended".to_owned(),
            ended => format!("{} ended", counted(ended, "message", "messages")),
        };
        format!(
            "The server begins messages and does not end them: {} held {} of them, and in {} s \
             {ended}.",
            counted(self.peak.value as u64, "user", "users"),
            bytes(bytes_held as f64),
            count(self.span_ms as f64 / 1000.0),
        )
    }
}

/// The kinds of errors that end a wait, or a connection, before a message is complete.
const KINDS: [ErrorKind; 8] = [
    ErrorKind::ExpectTimeout,
    ErrorKind::JoinTimeout,
    ErrorKind::PushTimeout,
    ErrorKind::LeaveTimeout,
    ErrorKind::HeartbeatTimeout,
    ErrorKind::ClosedByPeer,
    ErrorKind::ResetByPeer,
    ErrorKind::WebSocketTooLarge,
];
/// The shortest time that counts: a large message takes seconds on a slow network.
const SPAN_MIN_MS: u64 = 5_000;

const REMEDY: &str = "find where the server, or a proxy before it, begins a message (a frame, or a \
                      fragment without FIN) and does not write the rest of it";
const HELD_REMEDY: &str = "let the steps read what the server sends sooner, or store less of it; \
                           if the machine has the memory, set `limits: {held_bytes_max: 256MiB}`";

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;

    /// A run over WebSockets with 60 unfinished messages from the third second on. So many messages
    /// end in each second.
    fn unfinished(ended_per_s: u64) -> Run {
        Run::quiet().loaded(move |load, second| {
            load.counters.messages_received = ended_per_s * second;
            if second >= 3 {
                load.counters.messages_unfinished = 60;
                load.counters.held_bytes = (second * 90) << 20;
            }
        })
    }

    #[test]
    fn messages_that_do_not_end_are_noted_even_without_an_error() {
        let found = unfinished(0).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server begins messages and does not end them: 60 users held 900 MiB of them, and \
             in 7 s none ended"
        );
        assert_eq!((found.side, found.severity), (Side::Server, Severity::Noted));
    }

    #[test]
    fn users_that_were_refused_memory_are_counted() {
        let run = unfinished(0).loaded(|load, second| {
            load.counters.held_refused = 10 * second.saturating_sub(4);
            load.counters.messages_incomplete = 10 * second.saturating_sub(4);
            load.errors.add(ErrorKind::WebSocketTooLarge, 10 * second.saturating_sub(4));
        });
        let found = run.speaks(&RULE);
        assert!(found.text.contains("60 times a user was refused more memory"), "{found}");
        assert_eq!(found.severity, Severity::Stopped);
        run.check_all(&["messages_unfinished", "wrong_answers"]);
    }

    #[test]
    fn a_server_that_ends_its_large_messages_is_healthy() {
        unfinished(20).is_silent(&RULE);
        unfinished(1_000).is_silent(&RULE);
        // For a few seconds only.
        let short = |load: &mut throng_measure::LoadInterval, second| {
            load.counters.messages_unfinished = if (3..7).contains(&second) { 60 } else { 0 };
        };
        Run::quiet().loaded(short).is_silent(&RULE);
    }

    #[test]
    fn answers_that_stop_in_the_middle_are_no_slow_server() {
        let failing = |incomplete: u64| {
            Run::quiet().loaded(move |load, second| {
                load.counters.messages_received = 960 * second;
                load.counters.messages_incomplete = incomplete * second.saturating_sub(1);
                load.errors.add(ErrorKind::ExpectTimeout, 40 * second.saturating_sub(1));
            })
        };
        let found = failing(40).speaks(&RULE);
        assert_eq!(found.first_sentence(), "The server began 360 messages and did not end them");
        failing(19).is_silent(&RULE);
        failing(0).is_silent(&RULE);
    }

    #[test]
    fn users_that_keep_too_much_are_none_of_the_server() {
        let run = Run::quiet().loaded(|load, second| {
            load.counters.held_bytes = 64 << 20;
            load.counters.held_refused = 5 * second.saturating_sub(1);
            load.errors.add(ErrorKind::HeldOverflow, 5 * second.saturating_sub(1));
        });
        let found = run.speaks(&RULE);
        assert!(found.text.starts_with("The users held all that their cores may hold"), "{found}");
        assert!(found.text.contains("64.0 MiB"), "{found}");
        assert_eq!(found.side, Side::Client);
    }
}
