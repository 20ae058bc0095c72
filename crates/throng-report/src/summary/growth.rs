//! The growth of all counters from one interval to the next.

use throng_measure::{
    Interval, LoadCounters, LoadInterval, MachineUse, Operation, PerOperation, ProcessMetric,
    ServerCounters, ServerSnapshot,
};

use super::rates::{Cpu, IntervalGrowth, MachineCpu};

/// The values of the last interval, to which those of the next one are compared.
///
/// Counters are totals since the start. After missing lines their growth covers the whole gap, and
/// so does its time.
#[derive(Clone, Debug, Default)]
pub(crate) struct GrowthFold {
    end_ms: u64,
    load: LoadCounters,
    load_cpu_us: u64,
    errors: u64,
    leaving: bool,
    machine: Option<MachineUse>,
    server: Option<ServerTotals>,
    /// CPU time of a server that is not throng's, and the end of the interval that had it.
    foreign: Option<(u64, u64)>,
}

/// The totals of a server, and the end of the interval that had them.
#[derive(Clone, Debug, Default)]
struct ServerTotals {
    at_ms: u64,
    pid: u32,
    counters: ServerCounters,
    cpu_us: u64,
}

impl GrowthFold {
    /// Returns the work of the next interval.
    pub(crate) fn add(&mut self, interval: &Interval) -> IntervalGrowth {
        let gap_ms = interval.at_ms.saturating_sub(self.end_ms);
        let span_ms = interval.span_ms.max(gap_ms);
        self.end_ms = self.end_ms.max(interval.at_ms);
        let grown_us = span_ms.saturating_mul(1_000);
        let mut growth = IntervalGrowth { span_ms, grown_us, ..IntervalGrowth::default() };
        if let Some(load) = &interval.load {
            if load.grown_us > 0 {
                // The values of missing lines are not included.
                let missing_us = (span_ms - interval.span_ms).saturating_mul(1_000);
                growth.grown_us = load.grown_us.saturating_add(missing_us);
            }
            self.add_load(load, &mut growth);
        }
        growth.leaving = self.leaving;
        if let Some(machine) = &interval.machine {
            let last = self.machine.as_ref().filter(|last| span_ms > 0 && *last != machine);
            growth.machine_cpu = last.map(|last| MachineCpu {
                busy_us: machine.cpu_busy_us.saturating_sub(last.cpu_busy_us),
                idle_us: machine.cpu_idle_us.saturating_sub(last.cpu_idle_us),
                stolen_us: machine.cpu_stolen_us.saturating_sub(last.cpu_stolen_us),
            });
            self.machine = Some(machine.clone());
        }
        if let Some(server) = &interval.server {
            self.add_server(interval.at_ms, server, &mut growth);
        }
        growth.foreign_cpu = self.foreign_cpu(interval);
        growth
    }

    /// Returns the end of the last interval.
    pub(super) fn end_ms(&self) -> u64 {
        self.end_ms
    }

    /// Returns the last sample of the generator's machine.
    pub(super) fn machine(&self) -> Option<&MachineUse> {
        self.machine.as_ref()
    }

    fn add_load(&mut self, load: &LoadInterval, growth: &mut IntervalGrowth) {
        let grown = load.counters.since(&self.load);
        growth.ok = PerOperation::of(|of| of.counts(&grown).map_or(0, |counts| counts.ok));
        growth.resumed = grown.tls_resumed;
        growth.sent = grown.messages_sent;
        growth.received_by_users = grown.messages_received;
        growth.turns_intended = grown.turns_intended;
        let begun = Operation::requests().map(|operation| match operation {
            Operation::Message => grown.messages_sent.max(grown.messages_expected),
            other => other.counts(&grown).map_or(0, |counts| counts.started),
        });
        growth.attempts = begun.fold(grown.connect_steps_ended(), u64::saturating_add);
        let errors = load.errors.total().saturating_add(load.counters.connects_failed);
        growth.errors = errors.saturating_sub(self.errors);
        // The process lives as long as the run: its use before the first line does not matter.
        let cpu_us = load.process.cpu_us();
        growth.load_cpu_us = (load.process.is_known() && growth.span_ms > 0)
            .then(|| cpu_us.saturating_sub(self.load_cpu_us));
        self.load = load.counters.clone();
        (self.load_cpu_us, self.errors, self.leaving) = (cpu_us, errors, load.is_leaving());
    }

    fn add_server(&mut self, at_ms: u64, server: &ServerSnapshot, growth: &mut IntervalGrowth) {
        let (pid, cpu_us) = (server.process.pid, server.process.cpu_us());
        let now = ServerTotals { at_ms, pid, counters: server.counters.clone(), cpu_us };
        let Some(last) = self.server.replace(now) else { return };
        let span_ms = at_ms.saturating_sub(last.at_ms);
        // The counters of a process that starts within the run begin at zero.
        let last = if last.pid == pid { last } else { ServerTotals::default() };
        let grown = server.counters.since(&last.counters);
        growth.accepted = grown.accepted;
        growth.received = grown.messages_received;
        let us = cpu_us.saturating_sub(last.cpu_us);
        growth.server_cpu = (span_ms > 0).then_some(Cpu { span_ms, us });
    }

    fn foreign_cpu(&mut self, interval: &Interval) -> Option<Cpu> {
        let now_us = of_server(interval, ProcessMetric::CPU_US)?;
        let (before_ms, before_us) = self.foreign.replace((interval.at_ms, now_us))?;
        let us = now_us.checked_sub(before_us)?;
        let span_ms = interval.at_ms.saturating_sub(before_ms);
        (span_ms > 0).then_some(Cpu { span_ms, us })
    }
}

/// Returns a value of the server's process, as the kernel of its machine counts it.
pub(super) fn of_server(interval: &Interval, metric: ProcessMetric) -> Option<u64> {
    let counters = [&interval.server_kernel, &interval.kernel];
    let value = counters.into_iter().find_map(|counters| counters.get(metric.server))?;
    u64::try_from(value).ok()
}
