//! What a comparison keeps of a run: groups of intervals, to resample them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

use throng_measure::{
    Histogram, Interval, LatencySummary, LoadInterval, PerOperation, STEP_NAMES_MAX,
};

use crate::summary::{GrowthFold, IntervalGrowth, name_of_class_operation};

/// The most groups of intervals that are kept of a run. In a longer run, a group is of several
/// intervals.
pub const GROUPS_MAX: usize = 256;

/// A run as groups of intervals in their order.
#[derive(Clone, Debug)]
pub struct RunSample {
    growth: GrowthFold,
    groups: Vec<IntervalGroup>,
    intervals: u64,
    /// The lengths of the intervals.
    spans: Histogram,
    intervals_per_group: u64,
    in_last_group: u64,
    /// The names of steps and of operations of classes that are kept.
    names: BTreeSet<String>,
}

/// What happened in a group of intervals.
#[derive(Clone, Debug, Default)]
pub(super) struct IntervalGroup {
    pub(super) work: GroupWork,
    /// Latencies by their names in thresholds.
    latencies: BTreeMap<String, LatencyCells>,
}

/// A list of values in microseconds with their counts, in order.
type Cells = Vec<(u32, u32)>;

/// The values of a latency in a group, by the better clock, each answer once.
#[derive(Clone, Debug, Default)]
pub(super) struct LatencyCells {
    pub(super) answered: Cells,
    pub(super) unanswered: Cells,
}

/// The work of a group, and what it cost. CPU times are in microseconds, 0 where unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GroupWork {
    /// The time in which the generator's counters grew.
    pub(super) grown_us: u64,
    /// Operations that ended as expected.
    pub(super) ok: PerOperation<u64>,
    pub(super) sent: u64,
    pub(super) errors: u64,
    pub(super) attempts: u64,
    pub(super) accepted: u64,
    pub(super) server_received: u64,
    pub(super) generator_cpu_us: u64,
    pub(super) machine_cpu_us: u64,
    pub(super) server_cpu_us: u64,
    /// CPU time of a server that is not throng's.
    pub(super) foreign_cpu_us: u64,
}

/// The most names of steps and of operations of classes that are kept.
const NAMES_MAX: usize = 2 * STEP_NAMES_MAX;

impl Default for RunSample {
    fn default() -> Self {
        Self {
            growth: GrowthFold::default(),
            groups: Vec::new(),
            intervals: 0,
            spans: Histogram::new(),
            intervals_per_group: 1,
            in_last_group: 1,
            names: BTreeSet::new(),
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
        let work = GroupWork::from(&self.growth.add(interval));
        let Some(load) = &interval.load else { return };
        if interval.span_ms > 0 {
            self.intervals += 1;
            self.spans.record_us(interval.span_ms.saturating_mul(1_000));
        }
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
        let none = Histogram::new();
        for (name, answered, unanswered) in kinds(load) {
            group.record(name, answered, unanswered.unwrap_or(&none));
        }
        let steps = load.steps.iter().take(STEP_NAMES_MAX);
        let steps = steps.map(|it| (format!("step.{}", it.name), it.best(), &it.unanswered));
        let of_classes = load.class_operations.iter().flat_map(|(class, operations)| {
            operations.iter().map(move |(operation, it)| {
                (name_of_class_operation(class, operation), it.best(), &it.unanswered)
            })
        });
        for (name, answered, unanswered) in steps.chain(of_classes) {
            if answered.is_empty() && unanswered.is_empty() {
                continue;
            }
            if self.names.len() < NAMES_MAX {
                self.names.insert(name.clone());
            }
            if self.names.contains(&name) {
                group.record(&name, answered, unanswered);
            }
        }
    }

    /// Returns the number of intervals.
    pub fn intervals(&self) -> u64 {
        self.intervals
    }

    /// Returns the usual length of an interval, in seconds; `None` without any. The last one is
    /// shorter, and one of a generator that was late is longer.
    pub(super) fn interval_s(&self) -> Option<f64> {
        let median_us = LatencySummary::from(&self.spans).p50;
        (self.intervals > 0).then_some(median_us as f64 / 1e6)
    }

    pub(super) fn groups(&self) -> &[IntervalGroup] {
        &self.groups
    }

    /// Returns a latency of the groups in which it was measured, by its name in thresholds.
    pub(super) fn latency(&self, name: &str) -> impl Iterator<Item = &LatencyCells> {
        self.groups.iter().filter_map(move |group| group.latencies.get(name))
    }

    /// Merges every two groups.
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
}

impl IntervalGroup {
    /// Adds the values of a latency, and the waits that no answer ended.
    fn record(&mut self, name: &str, answered: &Histogram, unanswered: &Histogram) {
        if answered.is_empty() && unanswered.is_empty() {
            return;
        }
        let cells = self.latencies.entry(name.to_owned()).or_default();
        cells.answered = merge(&cells.answered, answered);
        cells.unanswered = merge(&cells.unanswered, unanswered);
    }

    fn add(&mut self, next: &Self) {
        self.work += next.work;
        for (name, added) in &next.latencies {
            let cells = self.latencies.entry(name.clone()).or_default();
            cells.answered = merge_cells(&cells.answered, added.answered.iter().copied());
            cells.unanswered = merge_cells(&cells.unanswered, added.unanswered.iter().copied());
        }
    }
}

impl LatencyCells {
    pub(super) fn is_empty(&self) -> bool {
        self.answered.is_empty() && self.unanswered.is_empty()
    }
}

/// Takes the work of an interval. While all users leave, only errors count.
impl From<&IntervalGrowth> for GroupWork {
    fn from(growth: &IntervalGrowth) -> Self {
        let (errors, attempts) = (growth.errors, growth.attempts);
        if growth.leaving {
            return Self { errors, attempts, ..Self::default() };
        }
        Self {
            grown_us: growth.grown_us,
            ok: growth.ok,
            sent: growth.sent,
            errors,
            attempts,
            accepted: growth.accepted,
            server_received: growth.received,
            generator_cpu_us: growth.load_cpu_us.unwrap_or(0),
            machine_cpu_us: growth.machine_cpu.map_or(0, |cpu| cpu.busy_us),
            server_cpu_us: growth.server_cpu.map_or(0, |cpu| cpu.us),
            foreign_cpu_us: growth.foreign_cpu.map_or(0, |cpu| cpu.us),
        }
    }
}

impl AddAssign for GroupWork {
    fn add_assign(&mut self, next: Self) {
        // A run file may be anything.
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.grown_us, next.grown_us);
        self.ok.iter_mut().for_each(|(operation, ok)| add(ok, next.ok[operation]));
        add(&mut self.sent, next.sent);
        add(&mut self.errors, next.errors);
        add(&mut self.attempts, next.attempts);
        add(&mut self.accepted, next.accepted);
        add(&mut self.server_received, next.server_received);
        add(&mut self.generator_cpu_us, next.generator_cpu_us);
        add(&mut self.machine_cpu_us, next.machine_cpu_us);
        add(&mut self.server_cpu_us, next.server_cpu_us);
        add(&mut self.foreign_cpu_us, next.foreign_cpu_us);
    }
}

/// Returns the latencies of each kind by their names in thresholds, and the waits that no answer
/// ended.
fn kinds(
    load: &LoadInterval,
) -> impl Iterator<Item = (&'static str, &Histogram, Option<&Histogram>)> {
    let operations = load.times.unanswered.iter().map(|(operation, unanswered)| {
        (operation.name(), load.latency(operation), Some(unanswered))
    });
    operations.chain([("generator.lag", &load.lag, None)])
}

fn merge(cells: &[(u32, u32)], histogram: &Histogram) -> Cells {
    let cell = |(us, n): (u64, u32)| (u32::try_from(us).unwrap_or(u32::MAX), n);
    merge_cells(cells, histogram.iter().map(cell))
}

/// Merges two ordered lists of cells.
fn merge_cells(cells: &[(u32, u32)], added: impl Iterator<Item = (u32, u32)>) -> Cells {
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
    use throng_measure::{Operation, ProcessMetric};

    fn interval(second: u64, us: u64) -> Interval {
        let mut load = LoadInterval::default();
        load.counters.connects_ok = second;
        load.times[Operation::Connect].record_n(us, 3);
        Interval { at_ms: second * 1_000, span_ms: 1_000, load: Some(load), ..Default::default() }
    }

    #[test]
    fn a_long_run_is_kept_in_bounded_groups_that_lose_nothing() {
        for seconds in [5, 256, 257, 512, 513, 515, 5_000] {
            let mut sample = RunSample::new();
            (1..=seconds).for_each(|second| sample.add(&interval(second, second)));
            assert!(sample.groups.len() <= GROUPS_MAX, "{}", sample.groups.len());
            assert!(seconds < 300 || sample.groups.len() >= GROUPS_MAX / 2);
            let connects: u64 =
                sample.groups.iter().map(|group| group.work.ok[Operation::Connect]).sum();
            let cells = sample.latency("connect").flat_map(|cells| &cells.answered);
            let answers: u64 = cells.map(|cell| u64::from(cell.1)).sum();
            assert_eq!((connects, answers), (seconds, 3 * seconds));
            assert_eq!(sample.intervals(), seconds);
        }
    }

    #[test]
    fn a_gap_of_missing_lines_took_its_time() {
        let mut sample = RunSample::new();
        for second in [1, 2, 7] {
            let mut interval = interval(second, 5);
            interval.load.as_mut().unwrap().grown_us = 1_000_000;
            sample.add(&interval);
        }
        let grown: Vec<u64> = sample.groups.iter().map(|group| group.work.grown_us).collect();
        assert_eq!(grown, [1_000_000, 1_000_000, 5_000_000]);
    }

    #[test]
    fn each_interval_counts_by_the_clock_that_has_all_of_its_answers() {
        let mut sample = RunSample::new();
        sample.add(&interval(1, 900));
        for (second, stamped) in [(2, 3), (3, 2)] {
            let mut timed = interval(second, 900);
            timed.load.as_mut().unwrap().arrival[Operation::Connect].record_n(700, stamped);
            sample.add(&timed);
        }
        let cells: Vec<_> = sample.latency("connect").map(|cells| &cells.answered[..]).collect();
        let cell = |us| [(us, 3)];
        assert_eq!(cells, [&cell(900), &cell(700), &cell(900)]);
    }

    #[test]
    fn a_server_of_others_has_its_cpu_from_the_kernel() {
        let mut sample = RunSample::new();
        for second in 1..=3 {
            let mut interval = interval(second, 5);
            interval.kernel.set(ProcessMetric::CPU_US.server, 1_000 * second as i64);
            sample.add(&interval);
        }
        let cpu: Vec<u64> = sample.groups.iter().map(|group| group.work.foreign_cpu_us).collect();
        assert_eq!(cpu, [0, 1_000, 1_000]);
    }

    #[test]
    fn cells_stay_in_order_when_they_are_merged() {
        let merged = merge_cells(&[(1, 1), (5, 2)], [(0, 1), (1, 1), (3, 4), (9, 1)].into_iter());
        assert_eq!(merged, [(0, 1), (1, 2), (3, 4), (5, 2), (9, 1)]);
    }
}
