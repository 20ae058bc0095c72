//! Users waited at a barrier that never opened, or for a signal that was never given, or gave up
//! waiting.

use throng_measure::runfile::RunEndReason;
use throng_measure::{CueWaits, ErrorKind, Finding, Severity, Side};
use throng_report::render::percent;

use super::{FindingClass, Rule, RuleTrait};
use crate::counted::{all_or_part_of, capital};
use crate::impact::FAILURES_ONE_IN;
use crate::run_view::RunView;

/// Users that failed before they came to the barrier are a cause of that: those have rules of their
/// own.
pub(super) const RULE: Rule = Rule::new("cues_unopened", find)
    .of_class(FindingClass::Consequence)
    .with(&[RuleTrait::HoldsUsers, RuleTrait::DelaysNothing, RuleTrait::NotOfDelays]);

fn find(run: &RunView<'_>) -> Option<Finding> {
    unopened(run).or_else(|| given_up(run))
}

fn unopened(run: &RunView<'_>) -> Option<Finding> {
    let cues = run.summary.cues.as_ref()?;
    // After a request to end the run, they might have come later.
    if run.summary.run.end == Some(RunEndReason::Interrupted) {
        return None;
    }
    let unopened: Vec<_> = cues.each.iter().filter_map(CueWaits::describe_unopened).collect();
    let first = unopened.first()?;
    let more = unopened.iter().skip(1).map(|other| format!(" {}.", capital(other)));
    let text = format!(
        "{}. The steps behind it were not taken.{}",
        capital(first),
        more.collect::<String>()
    );
    let waits = run.load_growth("load.counters.cue_waits", |load| load.cue_waits)?;
    let finding = Finding::new(RULE.id, Side::Client, text)
        .with_severity(Severity::Slowed)
        .with_evidence([waits]);
    Some(finding.remedied_by(
        "find why too few users reached the step: errors before it, a load that is smaller than \
         `users`, or a `timeout` that ends the waits; or lower `users` of the barrier",
    ))
}

/// Users gave up waiting where others had gone on.
fn given_up(run: &RunView<'_>) -> Option<Finding> {
    let gave_up = run.errors(ErrorKind::CueTimeout)?;
    let waits = run.summary.cues.as_ref().map_or(0, |cues| cues.waits).max(gave_up.by());
    let is_rare = gave_up.by().saturating_mul(FAILURES_ONE_IN) < waits;
    if is_rare && !run.thresholds.no_errors() {
        return None;
    }
    let text = format!(
        "{} for other users timed out ({}): too few users reached the step in time, or no signal \
         was given.",
        capital(&all_or_part_of(gave_up.by(), waits, "wait", "waits")),
        percent(gave_up.by() as f64 / waits as f64)
    );
    let finding = Finding::new(RULE.id, Side::Client, text)
        .with_severity(Severity::Slowed)
        .with_evidence([gave_up]);
    Some(finding.remedied_by(
        "raise `timeout` of the barrier or of `wait_for`, or find what keeps the other users: an \
         error before it, slow answers, a load that is smaller than `users`",
    ))
}

#[cfg(test)]
mod tests {
    use throng_measure::CueWaits;

    use super::super::fixture::Run;
    use super::*;

    fn waiting(opened: u64) -> Run {
        Run::quiet().loaded(move |load, second| {
            load.counters.cue_waits = second;
            let (name, users) = ("go".to_owned(), Some(20));
            let waits = CueWaits { name, users, opened, waits: second, ..CueWaits::default() };
            load.cues = vec![waits];
        })
    }

    #[test]
    fn a_barrier_that_never_opened_is_a_finding_and_one_that_did_is_none() {
        let found = waiting(0).speaks(&RULE);
        assert!(found.text.starts_with("The barrier `go` (line 0) never opened: at"), "{found}");
        waiting(1).is_silent(&RULE);
        Run::quiet().is_silent(&RULE);
    }

    #[test]
    fn users_that_gave_up_waiting_are_held_up_and_nothing_slowed_down() {
        let run = waiting(0).loaded(|load, second| load.errors.add(ErrorKind::CueTimeout, second));
        assert!(run.verdict().starts_with("Held up on the client side at"), "{}", run.verdict());
        let run =
            waiting(1).loaded(|load, second| load.errors.add(ErrorKind::CueTimeout, second / 2));
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "5 of 10 waits for other users timed out (50.0 %): too few users reached the step in \
             time, or no signal was given"
        );
        run.check_all(&["cues_unopened"]);
    }
}
