//! The server leaves some questions without an answer, and answers the others at once.

use throng_report::render::{count, micros, percent, rate};
use throng_report::{Finding, Side};

use super::lost_answers::LostAnswers;
use super::{Rule, RuleTrait, rate_limited};
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("answers_missing", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::GoesOn])
    .explains(&["server_slow"]);

/// A slow server answers some questions late. One that loses answers has none between fast and
/// never.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let lost = LostAnswers::of(run)?;
    if rate_limited::RULE.find(run).is_some() {
        return None;
    }
    let limit = rate_limited::possible_limit(&lost);
    let so = match limit {
        Some(most) => format!(
            ": it takes {} at most, or loses a share. The load was constant, so both look alike.",
            rate(most)
        ),
        None => ". It loses them, or what it sends: waiting longer would not help.".to_owned(),
    };
    let text = format!(
        "The server never answered {} of {} {} ({}){}, and answered the others at once ({}, p99 \
         over the run){so}",
        count(lost.lost as f64),
        count(lost.asked as f64),
        lost.questions.many,
        percent(lost.share()),
        if lost.are_even() { ", as many at any time" } else { "" },
        micros(lost.p99_us)
    );
    let finding = Finding::new(RULE.id, Side::Server, text).with_evidence([lost.evidence()]);
    // An HTTP request has an answer, always.
    let or = match lost.questions.one {
        "request" => "",
        _ => "; or correct `expect`, if no answer is due",
    };
    let at_half = match limit {
        Some(_) => "run at half the rate: if all are answered then, it is a rate limit; otherwise ",
        None => "",
    };
    Some(finding.with_confidence(0.9).remedied_by(format!(
        "{at_half}find where the server drops them: an error that it swallows, a full queue, a {} \
         that it does not understand{or}",
        lost.questions.one
    )))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;

    /// A run in which one of ten questions is never answered; others wait `us`.
    fn losing(us: u64) -> Run {
        Run::quiet().loaded(move |load, second| {
            load.counters.messages_answered = 900 * second;
            load.counters.messages_expected = 1_000 * second;
            load.errors.add("expect_timeout", 100 * second);
            load.message.record_n(us, 500);
            load.unanswered.message.record_n(1_000_000, 100);
        })
    }

    #[test]
    fn questions_without_an_answer_are_counted() {
        let run = losing(200);
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server never answered 1k of 10k messages (10.0 %), as many at any time, and \
             answered the others at once (200 µs, p99 over the run): it takes 900/s at most, or \
             loses a share"
        );
        run.check_all(&["answers_missing", "server_slow"]);
    }

    #[test]
    fn those_that_wait_when_the_run_ends_are_lost_too() {
        let run = losing(200).loaded(|load, second| {
            // It ends before the users of the last seconds give up.
            load.errors = Default::default();
            load.errors.add("expect_timeout", 100 * second.saturating_sub(5));
            load.counters.messages_waiting = 500;
        });
        let begin = "The server never answered 1k of 10k messages (10.0 %)";
        assert!(run.speaks(&RULE).text.starts_with(begin), "{}", run.speaks(&RULE));
    }

    #[test]
    fn a_generator_that_is_a_little_late_is_no_reason_for_answers_that_never_come() {
        let late = |us| losing(200).loaded(move |load, _| load.lag.record_n(us, 900));
        late(40_000).check_all(&["answers_missing", "server_slow", "generator_saturated"]);
        late(900_000).is_silent(&RULE);
    }

    #[test]
    fn turns_that_begin_late_because_of_it_do_not_make_the_server_slow() {
        let run = losing(900_000).loaded(|load, _| load.from_send.record_n(300, 500));
        let found = run.speaks(&RULE);
        assert!(
            found.text.contains("answered the others at once (300 µs, p99 over the run)"),
            "{found}"
        );
    }

    #[test]
    fn losses_of_a_part_of_the_run_are_not_even() {
        let run = losing(200).loaded(|load, second| {
            let lost = 333 * second.saturating_sub(7);
            load.counters.messages_answered = 1_000 * second - lost;
            load.errors = Default::default();
            load.errors.add("expect_timeout", lost);
        });
        let found = run.speaks(&RULE);
        assert!(found.text.contains("(9.99 %), and answered"), "{found}");
    }

    #[test]
    fn answers_that_are_late_are_a_slow_servers() {
        losing(600_000).is_silent(&RULE);
    }

    #[test]
    fn a_few_by_chance_are_none() {
        let few = Run::quiet().loaded(|load, second| {
            load.errors.add("expect_timeout", second.min(1));
            load.unanswered.message.record_n(1_000_000, 1);
        });
        few.is_silent(&RULE);
    }
}
