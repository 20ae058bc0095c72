//! Measurements that labs take from the intervals of a run.

use throng_measure::runfile::RunFile;
use throng_measure::validity::Validity;
use throng_measure::{
    ErrorKind, Grade, Histogram, Interval, LatencySummary, LoadInterval, Metric, Series,
};
use throng_report::{Summary, SummaryFold};

/// Returns the growth of a counter of the server's kernel over the run; none where the kernel lacks
/// the counter.
pub(crate) fn counter_growth(intervals: &[Interval], counter: Metric) -> Option<u64> {
    Some(Series::of_server(intervals, counter).growth()?.by())
}

/// Returns the highest value of a gauge of the server's kernel.
pub(crate) fn gauge_max(intervals: &[Interval], gauge: Metric) -> Option<u64> {
    u64::try_from(Series::of_server(intervals, gauge).peak()?.value).ok()
}

/// Memory per connection, in bytes, at the highest number of connections. None with fewer
/// connections than [`MEMORY_SHOWS`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct MemoryEach {
    /// Resident memory of the server.
    pub(crate) server: Option<f64>,
    /// Resident memory of the generator.
    pub(crate) load: Option<f64>,
    /// Growth of the machine's used memory: server, generator and kernel.
    pub(crate) machine: Option<f64>,
}

impl MemoryEach {
    pub(crate) fn of(intervals: &[Interval], summary: &Summary) -> Self {
        let connections = summary.users.connected_most;
        if connections < MEMORY_SHOWS {
            return Self::default();
        }
        let used = |interval: &Interval| interval.kernel.get(Metric::MEMORY_USED_BYTES);
        let used_at_start = intervals.first().and_then(used);
        let grew = used_at_start.zip(intervals.iter().filter_map(used).max());
        Self {
            server: summary.server.as_ref().and_then(|server| server.rss_bytes_per_connection),
            load: summary.generator.rss_bytes_per_user,
            machine: grew.map(|(start, most)| (most - start) as f64 / connections as f64),
        }
    }
}

/// Returns the validity of the run up to `until_ms`. A load that grows until a limit is judged up
/// to that limit: beyond it, users wait even if the generator is on time.
pub(crate) fn validity_until(run: &RunFile, until_ms: u64) -> Validity {
    let is_before = |interval: &&Interval| interval.at_ms <= until_ms;
    let intervals = run.intervals.iter().filter(is_before).cloned().collect();
    Summary::of(&RunFile { intervals, ..run.clone() }).validity
}

/// Returns the end of the longest valid beginning of the run, in milliseconds; none where the whole
/// run is valid. Beyond it, a growing load is too much for the generator, whatever the target does.
pub(crate) fn valid_until(run: &RunFile) -> Option<u64> {
    let mut fold = SummaryFold::new(&run.header);
    let (mut until_ms, mut is_valid) = (0, true);
    for interval in &run.intervals {
        fold.add(interval);
        is_valid = fold.finish(None, 0).validity.grade == Grade::Valid;
        if is_valid {
            until_ms = interval.at_ms;
        }
    }
    (!is_valid).then_some(until_ms)
}

/// Returns the load of an interval; none if a core, or an agent's core, did not answer in time:
/// its counters are older than the interval's end.
pub(crate) fn whole_load(interval: &Interval) -> Option<&LoadInterval> {
    interval.load.as_ref().filter(|load| load.cores_silent == 0)
}

/// Returns the latency over all `intervals`, from the histogram that `histogram` selects.
pub(crate) fn latency<'a>(
    intervals: impl IntoIterator<Item = &'a Interval>,
    histogram: impl Fn(&LoadInterval) -> &Histogram,
) -> LatencySummary {
    let mut merged = Histogram::new();
    let loads = intervals.into_iter().filter_map(|interval| interval.load.as_ref());
    loads.for_each(|load| merged.merge(histogram(load)));
    LatencySummary::from(&merged)
}

/// Returns the time-outs of connects and of answers so far.
pub(crate) fn timeouts(load: &LoadInterval) -> u64 {
    let of_connects = ["timeout", "ETIMEDOUT"].map(|kind| load.connect_failed.get(kind));
    let of_answers =
        [ErrorKind::ExpectTimeout.name(), "ETIMEDOUT"].map(|kind| load.errors.get(kind));
    of_connects.iter().sum::<u64>() + of_answers.iter().sum::<u64>()
}

/// Returns the failed connects and the other errors so far.
pub(crate) fn failures(load: &LoadInterval) -> u64 {
    load.counters.connects_failed + load.errors.total()
}

/// The fewest connections whose memory shows beside the machine's other memory.
pub(crate) const MEMORY_SHOWS: u64 = 20_000;

#[cfg(test)]
mod tests {
    use throng_measure::Operation;
    use throng_measure::runfile::RunHeader;

    use super::*;

    fn interval(at_ms: u64, counters: &[(Metric, i64)]) -> Interval {
        let kernel = counters.iter().copied().collect();
        let load = Some(LoadInterval::default());
        Interval { at_ms, span_ms: 1000, kernel, load, ..Default::default() }
    }

    #[test]
    fn a_counter_that_was_never_read_is_unknown_and_not_zero() {
        let run = [
            interval(1, &[(Metric::TCPEXT_LISTEN_DROPS, 5), (Metric::LISTENER_ACCEPT_QUEUE, 9)]),
            interval(2, &[]),
            interval(3, &[(Metric::TCPEXT_LISTEN_DROPS, 12), (Metric::LISTENER_ACCEPT_QUEUE, 0)]),
        ];
        assert_eq!(counter_growth(&run, Metric::TCPEXT_LISTEN_DROPS), Some(7));
        assert_eq!(counter_growth(&run, Metric::TCPEXT_LISTEN_OVERFLOWS), None);
        assert_eq!(gauge_max(&run, Metric::LISTENER_ACCEPT_QUEUE), Some(9));
        assert_eq!(gauge_max(&run, Metric::LISTENER_SYN_RECV), None);
    }

    #[test]
    fn memory_is_shown_only_with_enough_connections() {
        let mut summary = Summary::default();
        summary.users.connected_most = MEMORY_SHOWS;
        summary.generator.rss_bytes_per_user = Some(300.0);
        let used = |n: u64| interval(1, &[(Metric::MEMORY_USED_BYTES, n as i64)]);
        let run = [used(20 * MEMORY_SHOWS), used(90 * MEMORY_SHOWS), used(30 * MEMORY_SHOWS)];
        let each = MemoryEach::of(&run, &summary);
        assert_eq!((each.server, each.load, each.machine), (None, Some(300.0), Some(70.0)));
        summary.users.connected_most -= 1;
        assert_eq!(MemoryEach::of(&run, &summary), MemoryEach::default());
    }

    #[test]
    fn histograms_are_merged_and_not_averaged() {
        let mut run = [interval(1, &[]), interval(2, &[])];
        for us in 1..=99 {
            run[0].load.as_mut().unwrap().times[Operation::Connect].record_us(us);
        }
        run[1].load.as_mut().unwrap().times[Operation::Connect].record_us(100_000);
        let latency = latency(&run, |load| load.latency(Operation::Connect));
        assert_eq!((latency.count, latency.p50), (100, 50));
        assert!(latency.max >= 99_000);
    }

    /// Returns a run with these connects in each second.
    fn connecting(connects: &[u64]) -> Vec<Interval> {
        let mut load = LoadInterval::default();
        let mut intervals = vec![Interval { load: Some(load.clone()), ..Interval::default() }];
        for (i, n) in connects.iter().enumerate() {
            load.counters.connects_ok += n;
            let at_ms = 1000 * (i as u64 + 1);
            let load = Some(load.clone());
            intervals.push(Interval { at_ms, span_ms: 1000, load, ..Interval::default() });
        }
        intervals
    }

    #[test]
    fn a_run_is_valid_until_its_generator_is_late() {
        let mut run = RunFile {
            header: RunHeader::default(),
            intervals: connecting(&[100, 100, 100, 100]),
            end: None,
            lines_torn: 0,
            warnings: Vec::new(),
        };
        let late = |run: &mut RunFile, second: usize, us: u64| {
            run.intervals[second].load.as_mut().unwrap().lag.record_n(us, 1_000);
        };
        (1..=4).for_each(|second| late(&mut run, second, 50));
        assert_eq!(valid_until(&run), None);
        late(&mut run, 3, 30_000);
        assert_eq!(valid_until(&run), Some(2_000));
    }

    #[test]
    fn time_outs_of_connects_and_answers_add_up() {
        let mut load = LoadInterval::default();
        load.connect_failed.add(ErrorKind::ConnectTimeout, 2);
        load.connect_failed.add("ECONNREFUSED", 7);
        load.errors.add(ErrorKind::ExpectTimeout, 3);
        load.errors.add("reset", 7);
        assert_eq!(timeouts(&load), 5);
    }
}
