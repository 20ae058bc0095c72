//! What a comparison keeps of a run: groups of intervals, to resample them.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use crate::{
    Histogram, Interval, LatencyTotal, LoadInterval, STEP_NAMES_MAX, ServerSnapshot, StepInterval,
};

/// The most groups of intervals that are kept of a run. In a longer run, a group is of several
/// intervals.
pub const GROUPS_MAX: usize = 256;

/// The latencies of a sample, by the names of thresholds.
const LATENCIES: [&str; 7] =
    ["connect", "tcp", "message", "join", "push", "broadcast", "generator.lag"];

/// A run as groups of intervals in their order, and its latencies.
#[derive(Clone, Debug)]
pub struct RunSample {
    groups: Vec<IntervalGroup>,
    intervals: u64,
    intervals_per_group: u64,
    in_last_group: u64,
    totals: [LatencyTotal; LATENCIES.len()],
    step_totals: BTreeMap<String, LatencyTotal>,
    last_load: LoadInterval,
    last_server: Option<ServerSnapshot>,
    last_machine_us: Option<u64>,
}

/// What happened in a group of intervals.
#[derive(Clone, Debug, Default)]
pub(super) struct IntervalGroup {
    pub(super) work: IntervalWork,
    latencies: [LatencyCells; LATENCIES.len()],
    /// The latencies of the steps with a name.
    steps: BTreeMap<String, LatencyCells>,
}

/// The latencies of a group, as pairs of a value in microseconds and its count, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct LatencyCells {
    pub(super) answered: Vec<(u32, u32)>,
    pub(super) unanswered: Vec<(u32, u32)>,
}

/// The work of a group, and what it cost. CPU times are in microseconds, 0 where unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IntervalWork {
    /// The time in which the generator's counters grew.
    pub(super) grown_us: u64,
    pub(super) connects: u64,
    pub(super) sent: u64,
    pub(super) answered: u64,
    pub(super) joins: u64,
    pub(super) pushes: u64,
    pub(super) received: u64,
    pub(super) errors: u64,
    pub(super) attempts: u64,
    pub(super) accepted: u64,
    pub(super) server_received: u64,
    pub(super) generator_cpu_us: u64,
    pub(super) machine_cpu_us: u64,
    pub(super) server_cpu_us: u64,
}

impl Default for RunSample {
    fn default() -> Self {
        Self {
            groups: Vec::new(),
            intervals: 0,
            intervals_per_group: 1,
            in_last_group: 1,
            totals: Default::default(),
            step_totals: BTreeMap::new(),
            last_load: LoadInterval::default(),
            last_server: None,
            last_machine_us: None,
        }
    }
}

impl RunSample {
    /// Starts a sample without intervals.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next interval.
    pub fn add(&mut self, interval: &Interval) {
        let work = self.work(interval);
        let Some(load) = &interval.load else { return };
        self.intervals += u64::from(interval.span_ms > 0);
        if self.in_last_group == self.intervals_per_group {
            if self.groups.len() >= GROUPS_MAX {
                self.halve();
            }
            self.groups.push(IntervalGroup::default());
            self.in_last_group = 0;
        }
        self.in_last_group += 1;
        let Some(group) = self.groups.last_mut() else { return };
        group.work += work;
        let all = group.latencies.iter_mut().zip(&mut self.totals).zip(histograms(load));
        for ((cells, total), (answered, unanswered)) in all {
            cells.answered = merge(&cells.answered, answered);
            total.answered.merge(answered);
            if let Some(unanswered) = unanswered {
                cells.unanswered = merge(&cells.unanswered, unanswered);
                total.unanswered.merge(unanswered);
            }
        }
        for step in load.steps.iter().take(STEP_NAMES_MAX) {
            let name = format!("step.{}", step.name);
            let is_known = self.step_totals.contains_key(&name);
            if is_known || self.step_totals.len() < STEP_NAMES_MAX {
                group.steps.entry(name.clone()).or_default().merge(step);
                let total = self.step_totals.entry(name).or_default();
                total.answered.merge(step.best());
                total.unanswered.merge(&step.unanswered);
            }
        }
    }

    /// Returns the number of intervals.
    pub fn intervals(&self) -> u64 {
        self.intervals
    }

    pub(super) fn groups(&self) -> &[IntervalGroup] {
        &self.groups
    }

    /// Returns a latency over the run, by its name in thresholds.
    pub(super) fn total(&self, latency: &str) -> Option<&LatencyTotal> {
        match LATENCIES.iter().position(|name| *name == latency) {
            Some(at) => self.totals.get(at),
            None => self.step_totals.get(latency),
        }
    }

    /// Merges every two groups, and begins a new one.
    fn halve(&mut self) {
        self.intervals_per_group *= 2;
        let mut groups = std::mem::take(&mut self.groups).into_iter();
        while let Some(mut group) = groups.next() {
            if let Some(next) = groups.next() {
                group.add(&next);
            }
            self.groups.push(group);
        }
    }

    /// Returns the growth since the interval before. While all users leave, only errors count.
    fn work(&mut self, interval: &Interval) -> IntervalWork {
        let mut work = IntervalWork::default();
        if let Some(server) = &interval.server {
            if let Some(last) = self.last_server.take() {
                let is_new = last.process.pid != server.process.pid;
                let last = if is_new { ServerSnapshot::default() } else { last };
                let grown = server.counters.since(&last.counters);
                work.accepted = grown.accepted;
                work.server_received = grown.messages_received;
                work.server_cpu_us = server.process.cpu_us().saturating_sub(last.process.cpu_us());
            }
            self.last_server = Some(server.clone());
        }
        if let Some(machine) = &interval.machine {
            let last = self.last_machine_us.replace(machine.cpu_busy_us);
            work.machine_cpu_us = last.map_or(0, |last| machine.cpu_busy_us.saturating_sub(last));
        }
        let Some(load) = &interval.load else { return IntervalWork::default() };
        let last = std::mem::replace(&mut self.last_load, load.without_measured());
        let grown = load.counters.since(&last.counters);
        let errors =
            |load: &LoadInterval| load.errors.total().saturating_add(load.counters.connects_failed);
        work.errors = errors(load).saturating_sub(errors(&last));
        let messages = grown.messages_sent.max(grown.messages_expected);
        let attempts = [grown.connects_ok, grown.connects_failed, grown.joins_started];
        work.attempts = attempts.into_iter().fold(messages, u64::saturating_add);
        work.attempts = work.attempts.saturating_add(grown.pushes_sent);
        if load.is_leaving() {
            return IntervalWork {
                errors: work.errors,
                attempts: work.attempts,
                ..IntervalWork::default()
            };
        }
        work.grown_us =
            if load.grown_us > 0 { load.grown_us } else { interval.span_ms.saturating_mul(1_000) };
        work.connects = grown.connects_ok;
        work.sent = grown.messages_sent;
        work.answered = grown.messages_answered;
        work.joins = grown.joins_ok;
        work.pushes = grown.pushes_ok;
        work.received = grown.messages_received;
        // The first interval of a file says what was used before the load began.
        let is_first = interval.span_ms == 0;
        let cpu_us = load.process.cpu_us().saturating_sub(last.process.cpu_us());
        work.generator_cpu_us = if is_first { 0 } else { cpu_us };
        work
    }
}

impl IntervalGroup {
    /// Returns a latency of the group, by its name in thresholds.
    pub(super) fn cells(&self, latency: &str) -> Option<&LatencyCells> {
        match LATENCIES.iter().position(|name| *name == latency) {
            Some(at) => self.latencies.get(at),
            None => self.steps.get(latency),
        }
    }

    fn add(&mut self, next: &Self) {
        self.work += next.work;
        for (cells, added) in self.latencies.iter_mut().zip(&next.latencies) {
            cells.add(added);
        }
        for (name, added) in &next.steps {
            self.steps.entry(name.clone()).or_default().add(added);
        }
    }
}

impl LatencyCells {
    fn add(&mut self, next: &Self) {
        self.answered = merge_cells(&self.answered, next.answered.iter().copied());
        self.unanswered = merge_cells(&self.unanswered, next.unanswered.iter().copied());
    }

    fn merge(&mut self, step: &StepInterval) {
        self.answered = merge(&self.answered, step.best());
        self.unanswered = merge(&self.unanswered, &step.unanswered);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.answered.is_empty() && self.unanswered.is_empty()
    }
}

impl AddAssign for IntervalWork {
    fn add_assign(&mut self, next: Self) {
        // A run file may be anything.
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.grown_us, next.grown_us);
        add(&mut self.connects, next.connects);
        add(&mut self.sent, next.sent);
        add(&mut self.answered, next.answered);
        add(&mut self.joins, next.joins);
        add(&mut self.pushes, next.pushes);
        add(&mut self.received, next.received);
        add(&mut self.errors, next.errors);
        add(&mut self.attempts, next.attempts);
        add(&mut self.accepted, next.accepted);
        add(&mut self.server_received, next.server_received);
        add(&mut self.generator_cpu_us, next.generator_cpu_us);
        add(&mut self.machine_cpu_us, next.machine_cpu_us);
        add(&mut self.server_cpu_us, next.server_cpu_us);
    }
}

/// Returns the histograms of an interval in the order of [`LATENCIES`], each with its waits that no
/// answer ended.
fn histograms(load: &LoadInterval) -> [(&Histogram, Option<&Histogram>); LATENCIES.len()] {
    let (best, waits) = (load.latencies(), &load.unanswered);
    [
        (best.connect, Some(&waits.connect)),
        (best.tcp, Some(&waits.tcp)),
        (best.message, Some(&waits.message)),
        (best.join, Some(&waits.join)),
        (best.push, Some(&waits.push)),
        (best.broadcast, None),
        (&load.lag, None),
    ]
}

fn merge(cells: &[(u32, u32)], histogram: &Histogram) -> Vec<(u32, u32)> {
    let cell = |(us, n): (u64, u32)| (u32::try_from(us).unwrap_or(u32::MAX), n);
    merge_cells(cells, histogram.iter().map(cell))
}

/// Merges two ordered lists of cells.
fn merge_cells(cells: &[(u32, u32)], added: impl Iterator<Item = (u32, u32)>) -> Vec<(u32, u32)> {
    let mut added = added.peekable();
    let mut merged = Vec::with_capacity(cells.len());
    for &(us, n) in cells {
        while let Some(cell) = added.next_if(|cell| cell.0 < us) {
            merged.push(cell);
        }
        let more = added.next_if(|cell| cell.0 == us).map_or(0, |cell| cell.1);
        merged.push((us, n.saturating_add(more)));
    }
    merged.extend(added);
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(second: u64, us: u64) -> Interval {
        let mut load = LoadInterval::default();
        load.counters.connects_ok = second;
        load.connect.record_n(us, 3);
        Interval { at_ms: second * 1_000, span_ms: 1_000, load: Some(load), ..Default::default() }
    }

    #[test]
    fn a_long_run_is_kept_in_bounded_groups_that_lose_nothing() {
        for seconds in [5, 256, 257, 512, 513, 515, 5_000] {
            let mut sample = RunSample::new();
            (1..=seconds).for_each(|second| sample.add(&interval(second, second)));
            assert!(sample.groups.len() <= GROUPS_MAX, "{}", sample.groups.len());
            assert!(seconds < 300 || sample.groups.len() >= GROUPS_MAX / 2);
            let connects: u64 = sample.groups.iter().map(|group| group.work.connects).sum();
            let cells = sample.groups.iter().flat_map(|group| &group.latencies[0].answered);
            let answers: u64 = cells.map(|cell| u64::from(cell.1)).sum();
            assert_eq!((connects, answers), (seconds, 3 * seconds));
            assert_eq!(sample.total("connect").unwrap().answered.count(), answers);
            assert_eq!(sample.intervals(), seconds);
        }
    }

    #[test]
    fn cells_stay_in_order_when_they_are_merged() {
        let merged = merge_cells(&[(1, 1), (5, 2)], [(0, 1), (1, 1), (3, 4), (9, 1)].into_iter());
        assert_eq!(merged, [(0, 1), (1, 2), (3, 4), (5, 2), (9, 1)]);
    }
}
