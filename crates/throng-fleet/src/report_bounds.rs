//! What the report of an agent may say.

use std::time::Duration;

use throng_load::generator::CoreStats;
use throng_load::peers::AHEAD_MAX;
use throng_load::schedule::MachineShare;
use throng_measure::{KernelCounters, MachineUse, ProcessUse, ProgramUse};

use crate::message::LoadReport;
use crate::within::COUNT_MAX;

impl LoadReport {
    /// Checks the report of a machine with this share, `elapsed` after the run began. Its cores
    /// said `before` last; it is empty if that is not known.
    ///
    /// # Errors
    /// It is from the future, has cores that the machine does not have, or counts what no machine
    /// counts in that time.
    pub(crate) fn check(
        &self,
        share: MachineShare,
        before: &[&CoreStats],
        elapsed: Duration,
    ) -> Result<(), String> {
        let until = elapsed + AHEAD_MAX;
        let at = Duration::from_micros(self.at_us);
        if at > until {
            let ahead = at - elapsed;
            return Err(format!("a report from {ahead:.0?} ahead: {AHEAD_MAX:?} at most"));
        }
        if u128::from(self.number) > until.as_millis() {
            return Err(format!("report {} within {elapsed:.0?}", self.number));
        }
        self.check_cores(share, before, at)?;
        self.check_machine()
    }

    fn check_cores(
        &self,
        share: MachineShare,
        before: &[&CoreStats],
        at: Duration,
    ) -> Result<(), String> {
        let all = share.cores();
        let mut has_core = vec![false; all];
        let unknown = CoreStats::default();
        for stats in &self.cores {
            let core = stats.core_id;
            match has_core.get_mut(core) {
                None => return Err(format!("core {core} of {all}")),
                Some(true) => return Err(format!("core {core} twice in one report")),
                Some(has_core) => *has_core = true,
            }
            stats.check(before.get(core).copied().unwrap_or(&unknown), at)?;
        }
        let threads = self.cpu_us_per_core.len();
        if threads > all {
            return Err(format!("the CPU time of {threads} cores: it has {all}"));
        }
        Ok(())
    }

    fn check_machine(&self) -> Result<(), String> {
        if let Some(count) = self.cpu_us_per_core.iter().find(|count| **count > COUNT_MAX) {
            return Err(too_large(*count));
        }
        check_use(Some(&self.process), self.machine.as_ref(), &self.programs, &self.kernel)
    }
}

/// Checks what a machine tells of itself.
///
/// # Errors
/// A number is larger than that of any machine.
pub(crate) fn check_use(
    process: Option<&ProcessUse>,
    machine: Option<&MachineUse>,
    programs: &[ProgramUse],
    kernel: &KernelCounters,
) -> Result<(), String> {
    let process = process.into_iter().flat_map(|it| {
        let ProcessUse { pid: _, cpu_user_us, cpu_system_us, rss_bytes, rss_bytes_at_start } = *it;
        [cpu_user_us, cpu_system_us, rss_bytes, rss_bytes_at_start]
    });
    let machine = machine.into_iter().flat_map(|it| {
        let MachineUse { cpus, cpu_busy_us, cpu_idle_us, cpu_stolen_us } = *it;
        [cpus, cpu_busy_us, cpu_idle_us, cpu_stolen_us]
    });
    let programs = programs.iter().map(|ProgramUse { millicpus, .. }| *millicpus);
    let mut all = process.chain(machine).chain(programs);
    match all.find(|count| *count > COUNT_MAX) {
        Some(count) => Err(too_large(count)),
        None => check_kernel(kernel),
    }
}

fn too_large(count: u64) -> String {
    format!("the number {count} of its machine: {COUNT_MAX} at most")
}

fn check_kernel(kernel: &KernelCounters) -> Result<(), String> {
    let mut values = 0;
    for (name, value) in kernel.iter() {
        values += 1;
        if name.len() > KERNEL_NAME_BYTES_MAX || values > KERNEL_VALUES_MAX {
            return Err(format!("more than {KERNEL_VALUES_MAX} counters of its kernel"));
        }
        // What a kernel counts since it was started: bytes, for years. No limit is `i64::MAX`.
        if value < -1 || value > KERNEL_COUNT_MAX && value != i64::MAX {
            return Err(format!("the counter {value} of its kernel: {KERNEL_COUNT_MAX} at most"));
        }
    }
    Ok(())
}

/// Counters of a kernel that a report has at most.
const KERNEL_VALUES_MAX: usize = 4_096;
/// Bytes of the name of a counter at most.
const KERNEL_NAME_BYTES_MAX: usize = 128;
/// What a kernel counts at most.
const KERNEL_COUNT_MAX: i64 = 1 << 60;

#[cfg(test)]
mod tests {
    use throng_measure::Metric;

    use super::*;

    const ELAPSED: Duration = Duration::from_secs(10);

    #[track_caller]
    fn check(change: impl FnOnce(&mut LoadReport), why: &str) {
        let share = MachineShare::deal(&[1, 2])[1];
        let cores = vec![CoreStats::new(0, 1), CoreStats::new(1, 1)];
        let before: Vec<_> = cores.iter().collect();
        let mut report = LoadReport {
            number: 10,
            at_us: 10_000_000,
            cores: cores.clone(),
            ..LoadReport::default()
        };
        assert_eq!(report.check(share, &before, ELAPSED), Ok(()));
        change(&mut report);
        let error = report.check(share, &before, ELAPSED).unwrap_err();
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn a_report_that_no_machine_can_make_is_refused() {
        check(|report| report.at_us = 70_000_001, "60s ahead: 60s at most");
        check(|report| report.at_us = u64::MAX, "ahead: 60s at most");
        check(|report| report.number = u64::MAX, "report 18446744073709551615 within 10s");
        check(|report| report.cores[1].core_id = 2, "core 2 of 2");
        check(|report| report.cores[1].core_id = 0, "core 0 twice");
        check(|report| report.cores[1].counters.connects_ok = u64::MAX, "a count of");
        check(|report| report.cpu_us_per_core = vec![1; 3], "of 3 cores: it has 2");
        check(|report| report.cpu_us_per_core = vec![u64::MAX], "of its machine");
        check(|report| report.process.rss_bytes = u64::MAX, "of its machine");
        let machine = MachineUse { cpu_busy_us: u64::MAX, ..MachineUse::default() };
        check(|report| report.machine = Some(machine), "of its machine");
        let overflows = Metric::TCPEXT_LISTEN_OVERFLOWS;
        check(|report| report.kernel.set(overflows, KERNEL_COUNT_MAX + 1), "of its kernel");
        check(|report| report.kernel.set(overflows, i64::MIN), "of its kernel");
    }
}
