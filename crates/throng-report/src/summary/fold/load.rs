//! The generator's part of a summary.

use std::collections::BTreeMap;

use throng_measure::validity::LAG_DEGRADED_US;
use throng_measure::{
    ArrivalLatencies, ErrorKind, Histogram, LatencyStats, LoadInterval, Merge, OperationTimes,
    ProbeReport, STEP_NAMES_MAX,
};

use super::super::memory::MemoryFold;
use super::ratio;

/// The generator's intervals so far.
#[derive(Debug, Default)]
pub(super) struct LoadFold {
    pub(super) intervals: u64,
    /// The last interval, without its histograms.
    pub(super) last: LoadInterval,
    pub(super) errors: throng_measure::Tally,
    pub(super) times: OperationTimes,
    /// The latencies by the better clock, each answer once.
    pub(super) arrival: ArrivalLatencies,
    /// Whether the file has latencies by the kernel's clock.
    pub(super) is_stamped: bool,
    pub(super) lag: Histogram,
    /// The largest lag, and the end of its interval.
    pub(super) lag_us_most: u64,
    pub(super) lag_most_at_ms: Option<u64>,
    pub(super) latency_stats: BTreeMap<String, LatencyStats>,
    /// The latest report of each probe.
    pub(super) probes: BTreeMap<u64, ProbeReport>,
    /// The probes that were due one interval before the last.
    pub(super) probes_due_before: u64,
    pub(super) joined_most: u64,
    pub(super) active_most: u64,
    pub(super) memory: MemoryFold,
    /// The growth of the backlog of turns while the generator was late.
    pub(super) backlog_grown_late: u64,
    /// Users that should have begun and had not, on the last line before all users began to leave.
    pub(super) missing_before_leaving: u64,
}

impl LoadFold {
    /// Returns the probes that were due and had subscribers.
    pub(super) fn probes_due(&self) -> u64 {
        let probe = &self.last.probe;
        probe.intended.saturating_sub(probe.skipped)
    }

    pub(super) fn add(&mut self, load: &LoadInterval, at_ms: u64, span_ms: u64) {
        let (before, now) = (&self.last.counters, &load.counters);
        // When all users leave, the counters include turns that came due while their users waited
        // for the target.
        if load.lag.percentile(99.0) > LAG_DEGRADED_US && !load.is_leaving() {
            self.backlog_grown_late += backlog(now).saturating_sub(backlog(before));
        }
        self.times.merge(&load.times);
        self.arrival.merge_best(load);
        self.is_stamped |= !load.arrival.is_empty();
        self.lag.merge(&load.lag);
        for (name, stats) in &load.latency_stats {
            let has_room = self.latency_stats.len() < LATENCY_NAMES_MAX;
            if has_room || self.latency_stats.contains_key(name) {
                self.latency_stats.entry(name.clone()).or_default().merge(stats);
            }
        }
        let lag_us = load.lag.max();
        if lag_us > self.lag_us_most {
            self.lag_us_most = lag_us;
            self.lag_most_at_ms = Some(at_ms);
        }
        for probe in &load.probes {
            if self.probes.len() < PROBES_MAX || self.probes.contains_key(&probe.number) {
                self.probes.insert(probe.number, probe.clone());
            }
        }
        self.joined_most = self.joined_most.max(now.joined);
        self.active_most = self.active_most.max(now.users_active);
        self.memory.add(now.connected, &load.process);
        self.errors = load.errors.clone();
        if now.connects_failed > 0 {
            self.errors.0.insert(ErrorKind::Connect.into(), now.connects_failed);
        }
        self.intervals += u64::from(span_ms > 0);
        if !load.is_leaving() {
            self.missing_before_leaving = missing(now);
        }
        self.probes_due_before = self.probes_due();
        self.last = load.without_measured();
    }

    /// Returns the number of users that should have begun and did not. The schedule of an
    /// interrupted run still counts users that should have begun, but only users missing before the
    /// interruption count.
    pub(super) fn users_missing(&self, interrupted: bool) -> u64 {
        let now = missing(&self.last.counters);
        if interrupted && self.last.is_leaving() {
            now.min(self.missing_before_leaving)
        } else {
            now
        }
    }

    /// Returns the share of answers whose exact arrival the kernel reported; `None` if the file has
    /// no arrivals.
    pub(super) fn by_kernels_clock(&self) -> Option<f64> {
        let of_all = || ratio(self.arrival.by_kernel(), self.arrival.answers());
        self.is_stamped.then(of_all).flatten()
    }

    /// Reports whether the kernel timed the arrival of all answers but very few.
    pub(super) fn arrivals_are_known(&self) -> bool {
        let own = self.arrival.by_own_clock as f64;
        self.is_stamped && own <= self.arrival.answers() as f64 * OWN_CLOCK_MAX
    }

    /// Returns the number of turns that the generator kept from starting, and that did not start
    /// later.
    pub(super) fn turns_missed(&self) -> u64 {
        backlog(&self.last.counters).min(self.backlog_grown_late)
    }
}

/// The most latencies without values that are kept: of each kind and of each step.
const LATENCY_NAMES_MAX: usize = STEP_NAMES_MAX + 16;
/// The most probes that are kept one by one; the counters are those of all.
const PROBES_MAX: usize = 100_000;
/// The largest share of answers timed by the generator's own clock in a run that counts as timed by
/// the kernel's clock.
const OWN_CLOCK_MAX: f64 = 0.01;

fn missing(counters: &throng_measure::LoadCounters) -> u64 {
    counters.users_intended.saturating_sub(counters.users_started)
}

/// Returns the number of turns that have not begun, except turns lost to an error.
fn backlog(counters: &throng_measure::LoadCounters) -> u64 {
    counters.turns_intended.saturating_sub(counters.turns_started + counters.turns_failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Summary, SummaryFold};
    use throng_measure::Interval;
    use throng_measure::runfile::{RunEndReason, RunHeader};

    #[test]
    fn a_probe_that_was_just_due_is_missing_only_an_interval_later() {
        let mut fold = SummaryFold::new(&RunHeader::default());
        let mut add = |second: u64| {
            let mut load = LoadInterval::default();
            load.probe.intended = 1;
            let span_ms = 1_000;
            let load = Some(load);
            fold.add(&Interval { at_ms: second * 1_000, span_ms, load, ..Interval::default() });
            let is_missing = |summary: Summary| {
                summary.validity.reasons.iter().any(|reason| reason.contains("1 of 1 probes"))
            };
            let over = is_missing(fold.finish(Some(RunEndReason::Finished), 0));
            (is_missing(fold.finish(None, 0)), over)
        };
        assert_eq!(add(1), (false, true));
        assert_eq!(add(2), (true, true));
    }
}
