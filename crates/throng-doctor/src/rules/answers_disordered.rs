//! Answers, or broadcasts, arrive in another order than that of their questions.

use throng_measure::{ErrorKind, Finding, Side};
use throng_report::render::{count, percent};

use super::{Rule, RuleTrait};
use crate::first_error::{FirstError, cut, quoted};
use crate::impact::FAILURES_ONE_IN;
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("answers_disordered", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::GoesOn])
    .explains(&["server_slow"]);

fn find(run: &RunView<'_>) -> Option<Finding> {
    answers(run).or_else(|| deliveries(run))
}

/// The generator notes whether the first wrong answer is one that another step waits for.
fn answers(run: &RunView<'_>) -> Option<Finding> {
    let growth = run.errors(KIND)?;
    let first = FirstError::of(run, KIND).filter(|first| first.awaited_elsewhere)?;
    let of = run.summary.message.answered + growth.by();
    if growth.by().saturating_mul(FAILURES_ONE_IN) < of && !run.thresholds.no_errors() {
        return None;
    }
    let text = format!(
        "The server answers in another order than it is asked: {} of {} answers were not the next \
         one ({}); the first: expected {}, got {}. That is an answer which another `expect` of the \
         scenario waits for.",
        count(growth.by() as f64),
        count(of as f64),
        percent(growth.by() as f64 / of.max(1) as f64),
        cut(first.expected),
        cut(quoted(first.got))
    );
    let finding = Finding::new(RULE.id, Side::Server, text).with_confidence(0.9);
    Some(finding.with_evidence([growth]).remedied_by(
        "let the server answer each connection in order (one worker or one queue a connection); if \
         any order is right, use skip_others: true",
    ))
}

/// Probes know their own order.
fn deliveries(run: &RunView<'_>) -> Option<Finding> {
    let counters = &run.summary.broadcast.as_ref()?.counters;
    // While probes overlap, the sender of the next one has that at once.
    let wrong = counters.out_of_order.saturating_sub(counters.sent);
    if wrong.saturating_mul(DELIVERIES_ONE_IN) < counters.delivered.max(1) {
        return None;
    }
    let text = format!(
        "Broadcasts arrive in another order than they were sent: {} of {} deliveries arrived after \
         those of a later probe ({}).",
        count(counters.out_of_order as f64),
        count(counters.delivered as f64),
        percent(counters.out_of_order as f64 / counters.delivered.max(1) as f64)
    );
    let growth = run.growth_of("load.probe.out_of_order", |sample| {
        Some(sample.load()?.probe.out_of_order as i64)
    })?;
    let finding = Finding::new(RULE.id, Side::Server, text).with_evidence([growth]);
    Some(finding.remedied_by(
        "send the messages of a room through one queue, in the order in which the server received \
         them",
    ))
}

/// The kind of error that the generator counts.
pub(super) const KIND: ErrorKind = ErrorKind::ExpectMismatch;

/// The share of deliveries, one in so many, from which their order matters.
const DELIVERIES_ONE_IN: u64 = 100;

#[cfg(test)]
mod tests {
    use throng_measure::{ErrorExchange, RunEvent, RunEventKind};

    use super::super::fixture::Run;
    use super::*;

    fn mismatching(got: &str, awaited_elsewhere: bool) -> Run {
        let got = got.to_owned();
        Run::quiet().loaded(|load, second| load.errors.add(KIND, 40 * second)).changed(
            move |interval, second| {
                if second == 1 {
                    let event = RunEventKind::FirstError(ErrorExchange {
                        kind: KIND.into(),
                        expected: "`one`".to_owned(),
                        got: got.clone(),
                        awaited_elsewhere,
                        ..ErrorExchange::default()
                    });
                    interval.events.push(RunEvent::new(1_000, event));
                }
            },
        )
    }

    #[test]
    fn an_answer_that_another_step_waits_for_is_in_the_wrong_order() {
        let run = mismatching("`two`: at byte 0 comes `t`", true);
        assert_eq!(
            run.speaks(&RULE).first_sentence(),
            "The server answers in another order than it is asked: 400 of 10.4k answers were not \
             the next one (3.85 %); the first: expected `one`, got `two`"
        );
        run.check_all(&["answers_disordered"]);
        mismatching("`three`", false).check_all(&["wrong_answers"]);
    }

    #[test]
    fn deliveries_behind_those_of_a_later_probe_are_in_the_wrong_order() {
        let probing = |out_of_order: u64| {
            Run::quiet().loaded(move |load, second| {
                (load.probe.intended, load.probe.sent) = (second, second);
                (load.probe.delivered, load.probe.expected) = (1_000 * second, 1_000 * second);
                load.probe.out_of_order = out_of_order * second;
            })
        };
        assert_eq!(
            probing(200).speaks(&RULE).first_sentence(),
            "Broadcasts arrive in another order than they were sent: 2k of 10k deliveries arrived \
             after those of a later probe (20.0 %)"
        );
        probing(1).is_silent(&RULE);
        probing(0).is_silent(&RULE);
    }
}
