//! The course of a run for charts, in bounded memory.

use throng_measure::{Interval, IntervalWork, Operation, PerOperation};

/// The course of a run. A run of any length fits: when there are too many rows, two become one.
#[derive(Debug)]
pub(crate) struct Rows {
    rows: Vec<Row>,
    intervals_per_row: u64,
    /// Intervals in the last row.
    in_last_row: u64,
}

/// What one row of the course shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// The row's end, in milliseconds since the run began.
    pub(crate) at_ms: u64,
    /// Users in their program at the end.
    pub(crate) users: u64,
    /// Connections at the end.
    pub(crate) connected: u64,
    /// Whether all users were leaving: then there is neither a rate nor a latency.
    pub(crate) is_leaving: bool,
    pub(crate) work: IntervalWork,
    latencies: PerOperation<Option<RowLatency>>,
}

/// Latencies of a row, in microseconds. Those of several intervals are the largest of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowLatency {
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    pub(crate) max: u64,
}

impl Row {
    /// Returns the row of one interval; `None` if it has no load, or no length.
    pub(crate) fn of(interval: &Interval, previous: Option<&Interval>) -> Option<Self> {
        let load = interval.load.as_ref().filter(|_| interval.span_ms > 0)?;
        let latency = |operation: Operation| {
            let values = load.latency(operation);
            (!values.is_empty()).then(|| RowLatency {
                p50: values.percentile(50.0),
                p99: values.percentile(99.0),
                max: values.max(),
            })
        };
        Some(Self {
            at_ms: interval.at_ms,
            users: load.counters.users_active,
            connected: load.counters.connected,
            is_leaving: load.is_leaving(),
            work: IntervalWork::of(interval, previous),
            latencies: PerOperation::of(latency),
        })
    }

    /// Returns the latencies of an operation, if it was done.
    pub(crate) fn latency(&self, operation: Operation) -> Option<RowLatency> {
        self.latencies[operation]
    }

    /// Adds the row that follows.
    fn merge(&mut self, next: Self) {
        let mut work = std::mem::take(&mut self.work);
        work.merge(&next.work);
        let most = |one: RowLatency, two: RowLatency| RowLatency {
            p50: one.p50.max(two.p50),
            p99: one.p99.max(two.p99),
            max: one.max.max(two.max),
        };
        let mut latencies = next.latencies;
        for (operation, latency) in latencies.iter_mut() {
            let before = self.latencies[operation];
            *latency = latency.zip(before).map(|(one, two)| most(one, two)).or(*latency).or(before);
        }
        *self = Self { work, latencies, ..next };
    }
}

impl Rows {
    pub(crate) fn new() -> Self {
        Self { rows: Vec::new(), intervals_per_row: 1, in_last_row: 1 }
    }

    /// Adds the row of the next interval.
    pub(crate) fn add(&mut self, row: Row) {
        if self.in_last_row == self.intervals_per_row && self.rows.len() >= ROWS_MAX {
            self.halve();
        }
        match self.rows.last_mut() {
            Some(last) if self.in_last_row < self.intervals_per_row => {
                last.merge(row);
                self.in_last_row += 1;
            }
            _ => {
                self.rows.push(row);
                self.in_last_row = 1;
            }
        }
    }

    /// Merges every two rows.
    fn halve(&mut self) {
        self.intervals_per_row *= 2;
        self.in_last_row = self.intervals_per_row;
        let mut halves = Vec::with_capacity(ROWS_MAX);
        let mut rows = std::mem::take(&mut self.rows).into_iter();
        while let Some(mut row) = rows.next() {
            if let Some(next) = rows.next() {
                row.merge(next);
            }
            halves.push(row);
        }
        self.rows = halves;
    }

    /// Returns all rows.
    pub(crate) fn all(&self) -> &[Row] {
        &self.rows
    }
}

/// The most rows: two for each dot of a wide terminal. An even number, so that two rows become one.
const ROWS_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use throng_measure::{LoadCounters, LoadInterval};

    use super::*;

    #[test]
    fn a_long_run_is_kept_in_coarser_rows_up_to_its_last_interval() {
        let mut rows = Rows::new();
        let mut previous = None;
        for second in 1..=ROWS_MAX as u64 + 1 {
            let counters =
                LoadCounters { connects_ok: 3 * second, connected: second, ..Default::default() };
            let mut load = LoadInterval { counters, ..Default::default() };
            load.times[Operation::Connect].record_us(second);
            let at_ms = 1000 * second;
            let interval =
                Interval { at_ms, span_ms: 1000, load: Some(load), ..Default::default() };
            rows.add(Row::of(&interval, previous.as_ref()).unwrap());
            previous = Some(interval);
        }
        assert_eq!(rows.all().len(), ROWS_MAX / 2 + 1);
        let first = &rows.all()[0];
        assert_eq!(
            (first.at_ms, first.connected, first.work.done[Operation::Connect]),
            (2000, 2, 6)
        );
        assert_eq!(first.work.per_second(first.work.done[Operation::Connect]), Some(3.0));
        assert_eq!(first.latency(Operation::Connect).unwrap().p99, 2);
        assert_eq!(first.latency(Operation::Message), None);
        let last = rows.all().last().unwrap();
        assert_eq!((last.work.done[Operation::Connect], last.connected), (3, ROWS_MAX as u64 + 1));
    }
}
