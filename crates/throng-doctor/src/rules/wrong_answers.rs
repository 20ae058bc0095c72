//! The server answered, and not what was expected.

use throng_report::render::{count, percent};
use throng_report::{Finding, RunEventKind, Side};

use super::Rule;
use crate::impact::FAILURES_ONE_IN;
use crate::outages::events;
use crate::run_view::{Growth, RunView};

pub(super) const RULE: Rule = Rule { id: "wrong_answers", explains: &["server_slow"], find };

/// The cause of such an error is the answer itself, which the generator has shown once for each kind.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let found = KINDS.iter().filter_map(|kind| Some((kind, kind.growth(run)?)));
    let (kind, growth) = found.max_by_key(|(_, growth)| growth.by())?;
    let of = (kind.of)(run).max(growth.by());
    if growth.by().saturating_mul(FAILURES_ONE_IN) < of && !run.asked.no_errors() {
        return None;
    }
    let share = percent(growth.by() as f64 / of.max(1) as f64);
    let counts = match growth.by() == of {
        true => format!("all {}", count(of as f64)),
        false => format!("{} of {}", count(growth.by() as f64), count(of as f64)),
    };
    let first = shown(run, kind.name);
    let what = kind.what.replace("{n}", &counts).replace("{target}", &run.header.target);
    let text = match first {
        Some((expected, got)) if kind.wants_both => {
            format!("{what} ({share}); the first: wanted {}, came {}.", cut(expected), cut(got))
        }
        Some((_, got)) => format!("{what}; the first: {}.", cut(got)),
        None => format!("{what} ({share})."),
    };
    let found = Finding::new(RULE.id, Side::Server, text).with_confidence(if first.is_some() {
        1.0
    } else {
        0.9
    });
    let found =
        found.shown_by(&growth.counter, growth.from as f64, growth.to as f64, growth.began_ms);
    Some(found.remedied_by(kind.remedy))
}

/// A kind of error whose cause is an answer.
struct Kind {
    /// Its name among the errors, or among the failed connects.
    name: &'static str,
    is_connect: bool,
    /// The beginning of the sentence; `{n}` is how many of how many.
    what: &'static str,
    /// Out of how many.
    of: fn(&RunView<'_>) -> u64,
    /// Whether the example needs what was expected to be understood.
    wants_both: bool,
    remedy: &'static str,
}

impl Kind {
    fn growth(&self, run: &RunView<'_>) -> Option<Growth> {
        // A wait that timed out tells of a wrong answer only where others came.
        let is_told = self.name != "expect_timeout"
            || shown(run, self.name).is_some_and(|(_, got)| got.starts_with(OTHERS));
        let growth = match self.is_connect {
            true => run.connect_failures(self.name),
            false => run.errors(self.name),
        };
        growth.filter(|_| is_told)
    }
}

const KINDS: &[Kind] = &[
    Kind {
        name: "expect_mismatch",
        is_connect: false,
        what: "The server answered something else than expected in {n} answers",
        of: |run| run.summary.message.answered + run.summary.errors.get("expect_mismatch"),
        wants_both: true,
        remedy: "look at why the server answers so, or at `expect` in the scenario",
    },
    Kind {
        name: "expect_timeout",
        is_connect: false,
        what: "Messages came, and none of them was the one expected, in {n} waits",
        of: |run| run.summary.message.answered + run.summary.errors.get("expect_timeout"),
        wants_both: true,
        remedy: "compare `expect` in the scenario with what the server sends",
    },
    Kind {
        name: "upgrade_violation",
        is_connect: true,
        what: "What listens at {target} is no WebSocket server: {n} upgrades were answered with something else",
        of: |run| run.summary.connect.ok + run.summary.connect.failed.total(),
        wants_both: false,
        remedy: "correct the target's port or path, or use tcp:// for a server that does not speak WebSocket",
    },
    Kind {
        name: "join_refused",
        is_connect: false,
        what: "The server refused {n} joins",
        of: |run| run.summary.join.as_ref().map_or(0, |join| join.started),
        wants_both: false,
        remedy: "look at the reason that the server gives, at the topic and at the payload of `join`",
    },
    Kind {
        name: "push_refused",
        is_connect: false,
        what: "The server refused {n} pushes",
        of: |run| run.summary.push.as_ref().map_or(0, |push| push.sent),
        wants_both: false,
        remedy: "look at the reason that the server gives, at the event and at the payload of `push`",
    },
    Kind {
        name: "channel_error",
        is_connect: false,
        what: "Channels crashed on the server (phx_error), {n} joins",
        of: |run| run.summary.join.as_ref().map_or(0, |join| join.ok),
        wants_both: false,
        remedy: "look into the server's log: it says what crashed",
    },
    Kind {
        name: "bad_message",
        is_connect: false,
        what: "The server sent what is no message of Phoenix Channels, on {n} connections",
        of: |run| run.summary.connect.ok,
        wants_both: false,
        remedy: "check the version (vsn) in the scenario and what stands between the two ends",
    },
    Kind {
        name: "ws_violation",
        is_connect: false,
        what: "The server broke the rules of WebSocket on {n} connections",
        of: |run| run.summary.connect.ok,
        wants_both: false,
        remedy: "look at what the server, or a proxy before it, puts into its frames",
    },
];

/// The first error of a kind: what was expected, and what came.
fn shown<'a>(run: &RunView<'a>, name: &str) -> Option<(&'a str, &'a str)> {
    events(run).find_map(|(_, event)| match event {
        RunEventKind::FirstError { kind, expected, got } if kind == name => {
            Some((&**expected, &**got))
        }
        _ => None,
    })
}

/// A beginning of it that fits into a sentence.
fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        None => text.to_owned(),
        // What was a quotation stays one.
        Some((at, _)) if text.starts_with('`') => format!("{}…`", &text[..at]),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

/// How the generator begins when others came than the one that was waited for.
const OTHERS: &str = "others";

const SHOWN_CHARS_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use throng_report::RunEvent;

    use super::super::fixture::Run;
    use super::*;

    fn failing(kind: &'static str, each_second: u64, expected: &str, got: &str) -> Run {
        let (expected, got) = (expected.to_owned(), got.to_owned());
        Run::quiet()
            .loaded(move |load, second| {
                load.errors.add(kind, each_second * second.saturating_sub(1))
            })
            .changed(move |interval, second| {
                if second == 2 && !got.is_empty() {
                    let event = RunEventKind::FirstError {
                        kind: kind.to_owned(),
                        expected: expected.clone(),
                        got: got.clone(),
                    };
                    interval.events.push(RunEvent::new(2_000, event));
                }
            })
    }

    #[test]
    fn a_wrong_answer_is_told_with_the_first_one() {
        let run = failing("expect_mismatch", 40, "`hello`", "97 9a 93 93 90");
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server answered something else than expected in 360 of 10.4k answers (3.47 %); the first: wanted `hello`, came 97 \
             9a 93 93 90"
        );
        run.check_all(&["wrong_answers"]);
        let without = failing("expect_mismatch", 40, "", "");
        assert!(without.speaks(&RULE).first_sentence().ends_with("(3.47 %)"));
    }

    #[test]
    fn a_quotation_with_full_stops_stays_in_its_sentence() {
        let long = format!("`{}`", "No. Not now. ".repeat(20));
        let found = failing("expect_mismatch", 40, "`ok`", &long).speaks(&RULE);
        assert!(found.first_sentence().ends_with("…`"), "{found}");
    }

    #[test]
    fn messages_none_of_which_was_expected_are_not_a_slow_server() {
        let others = "others, the first: `{\"type\":\"hello\"}`";
        let run = failing("expect_timeout", 40, "JSON with `{\"type\":\"helo\"}`", others);
        run.check_all(&["wrong_answers", "server_slow"]);
        assert!(
            run.speaks(&RULE)
                .text
                .starts_with("Messages came, and none of them was the one expected, in 360 of")
        );
        failing("expect_timeout", 40, "`ok`", "nothing").is_silent(&RULE);
    }

    #[test]
    fn what_listens_and_is_no_websocket_server_is_told() {
        let mut run = Run::quiet()
            .loaded(|load, second| {
                load.counters.connects_ok = 0;
                load.counters.connected = 0;
                load.connect_failed.add("upgrade_violation", 20 * second);
            })
            .changed(|interval, second| {
                if second == 1 {
                    let event = RunEventKind::FirstError {
                        kind: "upgrade_violation".to_owned(),
                        expected: "101 Switching Protocols".to_owned(),
                        got: "`+OK hello redis\\r\\n`: the answer is not HTTP".to_owned(),
                    };
                    interval.events.push(RunEvent::new(1_000, event));
                }
            });
        run.header.target = "ws://127.0.0.1:6379".into();
        assert_eq!(
            run.speaks(&RULE).first_sentence(),
            "What listens at ws://127.0.0.1:6379 is no WebSocket server: all 200 upgrades were answered with something else; the \
             first: `+OK hello redis\\r\\n`: the answer is not HTTP"
        );
    }

    #[test]
    fn a_few_in_very_many_are_none_unless_none_were_asked_for() {
        let few = failing("expect_mismatch", 1, "`a`", "`b`");
        few.is_silent(&RULE);
        let (history, summary) = few.whole();
        let judged = "errors == 0".parse::<throng_report::Threshold>().unwrap().judge(&summary);
        let said = crate::diagnose(&history, &summary, &[judged]).verdict;
        assert!(said.starts_with("Missed: errors 9, asked == 0 at 400 connections"), "{said}");
        assert!(said.contains("wanted `a`, came `b`"), "{said}");
    }
}
