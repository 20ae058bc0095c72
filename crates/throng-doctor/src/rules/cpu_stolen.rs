//! The hypervisor gave the machine's CPUs to other guests.

use throng_measure::{Endpoint, Evidence, Finding};

use super::{Rule, RuleTrait};
use crate::cpus::{CpuUse, lasting, mean, whole_percent};
use crate::impact::impact_of_waiting;
use crate::kernels::machines;
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("cpu_stolen", find).with(&[
    RuleTrait::TakesCpu,
    RuleTrait::OtherPrograms,
    RuleTrait::OnlyDelays,
]);

/// A virtual machine counts the time in which it was ready to run and did not get a CPU.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let impact = impact_of_waiting(run)?;
    let machines = machines(run);
    let found = machines.iter().filter_map(|machine| {
        let used = CpuUse::of(run, machine.endpoint);
        let all = used.len();
        let robbed = lasting(used, |used| used.stolen / used.cpus > SHARE_MIN)?;
        Some((machine, mean(&robbed)?, (robbed.len(), all)))
    });
    let (machine, used, (intervals, all)) = found.max_by(|one, other| {
        (one.1.stolen / one.1.cpus).total_cmp(&(other.1.stolen / other.1.cpus))
    })?;
    if used.at_ms > impact.last_ms {
        return None;
    }
    let share = used.stolen / used.cpus;
    let text = format!(
        "The hypervisor took {} of the CPUs of {} for its other guests. This was so in {intervals} \
         of {all} intervals, and {}.",
        whole_percent(share),
        machine.whose,
        impact.what
    );
    let stolen = stolen(run, machine.endpoint)?;
    let finding = Finding::new(RULE.id, machine.side, text)
        .with_severity(impact.severity)
        .with_confidence(0.9)
        .with_evidence([stolen])
        .with_evidence([impact.evidence])
        .remedied_by(
        "repeat the run at another hour, or on a machine with dedicated CPUs (not burstable ones)",
    );
    Some(finding)
}

fn stolen(run: &RunView<'_>, end: Endpoint) -> Option<Evidence> {
    let growth = run.growth_of("machine.cpu_stolen_us", |sample| {
        Some(run.machine(end, sample)?.cpu_stolen_us as i64)
    })?;
    Some(growth.evidence())
}

/// The smallest share that matters. A few per cent are normal for a virtual machine and change
/// latencies by as much.
const SHARE_MIN: f64 = 0.10;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;

    /// A run whose generator is late from the sixth second on, while this many microseconds of each
    /// second are stolen.
    fn robbed(us: u64) -> Run {
        Run::quiet()
            .loaded(|load, second| load.lag.record_n(30_000, if second > 5 { 900 } else { 0 }))
            .changed(move |interval, second| {
                let machine = interval.machine.as_mut().unwrap();
                machine.cpu_stolen_us = us * second.saturating_sub(4);
                machine.cpu_idle_us -= us * second.saturating_sub(4);
            })
    }

    #[test]
    fn stolen_time_that_made_the_generator_late_is_told() {
        let found = robbed(600_000).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The hypervisor took 30 % of the CPUs of this machine for its other guests"
        );
        assert!(found.text.contains(" This was so in 6 of 10 intervals, and the gen"), "{found}");
        assert_eq!(found.began_ms(), Some(5_000));
        robbed(600_000).check_all(&["cpu_stolen", "generator_saturated"]);
    }

    #[test]
    fn a_few_per_cent_and_theft_without_a_symptom_are_not() {
        robbed(60_000).is_silent(&RULE);
        let mut harmless = robbed(600_000);
        harmless = harmless.loaded(|load, _| load.lag.clear());
        harmless.is_silent(&RULE);
    }
}
