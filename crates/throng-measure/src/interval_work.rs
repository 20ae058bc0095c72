//! What a load did in an interval: the counters' growth, and what was due.

use crate::{Interval, LoadCounters, Operation, PerOperation, ProcessMetric};

/// The work of a load in an interval, or in several that follow each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntervalWork {
    /// The time that it took, in milliseconds; more than an interval if lines are missing.
    pub span_ms: u64,
    /// Connects that should have begun. A user that should have started and did not would have
    /// begun one; a user that starts late begins one that was due before.
    pub connects_due: u64,
    /// Operations that ended as expected: messages that were sent, if none of the run is ever
    /// answered, and deliveries of broadcasts that arrived in time.
    pub done: PerOperation<u64>,
    /// Turns of `every` that came due.
    pub turns_due: u64,
    /// CPU time of the generator, in microseconds.
    pub load_cpu_us: u64,
    /// CPU time of the server, in microseconds; `None` if it is unknown.
    pub server_cpu_us: Option<u64>,
}

impl IntervalWork {
    /// Returns the work of `interval`, counted from `previous` or from the beginning.
    pub fn of(interval: &Interval, previous: Option<&Interval>) -> Self {
        // Lines may be missing between the two.
        let gap_ms = interval.at_ms.saturating_sub(previous.map_or(0, |previous| previous.at_ms));
        let span_ms = interval.span_ms.max(gap_ms);
        let Some(load) = &interval.load else { return Self { span_ms, ..Self::default() } };
        let nothing = Default::default();
        let before = previous.and_then(|interval| interval.load.as_ref()).unwrap_or(&nothing);
        let grown = load.counters.since(&before.counters);
        let server_cpu = |interval: &Interval| server_cpu_us(interval);
        let server_cpu_us = server_cpu(interval)
            .zip(previous.and_then(server_cpu))
            // A counter that falls is that of another process.
            .and_then(|(now, before)| now.checked_sub(before));
        Self {
            span_ms,
            connects_due: connects_due(&before.counters, &load.counters),
            done: PerOperation::of(|operation| match operation {
                Operation::Message if load.counters.messages_answered == 0 => grown.messages_sent,
                Operation::Broadcast => load.probe.since(&before.probe).delivered,
                other => other.counts(&grown).map_or(0, |counts| counts.ok),
            }),
            turns_due: grown.turns_intended,
            load_cpu_us: load.process.cpu_us().saturating_sub(before.process.cpu_us()),
            server_cpu_us,
        }
    }

    /// Returns how often an operation should have been done, where the scenario says so.
    pub fn due(&self, operation: Operation) -> Option<u64> {
        match operation {
            Operation::Message => Some(self.turns_due).filter(|due| *due > 0),
            Operation::Connect => Some(self.connects_due),
            _ => None,
        }
    }

    /// Adds the work of the interval that follows.
    pub fn merge(&mut self, next: &Self) {
        self.span_ms += next.span_ms;
        self.connects_due += next.connects_due;
        self.done.iter_mut().for_each(|(operation, done)| *done += next.done[operation]);
        self.turns_due += next.turns_due;
        self.load_cpu_us += next.load_cpu_us;
        let both = self.server_cpu_us.zip(next.server_cpu_us);
        self.server_cpu_us = both.map(|(one, two)| one + two);
    }

    /// Returns the rate of one of its counts; `None` if it took no time.
    pub fn per_second(&self, n: u64) -> Option<f64> {
        (self.span_ms > 0).then(|| n as f64 * 1000.0 / self.span_ms as f64)
    }
}

/// Returns the number of connects that should have begun between the two.
fn connects_due(before: &LoadCounters, now: &LoadCounters) -> u64 {
    let late =
        |counters: &LoadCounters| counters.users_intended.saturating_sub(counters.users_started);
    let begun = now.connects_started.saturating_sub(before.connects_started);
    begun.saturating_add(late(now)).saturating_sub(late(before))
}

/// Returns the CPU time of the server's process so far: as the server says, else as its kernel
/// does.
pub fn server_cpu_us(interval: &Interval) -> Option<u64> {
    let said = interval.server.as_ref().map(|server| server.process.cpu_us());
    let seen = [&interval.server_kernel, &interval.kernel]
        .into_iter()
        .find_map(|kernel| kernel.get(ProcessMetric::CPU_US.server));
    said.filter(|us| *us > 0).or_else(|| u64::try_from(seen?).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LoadInterval, ProcessUse, ServerSnapshot};

    fn interval(at_ms: u64, connects: u64, server_cpu_us: u64) -> Interval {
        let counters = LoadCounters { connects_ok: connects, ..Default::default() };
        let process = ProcessUse { cpu_user_us: server_cpu_us, ..Default::default() };
        Interval {
            at_ms,
            span_ms: 1000,
            load: Some(LoadInterval { counters, ..Default::default() }),
            server: Some(ServerSnapshot { process, ..Default::default() }),
            ..Default::default()
        }
    }

    #[test]
    fn work_counts_from_the_interval_before() {
        let (one, two) = (interval(1000, 5, 100), interval(3000, 25, 700));
        let mut work = IntervalWork::of(&one, None);
        assert_eq!(
            (work.done[Operation::Connect], work.span_ms, work.server_cpu_us),
            (5, 1000, None)
        );
        let next = IntervalWork::of(&two, Some(&one));
        assert_eq!(
            (next.done[Operation::Connect], next.span_ms, next.server_cpu_us),
            (20, 2000, Some(600))
        );
        assert_eq!(next.per_second(next.done[Operation::Connect]), Some(10.0));
        work.merge(&next);
        assert_eq!(
            (work.done[Operation::Connect], work.span_ms, work.server_cpu_us),
            (25, 3000, None)
        );
        assert_eq!(IntervalWork::of(&interval(4000, 25, 5), Some(&two)).server_cpu_us, None);
        assert_eq!(IntervalWork::default().per_second(3), None);
    }
}
