//! The server answered, but not as expected.

mod kind;

use throng_measure::{ErrorKind, Finding, Side};
use throng_report::render::percent;

use super::answer_owner::AnswerOwner;
use super::{Rule, RuleTrait};
use crate::counted::all_or_part_of;
use crate::first_error::{FirstError, cut, quoted};
use crate::impact::FAILURES_ONE_IN;
use crate::run_view::RunView;
use kind::{HTTP_VIOLATION, KINDS};

pub(super) const RULE: Rule = Rule::new("wrong_answers", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::GoesOn, RuleTrait::DelaysNothing])
    .explains(&["server_slow"]);

/// The cause of such an error is the answer itself. The generator records the first of each kind.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let found = KINDS.iter().filter_map(|kind| Some((kind, kind.growth(run)?)));
    let (kind, growth) = found.max_by_key(|(_, growth)| growth.by())?;
    let of = (kind.of)(run).max(growth.by());
    if growth.by().saturating_mul(FAILURES_ONE_IN) < of && !run.thresholds.no_errors() {
        return None;
    }
    let share = percent(growth.by() as f64 / of.max(1) as f64);
    let [one, many] = kind.noun;
    let counts = all_or_part_of(growth.by(), of, one, many);
    let first = FirstError::of(run, kind.name);
    let is_mostly_right = growth.by().saturating_mul(2) < of;
    let (what, remedy) = kind.words(first, is_mostly_right);
    let what = what.replace("{n}", &counts).replace("{target}", &run.header.target);
    let users = run.counted().map_or(0, |load| load.counters.users_started);
    let owner = first.filter(|_| kind.shows_expected);
    let owner = owner.and_then(|first| AnswerOwner::of(first, users));
    if owner.is_some_and(AnswerOwner::is_earlier) && came_late(run, growth.by()) {
        return None;
    }
    let remedy = owner.map_or(remedy, AnswerOwner::remedy);
    let text = match first {
        Some(FirstError { expected, got, .. }) if kind.shows_expected => {
            let whose = owner.map_or_else(String::new, AnswerOwner::clause);
            let (expected, got) = (cut(expected), cut(got));
            format!("{what} ({share}); the first: expected {expected}, got {got}{whose}.")
        }
        Some(FirstError { got, answer_fault, .. })
            if kind.name == HTTP_VIOLATION || answer_fault.is_some() =>
        {
            format!("{what}; the first: {}.", cut(quoted(got)))
        }
        Some(FirstError { got, .. }) => format!("{what}; the first: {}.", cut(got)),
        None => format!("{what} ({share})."),
    };
    let text = owner.map_or(text.clone(), |owner| format!("{text} {}", owner.sentence()));
    let found = Finding::new(RULE.id, Side::Server, text).with_confidence(if first.is_some() {
        1.0
    } else {
        0.9
    });
    let found =
        found.shown_by(&growth.counter, growth.from as f64, growth.to as f64, growth.began_ms);
    Some(found.remedied_by(remedy))
}

/// Reports whether so many wrong answers may be right ones that came late. After a wait that was
/// given up, its answer arrives in a later turn, and so do those of the turns after it.
fn came_late(run: &RunView<'_>, wrong: u64) -> bool {
    let [mismatch, time_out] =
        [ErrorKind::ExpectMismatch, ErrorKind::ExpectTimeout].map(|kind| FirstError::of(run, kind));
    let is_after = mismatch.zip(time_out).is_some_and(|(wrong, late)| late.at_ms <= wrong.at_ms);
    let Some(counters) = run.counted().map(|load| &load.counters) else { return false };
    let turns = counters.requests_begun() / counters.users_started.max(1);
    let given_up = run.errors(ErrorKind::ExpectTimeout).map_or(0, |growth| growth.by());
    is_after && wrong <= given_up.saturating_mul(turns.max(1))
}

/// Reports whether the errors of this kind are wrong answers.
pub(super) fn is_of(run: &RunView<'_>, name: ErrorKind) -> bool {
    KINDS.iter().any(|kind| kind.name == name && kind.growth(run).is_some())
}

#[cfg(test)]
mod tests {
    use throng_measure::{AnswerFault, ErrorExchange, RunEvent, RunEventKind};

    use super::super::fixture::Run;
    use super::*;

    fn failing(kind: ErrorKind, each_second: u64, expected: &str, got: &str) -> Run {
        failing_by(each_second, exchange(kind, expected, got))
    }

    fn exchange(kind: ErrorKind, expected: &str, got: &str) -> ErrorExchange {
        let [expected, got] = [expected, got].map(str::to_owned);
        ErrorExchange { kind: kind.into(), expected, got, ..ErrorExchange::default() }
    }

    /// A run with so many errors a second, the first of which is this one.
    fn failing_by(each_second: u64, first: ErrorExchange) -> Run {
        let kind: &'static str = first.kind.clone().leak();
        Run::quiet()
            .loaded(move |load, second| {
                load.errors.add(kind, each_second * second.saturating_sub(1))
            })
            .changed(move |interval, second| {
                if second == 2 && !first.got.is_empty() {
                    let event = RunEventKind::FirstError(first.clone());
                    interval.events.push(RunEvent::new(2_000, event));
                }
            })
    }

    #[test]
    fn a_wrong_answer_is_reported_with_the_first_one() {
        let run = failing(ErrorKind::ExpectMismatch, 40, "`hello`", "97 9a 93 93 90");
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server gave a wrong answer in 360 of 10.4k answers (3.47 %); the first: expected \
             `hello`, got 97 9a 93 93 90"
        );
        run.check_all(&["wrong_answers"]);
        let without = failing(ErrorKind::ExpectMismatch, 40, "", "");
        assert!(without.speaks(&RULE).first_sentence().ends_with("(3.47 %)"));
    }

    #[test]
    fn an_answer_that_begins_as_http_is_of_a_server_that_speaks_http() {
        let begins = "`HTTP/1.1 200 OK\\r\\ntransfer-encoding: gzip`";
        let first = |is_http, field: &str, reason: &str| {
            let first = ErrorExchange {
                answer_fault: Some(Box::new(AnswerFault {
                    is_http,
                    field: Some(field.to_owned()),
                    reason: reason.to_owned(),
                    protocol: None,
                })),
                ..exchange(HTTP_VIOLATION, "status 2xx", &format!("{begins}: {reason}"))
            };
            failing_by(40, first).speaks(&RULE)
        };
        let coding = first(true, "transfer-encoding", "the coding is wrong");
        let text = format!(
            "The server's answers to all 360 HTTP requests cannot be read: the coding is wrong; \
             the first: {begins}."
        );
        assert!(coding.text.starts_with(&text), "{coding}");
        assert!(coding.remedy.contains("switch this coding off"), "{coding}");
        let length = first(true, "content-length", "the length is wrong");
        assert!(length.remedy.contains("the rule of the RFC"), "{length}");
        let other = first(false, "", "the head is wrong");
        assert!(other.text.contains("does not speak HTTP/1.1"), "{other}");
        let unknown = failing(HTTP_VIOLATION, 40, "status 2xx", begins).speaks(&RULE);
        assert!(unknown.text.contains("HTTP requests cannot be read; the first"), "{unknown}");
    }

    #[test]
    fn an_answer_that_differs_by_a_number_is_that_to_another_user() {
        let swapped = failing(ErrorKind::ExpectMismatch, 40, "`echo 17 of 4`", "`echo 23 of 1`");
        let found = swapped.speaks(&RULE);
        assert!(found.text.contains("it is the answer to another user"), "{found}");
        assert!(found.remedy.starts_with("find what requests share"), "{found}");
        for (expected, got) in [("`ok`", "`no`"), ("`echo 17`", "`echo`"), ("`a`", "`a`")] {
            let other = failing(ErrorKind::ExpectMismatch, 40, expected, got).speaks(&RULE);
            assert!(!other.text.contains("another user"), "{other}");
        }
    }

    #[test]
    fn a_wrong_answer_says_whose_it_is() {
        let of_user = |expected: &str, got: &str| {
            let exchange = exchange(ErrorKind::ExpectMismatch, expected, got);
            failing_by(40, ErrorExchange { user: Some(17), ..exchange }).speaks(&RULE)
        };
        let swapped = of_user("`4 of 17`", "`1 of 23`");
        assert!(swapped.first_sentence().ends_with(", the answer to user 23"), "{swapped}");
        assert!(swapped.remedy.starts_with("find what requests share"), "{swapped}");
        let stale = of_user("`4 of 17`", "`3 of 17`");
        assert!(stale.first_sentence().ends_with("user 17 itself got one turn before"), "{stale}");
        assert!(stale.remedy.contains("what a user has just written"), "{stale}");
    }

    #[test]
    fn an_answer_that_comes_after_its_wait_was_given_up_is_late_and_not_stale() {
        let stale = |time_out_ms: u64, time_outs: u64| {
            let exchange = exchange(ErrorKind::ExpectMismatch, "`4 of 17`", "`3 of 17`");
            failing_by(40, ErrorExchange { user: Some(17), ..exchange })
                .loaded(move |load, second| {
                    load.errors.add(ErrorKind::ExpectTimeout, time_outs * second.saturating_sub(1));
                })
                .changed(move |interval, second| {
                    if second == time_out_ms.div_ceil(1_000) {
                        let kind = ErrorKind::ExpectTimeout.name().to_owned();
                        let first = ErrorExchange { kind, ..ErrorExchange::default() };
                        let event = RunEventKind::FirstError(first);
                        interval.events.insert(0, RunEvent::new(time_out_ms, event));
                    }
                })
        };
        stale(1_900, 20).is_silent(&RULE);
        stale(3_000, 20).speaks(&RULE);
        stale(1_900, 0).speaks(&RULE);
    }

    #[test]
    fn a_wrong_answer_that_comes_first_may_be_a_greeting() {
        let first = |came_first, each_second| {
            let exchange = exchange(ErrorKind::ExpectMismatch, "`ok`", "`welcome`");
            let first = ErrorExchange { came_first, ..exchange };
            failing_by(each_second, first).speaks(&RULE).remedy
        };
        let receive = "if the server speaks first, wait for that with `receive`";
        assert!(first(true, 4_000).starts_with(receive));
        assert!(first(false, 4_000).starts_with("find why the server answers this"));
        // A greeting comes on every connection.
        assert!(first(true, 40).starts_with("find why the server sometimes answers this"));
    }

    #[test]
    fn a_quotation_with_full_stops_stays_in_its_sentence() {
        let long = format!("`{}`", "No. Not now. ".repeat(20));
        let found = failing(ErrorKind::ExpectMismatch, 40, "`ok`", &long).speaks(&RULE);
        assert!(found.first_sentence().ends_with("No. Not now. `"), "{found}");
    }

    #[test]
    fn messages_none_of_which_was_expected_are_not_a_slow_server() {
        let others = "others, the first: `{\"type\":\"hello\"}`";
        let expected = "JSON with `{\"type\":\"helo\"}`";
        let first = ErrorExchange {
            skipped: Some(1),
            ..exchange(ErrorKind::ExpectTimeout, expected, others)
        };
        let run = failing_by(40, first);
        run.check_all(&["wrong_answers"]);
        assert!(
            run.speaks(&RULE)
                .text
                .starts_with("Messages arrived, but not the expected one, in 360 of")
        );
        // Messages that are broadcast to all are skipped in each wait.
        let beside = |unasked: u64| {
            let first = ErrorExchange {
                skipped: Some(1),
                ..exchange(ErrorKind::ExpectTimeout, "", others)
            };
            failing_by(40, first)
                .loaded(move |load, second| load.counters.messages_unasked = unasked * second)
        };
        beside(40).speaks(&RULE);
        beside(2_000).is_silent(&RULE);
        failing(ErrorKind::ExpectTimeout, 40, "`ok`", "nothing").is_silent(&RULE);
    }

    #[test]
    fn an_upgrade_that_is_answered_wrongly_is_reported() {
        let got = "`HTTP/1.1 101 Switching`: the accept value does not match";
        let mut run = failing(ErrorKind::UpgradeViolation, 0, "101 Switching Protocols", got)
            .loaded(|load, second| {
                load.counters.connects_ok = 0;
                load.connect_failed.add(ErrorKind::UpgradeViolation, 20 * second);
            });
        run.header.target = "ws://127.0.0.1:6379".into();
        assert!(
            run.speaks(&RULE).first_sentence().starts_with(
                "The server at ws://127.0.0.1:6379 is not a WebSocket server: all 200 upgrades \
                 got another answer; the first: `HTTP/1.1 101 Switching`"
            ),
            "{}",
            run.speaks(&RULE)
        );
    }

    #[test]
    fn a_refused_upgrade_names_the_field_that_is_wrong() {
        let answering = |field: Option<&str>, reason: &str| {
            let fault = AnswerFault {
                is_http: true,
                field: field.map(str::to_owned),
                reason: reason.to_owned(),
                protocol: None,
            };
            let first = ErrorExchange {
                answer_fault: Some(Box::new(fault)),
                ..exchange(ErrorKind::UpgradeViolation, "101", &format!("`HTTP/1.1 101`: {reason}"))
            };
            let run = failing_by(0, first).loaded(|load, second| {
                load.counters.connects_ok = 0;
                load.connect_failed.add(ErrorKind::UpgradeViolation, 20 * second);
            });
            run.speaks(&RULE)
        };
        let protocol = answering(Some("sec-websocket-protocol"), "it was not offered");
        assert_eq!(
            protocol.first_sentence(),
            "The answer to all 200 upgrades has a wrong sec-websocket-protocol: it was not \
             offered; the first: `HTTP/1.1 101`"
        );
        assert!(protocol.remedy.starts_with("offer the subprotocol"), "{protocol}");
        let head = answering(None, "the head is longer than head_bytes_max");
        assert!(head.text.starts_with("The server's answers to all 200 upgrades cannot"), "{head}");
        // No rule of the RFC limits a head.
        assert!(head.remedy.contains("such as one that never ends"), "{head}");
    }

    #[test]
    fn a_few_in_very_many_count_only_if_a_threshold_forbids_errors() {
        let few = failing(ErrorKind::ExpectMismatch, 1, "`a`", "`b`");
        few.is_silent(&RULE);
        let (history, summary) = few.whole();
        let judged = "errors == 0".parse::<throng_report::Threshold>().unwrap().judge(&summary);
        let verdict = crate::diagnose(&history, &summary, &[judged]).verdict;
        assert!(
            verdict.starts_with("Missed: errors 9, required == 0 at 400 connections"),
            "{verdict}"
        );
        assert!(verdict.contains("expected `a`, got `b`"), "{verdict}");
    }
}
