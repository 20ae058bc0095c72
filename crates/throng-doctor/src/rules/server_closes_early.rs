//! The server closed connections that their users still needed.

use throng_measure::{
    ErrorClass, ErrorKey, ErrorKind, Finding, LoadCounters, ServerCounters, ServerSnapshot, Side,
};
use throng_report::render::percent;

use super::close_code::CloseCodeMeaning;
use super::close_times::CloseTimes;
use super::{Rule, RuleTrait};
use crate::counted::{counted, part_of, times};
use crate::first_error::{FirstError, cut};
use crate::outages::outages;
use crate::run_view::{Growth, RunView};

pub(super) const RULE: Rule = Rule::new("server_closes_early", find).with(&[
    RuleTrait::ServerFault,
    RuleTrait::GoesOn,
    RuleTrait::DelaysNothing,
]);

/// The generator counts connections that the server closes or resets while the scenario still needs
/// them.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let closes: Vec<_> = closed_by_the_server(run);
    // Connections lost while the server was away belong to another finding.
    let away: u64 = outages(run).iter().map(|away| away.lost).sum();
    let closed = Growth::total(&closes).saturating_sub(away);
    let connects = connections(run, &closes).max(closed);
    let is_rare = closed < CLOSED_MIN || (closed as f64) < connects as f64 * SHARE_MIN;
    if is_rare && !is_missed_by(closed, run) {
        return None;
    }
    let reason = Reason::of(run, &closes);
    let text = format!(
        "The server closed {} early{}. Their users had not finished; that is {} of all \
         connections.",
        part_of(closed, connects, "connection", "connections"),
        reason.what,
        percent(closed as f64 / connects.max(1) as f64)
    );
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_confidence(reason.confidence)
        .with_evidence(closes.iter().map(Growth::evidence))
        .with_evidence(reason.growth)
        .remedied_by(reason.remedy);
    Some(finding)
}

/// Reports whether the run missed a threshold on errors, and so many closes are most of its errors.
fn is_missed_by(closed: u64, run: &RunView<'_>) -> bool {
    run.thresholds.no_errors() && closed > 0 && closed * 2 >= run.summary.errors.total()
}

/// Returns the number of connections that the server might have closed. The connections of HTTP
/// requests, such as a login, count only if it closed such ones, or if there are no others.
fn connections(run: &RunView<'_>, closes: &[Growth]) -> u64 {
    let of_requests = closes.iter().any(|growth| growth.counter == "errors.http_closed");
    let established = match run.summary.connect_steps_ok() {
        steps @ 1.. if !of_requests => steps,
        _ => run.summary.connect.ok,
    };
    let failed = closes.iter().filter(|growth| growth.counter.starts_with("connect_failed"));
    established + Growth::total(failed)
}

/// Returns the connections that the server closed, reset or closed with a WebSocket code, during an
/// upgrade too.
pub(super) fn closed_by_the_server(run: &RunView<'_>) -> Vec<Growth> {
    let Some(load) = run.counted() else { return Vec::new() };
    let ended = |kind: &&String| ErrorKey::parse(kind).is(ErrorClass::Ended);
    let errors = load.errors.0.keys().filter(ended).filter_map(|kind| run.errors(kind));
    let upgrades = [ErrorKind::UpgradeClosed.name(), "ECONNRESET"]
        .into_iter()
        .filter_map(|kind| run.connect_failures(kind));
    let mut found: Vec<_> = errors.chain(upgrades).collect();
    found.sort_by_key(|growth| std::cmp::Reverse(growth.by()));
    found
}

/// Reason of the closes, as far as a throng server reports it, a close code says it, or their times
/// show it.
struct Reason {
    /// End of the sentence.
    what: String,
    growth: Option<Growth>,
    confidence: f64,
    remedy: String,
}

impl Reason {
    fn of(run: &RunView<'_>, closes: &[Growth]) -> Self {
        let counted = |name: &str, of: fn(&ServerCounters) -> u64| {
            run.server_growth(&format!("server.counters.{name}"), |server| of(&server.counters))
        };
        let in_core = |name: &str, of: fn(&ServerSnapshot) -> u64| {
            run.server_growth(&format!("server.core.{name}"), of)
        };
        let known = [
            (
                in_core("panics", |server| server.core.panics),
                "its handler panicked",
                "read the panic message (server's log, event handler_panicked) and fix the handler",
            ),
            (
                counted("idle_timeouts", |counters| counters.idle_timeouts),
                "they sent nothing for its idle time-out",
                "raise --idle-timeout, or send more often (heartbeats)",
            ),
            (
                counted("slow_closed", |counters| counters.slow_closed),
                "they read too slowly, and their queues were full",
                "see slow_consumers: raise --queue, change --policy, or read faster",
            ),
            (
                counted("bad_messages", |counters| counters.bad_messages),
                "they sent messages that are not valid in its protocol",
                "correct the messages of the scenario",
            ),
            (
                counted("hand_over_failures", |counters| counters.hand_over_failures),
                "it could not hand them to another core",
                "raise the server's RLIMIT_NOFILE (ulimit -n), or give it more cores",
            ),
        ];
        let counted =
            known.into_iter().filter_map(|(growth, what, remedy)| Some((growth?, what, remedy)));
        if let Some((growth, what, remedy)) = counted.max_by_key(|(growth, ..)| growth.by()) {
            let what = format!(": {what} ({})", times(growth.by()));
            return Self { what, growth: Some(growth), confidence: 1.0, remedy: remedy.to_owned() };
        }
        Self::shown_by(run, closes).unwrap_or_else(|| Self::unknown(run, closes))
    }

    /// Returns the reason that the most frequent kind of close and the times of the closes show.
    fn shown_by(run: &RunView<'_>, closes: &[Growth]) -> Option<Self> {
        let kind = closes.first()?.counter.strip_prefix("errors.")?;
        let code = CloseCodeMeaning::of(kind);
        let times = CloseTimes::of(run, &[kind]);
        if code.is_none() && times.is_none() {
            return None;
        }
        let reason = close_reason(run, kind);
        let is_idle = reason.is_some_and(names_idleness);
        let mut what = match &code {
            Some(code) => format!(" {}", code.describe(kind)),
            None if kind == ErrorKind::ResetByPeer.name() => " by a reset (RST)".to_owned(),
            None => String::new(),
        };
        if let Some(reason) = reason {
            what += &format!(", reason {}", cut(reason));
        }
        if is_idle {
            what += &format!(": its idle time-out{}", in_a_wait(run, kind));
        }
        if let Some(times) = times {
            what += &format!(", {}", times.describe());
        }
        let remedy = match (times, code) {
            (Some(times), _) => times.remedy(gets_others(run)),
            (None, Some(_)) if is_idle => IDLE_REMEDY.to_owned(),
            (None, Some(code)) => code.remedy.to_owned(),
            (None, None) => return None,
        };
        Some(Self { what, growth: None, confidence: 1.0, remedy })
    }

    fn unknown(run: &RunView<'_>, closes: &[Growth]) -> Self {
        let answered = Answered::before(run, closes);
        Self {
            what: format!(": it answered {}", answered.what),
            growth: None,
            confidence: 0.9,
            remedy: format!(
                "find in the server's log why it closes: a limit, a time-out, or a {} that it \
                 rejects",
                answered.question
            ),
        }
    }
}

/// Reports whether users receive messages that answer nothing: some may be pings.
fn gets_others(run: &RunView<'_>) -> bool {
    let message = &run.summary.message;
    // A client of Phoenix pings by itself, and what it receives is no message of this count.
    run.summary.heartbeat.is_none() && message.received > message.answered
}

/// Reports whether a close reason says that nothing was sent for too long.
fn names_idleness(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    IDLE_WORDS.iter().any(|word| reason.contains(word))
}

/// Says that the first user whose connection was closed was in a `wait`.
fn in_a_wait(run: &RunView<'_>, kind: &str) -> String {
    match FirstError::of(run, kind) {
        Some(FirstError { step_kind: "wait", line: 0, .. }) => {
            ", while the user was in a `wait`".to_owned()
        }
        Some(FirstError { step_kind: "wait", line, .. }) => {
            format!(", while the user was in the `wait` of line {line}")
        }
        _ => String::new(),
    }
}

/// Words of close reasons that say that nothing was sent for too long.
const IDLE_WORDS: [&str; 6] =
    ["idle", "inactiv", "timeout", "time-out", "timed out", "no activity"];

const IDLE_REMEDY: &str = "send something during the waits (a heartbeat, a ping), answer the \
                           server's own pings (`on_message`), or raise the idle time-out of the \
                           server and of each proxy before it (nginx: proxy_read_timeout)";

/// What the server answered before it closed, on connections of the kind that it closed most.
struct Answered {
    what: String,
    /// What users ask there.
    question: &'static str,
}

impl Answered {
    fn before(run: &RunView<'_>, closes: &[Growth]) -> Self {
        let of = |counter: fn(&LoadCounters) -> u64| {
            run.load_growth("answered", counter).map_or(0, |growth| growth.by())
        };
        let messages = (of(|load| load.messages_answered), "message", "messages");
        let pushes = (of(|load| load.pushes_ok), "push", "pushes");
        let requests = (of(LoadCounters::http_answers), "HTTP request", "HTTP requests");
        let kind = closes.first().map_or("", |growth| growth.counter.as_str());
        let asks_sockets = messages.0 + pushes.0 > 0 || run.summary.connect_steps_ok() > 0;
        let kinds = match kind {
            "errors.http_closed" => vec![requests],
            _ if !asks_sockets => vec![requests],
            // A connection of requests may be reset, too.
            "errors.reset_by_peer" => vec![messages, pushes, requests],
            _ => vec![messages, pushes],
        };
        let question = if kinds[0].1 == requests.1 { "request" } else { "message" };
        let some: Vec<_> = kinds.iter().filter(|(number, ..)| *number > 0).collect();
        let some: Vec<_> =
            some.into_iter().map(|(number, one, many)| counted(*number, one, many)).collect();
        let what = match some.is_empty() {
            true => format!("no {} before", kinds[0].1),
            false => format!("{} in all", some.join(" and ")),
        };
        Self { what, question }
    }
}

/// Returns the reason in the first close frame of this kind.
fn close_reason<'a>(run: &RunView<'a>, kind: &str) -> Option<&'a str> {
    FirstError::of(run, kind)?.close_reason
}

/// The smallest share that counts: one close in a hundred may be a chance failure.
const SHARE_MIN: f64 = 0.01;

/// The fewest closes that count: fewer prove nothing.
const CLOSED_MIN: u64 = 5;

#[cfg(test)]
mod tests {
    use throng_measure::{EarlyClose, ErrorExchange, RunEvent, RunEventKind};

    use super::super::fixture::Run;
    use super::*;

    fn closing(kind: impl Into<String>, each_second: u64) -> Run {
        let kind = kind.into();
        Run::quiet().loaded(move |load, second| {
            load.errors.add(&kind, each_second * second.saturating_sub(1))
        })
    }

    #[test]
    fn connections_that_the_server_closed_are_reported() {
        let found = closing(ErrorKind::ClosedByPeer, 40).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server closed 360 of 1k connections early: it answered 10k messages in all"
        );
        assert_eq!(
            (found.evidence[0].counter.as_str(), found.began_ms()),
            ("errors.closed_by_peer", Some(2_000))
        );
    }

    #[test]
    fn the_connections_of_logins_are_none_that_were_closed() {
        let logged_in = |kind: ErrorKind| {
            closing(kind, 40).loaded(|load, second| {
                load.counters.http_connects = 120 * second.min(5);
                load.counters.http_started = load.counters.http_connects;
                load.counters.http_2xx = load.counters.http_connects;
            })
        };
        let begins = |kind: ErrorKind, begin: &str| {
            let found = logged_in(kind).speaks(&RULE);
            assert!(found.text.starts_with(begin), "{kind}: {found}");
        };
        begins(ErrorKind::ClosedByPeer, "The server closed 360 of 400 connections early");
        begins(ErrorKind::HttpClosed, "The server closed 360 of 1k connections early");
    }

    #[test]
    fn what_was_answered_before_is_named() {
        let check = |kind: ErrorKind, messages, requests, connects: u64, what: &str| {
            let run = closing(kind, 40).loaded(move |load, second| {
                load.counters.messages_answered = messages * second;
                load.counters.http_started = requests * second;
                load.counters.http_2xx = requests * second;
                load.counters.http_connects = connects.min(load.counters.connects_ok);
            });
            let found = run.speaks(&RULE);
            assert!(found.first_sentence().ends_with(what), "{kind}: {found}");
        };
        check(ErrorKind::HttpClosed, 0, 7, 1_000, "early: it answered 70 HTTP requests in all");
        check(ErrorKind::HttpClosed, 0, 0, 1_000, "early: it answered no HTTP request before");
        check(ErrorKind::ResetByPeer, 0, 7, 1_000, "early: it answered 70 HTTP requests in all");
        check(
            ErrorKind::ResetByPeer,
            5,
            7,
            10,
            "it answered 50 messages and 70 HTTP requests in all",
        );
        check(ErrorKind::ClosedByPeer, 0, 7, 10, "early: it answered no message before");
        check(ErrorKind::ClosedByPeer, 5, 7, 10, "early: it answered 50 messages in all");
    }

    #[test]
    fn a_close_code_is_named_with_its_meaning_and_its_reason() {
        let run = closing(ErrorKind::CloseFrame.with(1011), 40).changed(|interval, second| {
            if second == 2 {
                let event = RunEventKind::FirstError(ErrorExchange {
                    kind: ErrorKind::CloseFrame.with(1011),
                    expected: "an open connection".to_owned(),
                    got: "a close frame with 1011, `oops`".to_owned(),
                    close_reason: Some("`oops`".to_owned()),
                    ..ErrorExchange::default()
                });
                interval.events.push(RunEvent::new(2_000, event));
            }
        });
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server closed 360 of 1k connections early with code 1011 (an internal error of \
             the server), reason `oops`"
        );
        assert!(found.remedy.contains("log"), "{found}");
    }

    #[test]
    fn a_time_that_all_closes_share_is_named() {
        let run = closing(ErrorKind::ClosedByPeer, 40).loaded(|load, second| {
            let close = |n| EarlyClose {
                error: ErrorKind::ClosedByPeer.into(),
                open_ms: 3_000 + 700 * n,
                idle_ms: 2_000 + n,
                ..EarlyClose::default()
            };
            load.early_closes = (0..second).map(close).collect();
        });
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server closed 360 of 1k connections early, each after 2.00 s without a message"
        );
        assert!(found.remedy.contains("heartbeat"), "{found}");
    }

    #[test]
    fn a_server_that_sends_what_nobody_asked_for_may_want_answers_to_pings() {
        let aged = |received: u64| {
            closing(ErrorKind::ClosedByPeer, 40).loaded(move |load, second| {
                let close = |n| EarlyClose {
                    error: ErrorKind::ClosedByPeer.into(),
                    open_ms: 2_300 + n,
                    idle_ms: 300 + 200 * n,
                    ..EarlyClose::default()
                };
                load.early_closes = (0..second).map(close).collect();
                load.counters.messages_received = received * second;
            })
        };
        let found = aged(2_000).speaks(&RULE);
        assert!(found.remedy.contains("`on_message`") && found.remedy.contains("age"), "{found}");
        let found = aged(0).speaks(&RULE);
        assert!(!found.remedy.contains("`on_message`"), "{found}");
    }

    #[test]
    fn a_throng_server_says_why() {
        let check = |change: fn(&mut ServerSnapshot, u64), what: &str| {
            let run = closing(ErrorKind::ResetByPeer, 40).changed(|interval, second| {
                let mut server = ServerSnapshot::default();
                change(&mut server, 40 * second.saturating_sub(1));
                interval.server = Some(server);
            });
            let found = run.speaks(&RULE);
            assert!(found.first_sentence().contains(what), "{found}");
        };
        check(|server, n| server.core.panics = n, "its handler panicked (360 times)");
        check(|server, n| server.counters.idle_timeouts = n, "idle time-out");
        check(|server, n| server.counters.slow_closed = n, "read too slowly");
    }

    #[test]
    fn a_close_in_hundreds_and_what_users_ended_themselves_are_none() {
        closing(ErrorKind::ClosedByPeer, 1).is_silent(&RULE);
        closing(ErrorKind::ExpectTimeout, 40).is_silent(&RULE);
    }

    #[test]
    fn closes_of_the_interval_in_which_users_begin_to_leave_count() {
        let run = closing(ErrorKind::ClosedByPeer, 40).loaded(|load, second| {
            if second == 10 {
                load.phase = throng_measure::LEAVING.into();
            }
        });
        assert!(run.speaks(&RULE).text.starts_with("The server closed 360 of 1k connections"));
        assert_eq!(run.whole().1.errors.get(ErrorKind::ClosedByPeer), 360);
    }
}
