//! The server leaves some questions without an answer, and answers the others at once.

use throng_report::render::{count, micros, percent};
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
    let text = format!(
        "The server never answered {} of {} {} ({}){}, and answered the others at once ({}, p99). \
         It loses them, or what it sends: waiting longer would not help.",
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
    Some(finding.with_confidence(0.9).remedied_by(format!(
        "find where the server drops them: an error that it swallows, a full queue, a {} that it \
         does not understand{or}",
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
            "The server never answered 1k of 10k questions (10.0 %), and answered the others at \
             once (200 µs, p99)"
        );
        run.check_all(&["answers_missing", "server_slow"]);
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
