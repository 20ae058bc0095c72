//! Users waited at a barrier that never opened, or for a signal that was never given.

use throng_report::runfile::RunEndReason;
use throng_report::{CueWaits, Finding, Severity, Side};

use super::{FindingClass, Rule, RuleTrait};
use crate::counted::capital;
use crate::run_view::RunView;

/// Users that failed before they came to the barrier are a cause of that: those have rules of their
/// own.
pub(super) const RULE: Rule = Rule::new("cues_unopened", find)
    .of_class(FindingClass::Consequence)
    .with(&[RuleTrait::NotOfDelays]);

fn find(run: &RunView<'_>) -> Option<Finding> {
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
        "find why too few users came: errors before this step, a load that is smaller than \
         `users`, or a `timeout` that ends the waits; or lower `users` of the barrier",
    ))
}

#[cfg(test)]
mod tests {
    use throng_report::CueWaits;

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
}
