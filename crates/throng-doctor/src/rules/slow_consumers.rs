//! A client or a server does not read the data that it is sent.

use throng_measure::{
    Endpoint, ErrorKind, Finding, Metric, ServerCounters, ServerSnapshot, Severity, Side,
};
use throng_report::render::bytes;

use super::accept_backlog::open;
use super::{Rule, RuleTrait};
use crate::counted::counted as with_word;
use crate::first_error::FirstError;
use crate::run_view::{Growth, Peak, RunView};

pub(super) const RULE: Rule = Rule::new("slow_consumers", find)
    .with(&[RuleTrait::LacksCpu])
    .explains(&["server_closes_early", "server_slow"]);

/// Looks for users that read more slowly than the server sends, or a server that reads more slowly
/// than they send.
fn find(run: &RunView<'_>) -> Option<Finding> {
    match users(run) {
        // A few slow users are no reason to stop looking.
        few @ Some(Finding { severity: Severity::Noted, .. }) => server(run).or(few),
        users => users.or_else(|| server(run)),
    }
}

/// Looks for data that a throng server could not deliver.
fn users(run: &RunView<'_>) -> Option<Finding> {
    let counted = |name: &str, of: fn(&ServerCounters) -> u64| {
        run.server_growth(&format!("server.counters.{name}"), |server| of(&server.counters))
    };
    let in_core = |name: &str, of: fn(&ServerSnapshot) -> u64| {
        run.server_growth(&format!("server.core.{name}"), of)
    };
    let closed = [
        counted("slow_closed", |counters| counters.slow_closed),
        in_core("pending_overflows", |server| server.core.pending_overflows),
    ];
    let lost = [
        counted("dropped_newest", |counters| counters.dropped_newest),
        counted("dropped_oldest", |counters| counters.dropped_oldest),
        counted("replaced", |counters| counters.replaced),
    ];
    let (connections, frames) =
        (Growth::total(closed.iter().flatten()), Growth::total(lost.iter().flatten()));
    let unread = users_unread(run);
    let what = match (connections, frames) {
        (0, 0) => return unread.map(|unread| left_unread(run, unread)),
        (0, frames) => {
            format!(
                "{} dropped",
                with_word(frames, "message for them was", "messages for them were")
            )
        }
        (connections, 0) => format!("{} disconnected", with_word(connections, "was", "were")),
        (connections, frames) => format!(
            "{} disconnected, and {} dropped",
            with_word(connections, "was", "were"),
            with_word(frames, "message was", "messages were")
        ),
    };
    let fanned_out = counted("fanned_out", |counters| counters.fanned_out);
    let held = run.samples().iter().filter_map(open).max().unwrap_or(0);
    // A policy exists to drop what is too much: only more than a few drops stop anything.
    let is_many = unread.is_some()
        || frames > 0 && frames.saturating_mul(DROPPED_ONE_IN) >= Growth::total(&fanned_out)
        || connections > 0 && connections.saturating_mul(CLOSED_ONE_IN) >= held;
    let queued = counted("fanout_queued", |counters| counters.fanout_queued);
    let pending = pending(run, "server.core.pending_bytes", |server| server.core.pending_bytes);
    let waited = pending.as_ref().map_or_else(String::new, |pending| {
        format!(" Up to {} waited for them in the server.", bytes(pending.value as f64))
    });
    let growths = closed.into_iter().chain(lost).chain([queued, unread]).flatten();
    let finding = Finding::new(
        RULE.id,
        Side::Client,
        format!("Some clients read more slowly than the server sends to them: {what}.{waited}"),
    )
    .with_severity(if is_many { Severity::Stopped } else { Severity::Noted })
    .with_evidence(growths)
    .with_evidence(pending)
    .remedied_by(
        "make those clients read faster; or throng serve --queue for more room, --policy for what \
         to drop, or smaller or fewer messages",
    );
    Some(finding)
}

/// Returns the finding that the scenario's own users left messages unread.
fn left_unread(run: &RunView<'_>, unread: Growth) -> Finding {
    let first = FirstError::of(run, INBOX_OVERFLOW).unwrap_or_default();
    let step = match first.line {
        0 => "no step waits".to_owned(),
        line => format!("line {line} keeps them from it"),
    };
    let (text, remedy) = match first.reader_line {
        0 => (
            format!(
                "The scenario leaves what its users receive unread. More than 64 KiB arrived while \
                 {step}."
            ),
            "read it before the users wait: with `expect`, or with `receive` for what comes unasked"
                .to_owned(),
        ),
        line => (
            format!(
                "Line {line} of the scenario leaves messages unread. It reads one message and \
                 skips none, and more than 64 KiB arrived for a user while {step}."
            ),
            format!(
                "add `skip_others: true` in line {line}, or a `receive` before it for what the \
                 server sends unasked"
            ),
        ),
    };
    let finding = Finding::new(RULE.id, Side::Client, text);
    finding.with_severity(Severity::Stopped).with_evidence([unread.evidence()]).remedied_by(remedy)
}

/// Returns the growth of users whose steps did not read received messages until the inbox was full.
fn users_unread(run: &RunView<'_>) -> Option<Growth> {
    run.errors(INBOX_OVERFLOW).filter(|growth| growth.by() >= BLOCKED_MIN)
}

/// Looks for data that the generator could not send: the socket was full, and bytes piled up.
fn server(run: &RunView<'_>) -> Option<Finding> {
    let blocked = run.growth_of("load.core.sends_blocked", |sample| {
        Some(sample.load()?.core.sends_blocked as i64)
    });
    let overflows = run.errors(ErrorKind::SendOverflow);
    let pending = run
        .peak_of("load.core.pending_bytes", |sample| Some(sample.load()?.core.pending_bytes as i64))
        .filter(|peak| peak.value >= PENDING_BYTES_MIN);
    let stuck = blocked.filter(|blocked| blocked.by() >= BLOCKED_MIN).zip(pending.clone());
    if stuck.is_none() && overflows.is_none() {
        return None;
    }
    let waited = pending.map_or_else(String::new, |peak| {
        format!(": {} waited to be sent", bytes(peak.value as f64))
    });
    let finding = Finding::new(
        RULE.id,
        Side::Server,
        format!(
            "The server does not read what its clients send{waited}. Its receive buffers are full, \
             so their windows are closed and nothing can be sent to it."
        ),
    )
    .with_confidence(0.9)
    .with_evidence(
        stuck.iter().flat_map(|(blocked, pending)| [blocked.evidence(), pending.evidence()]),
    )
    .with_evidence(overflows)
    .with_evidence(run.growth(Endpoint::Server, Metric::TCPEXT_TCP_TO_ZERO_WINDOW_ADV))
    .remedied_by("find what keeps its handler from reading (a lock, a slow task), or send less");
    Some(finding)
}

/// Returns the peak of a gauge of the server, if it was above zero.
fn pending(run: &RunView<'_>, gauge: &str, of: impl Fn(&ServerSnapshot) -> u64) -> Option<Peak> {
    let peak = run.peak_of(gauge, |sample| Some(of(sample.interval.server.as_ref()?) as i64))?;
    (peak.value > 0).then_some(peak)
}

/// The error of a user that keeps no more messages.
const INBOX_OVERFLOW: ErrorKind = ErrorKind::InboxOverflow;

/// The shares, one in so many, of dropped messages and of closed connections that a policy may
/// cause.
const DROPPED_ONE_IN: u64 = 1_000;
const CLOSED_ONE_IN: u64 = 100;

/// The fewest that count: a partial send now and then is normal.
const BLOCKED_MIN: u64 = 3;

/// The fewest bytes that count: more than one message waits for longer than an instant.
const PENDING_BYTES_MIN: i64 = 64 << 10;

#[cfg(test)]
mod tests {
    use throng_measure::{ErrorExchange, RunEvent, RunEventKind};

    use super::super::fixture::Run;
    use super::*;

    fn serving(change: impl Fn(&mut ServerSnapshot, u64)) -> Run {
        Run::quiet().changed(move |interval, second| {
            let mut server = ServerSnapshot::default();
            change(&mut server, second.saturating_sub(3));
            interval.server = Some(server);
        })
    }

    #[test]
    fn users_that_lose_messages_or_their_connection_are_slow() {
        let run = serving(|server, n| {
            server.counters.slow_closed = 2 * n;
            server.counters.dropped_oldest = 300 * n;
            server.counters.fanout_queued = 900 * n;
            server.core.pending_bytes = 1 << 20;
        });
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "Some clients read more slowly than the server sends to them: 14 were disconnected, \
             and 2.1k messages were dropped"
        );
        assert_eq!((found.side, found.began_ms()), (Side::Client, Some(0)));
        assert!(found.text.contains("1.00 MiB waited"), "{found}");
    }

    #[test]
    fn a_few_drops_by_policy_are_noted() {
        let few = |dropped: u64, closed: u64| {
            serving(move |server, n| {
                server.counters.open = 1_000;
                server.counters.fanned_out = 10_000 * n;
                server.counters.replaced = dropped * n;
                server.counters.slow_closed = closed * n.min(1);
            })
        };
        let severity = |run: Run| run.speaks(&RULE).severity;
        assert_eq!(severity(few(9, 0)), Severity::Noted);
        assert_eq!(severity(few(10, 0)), Severity::Stopped);
        assert_eq!(severity(few(0, 9)), Severity::Noted);
        assert_eq!(severity(few(0, 10)), Severity::Stopped);
        let server_too =
            few(1, 0).loaded(|load, second| load.errors.add(ErrorKind::SendOverflow, second));
        assert_eq!(server_too.speaks(&RULE).side, Side::Server);
    }

    #[test]
    fn a_server_that_does_not_read_is_slow_too() {
        let run = Run::quiet().loaded(|load, second| {
            load.core.sends_blocked = 50 * second;
            load.core.pending_bytes = 40_000 * second;
        });
        let found = run.speaks(&RULE);
        assert_eq!(found.side, Side::Server);
        assert!(found.text.contains("391 KiB waited to be sent"), "{found}");
    }

    #[test]
    fn users_that_leave_messages_unread_are_told_the_line() {
        let unread = |reader_line| {
            let first = ErrorExchange {
                kind: INBOX_OVERFLOW.into(),
                line: 11,
                reader_line,
                ..ErrorExchange::default()
            };
            let run = Run::quiet().loaded(|load, second| load.errors.add(INBOX_OVERFLOW, second));
            let run = run.changed(move |interval, second| {
                if second == 1 {
                    let event = RunEventKind::FirstError(first.clone());
                    interval.events.push(RunEvent::new(1_000, event));
                }
            });
            let found = run.speaks(&RULE);
            (found.first_sentence().to_owned(), found.remedy)
        };
        let (text, remedy) = unread(12);
        assert_eq!(text, "Line 12 of the scenario leaves messages unread");
        assert!(remedy.starts_with("add `skip_others: true` in line 12"), "{remedy}");
        let (text, remedy) = unread(0);
        assert_eq!(text, "The scenario leaves what its users receive unread");
        assert!(!remedy.contains("skip_others"), "a stream has no messages: {remedy}");
    }

    #[test]
    fn a_queue_that_was_emptied_in_time_is_none() {
        serving(|server, n| server.counters.fanout_queued = 5_000 * n).is_silent(&RULE);
        serving(|server, n| server.core.sends_blocked = 5_000 * n).is_silent(&RULE);
        Run::quiet().loaded(|load, second| load.core.sends_blocked = 50 * second).is_silent(&RULE);
    }
}
