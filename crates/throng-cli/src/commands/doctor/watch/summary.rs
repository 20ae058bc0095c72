//! The samples of a watch so far, and their result.

use throng_doctor::{History, diagnose_without_load, trouble_counters};
use throng_measure::runfile::RunHeader;
use throng_measure::watch::{CounterDelta, WatchEnd, WatchLine};
use throng_measure::{Finding, Interval, Metric};

use super::standing_queue::StandingQueue;

/// The samples of a watch, in the form of a run without a generator. A watch may last for days, so
/// a long watch keeps only some of them.
#[derive(Debug, Default)]
pub(super) struct WatchSummary {
    intervals: Vec<Interval>,
    /// The number of all samples.
    looks: u64,
    /// One of this many samples is kept.
    keep_each: u64,
    last: Option<Interval>,
    /// The time of a throng server's last answer, in milliseconds.
    answered_ms: Option<u64>,
    /// Whether the server's process could be read.
    is_process_seen: bool,
}

impl WatchSummary {
    pub(super) fn add(&mut self, line: WatchLine) {
        self.is_process_seen |= line.process.is_some() || line.server.is_some();
        let interval = as_interval(line);
        if interval.server.is_some() {
            self.answered_ms = Some(interval.at_ms);
        }
        self.keep_each = self.keep_each.max(1);
        if self.looks.is_multiple_of(self.keep_each) {
            self.intervals.push(interval.clone());
        }
        self.looks += 1;
        self.last = Some(interval);
        if self.intervals.len() >= KEPT_MAX {
            // Counters are totals since a start, so a dropped sample costs resolution and nothing
            // else.
            let mut n = 0;
            self.intervals.retain(|_| {
                n += 1;
                n % 2 == 1
            });
            self.keep_each *= 2;
        }
    }

    /// Returns the last sample.
    pub(super) fn last(&self) -> Option<&Interval> {
        self.last.as_ref()
    }

    fn seconds(&self) -> f64 {
        let first = self.intervals.first().map_or(0, |interval| interval.at_ms);
        self.last.as_ref().map_or(0, |last| last.at_ms - first) as f64 / 1000.0
    }

    /// Returns the sources that could not be read in the last sample.
    pub(super) fn unseen(&self) -> &[String] {
        self.last.as_ref().and_then(|last| last.unseen.as_deref()).unwrap_or_default()
    }

    /// Returns the result of the watch.
    pub(super) fn end(&self) -> WatchEnd {
        let (moved, findings) = (trouble_counters(&self.whole()), self.findings());
        // The kernel's report of a server's end explains more than the server's silence.
        let silence = self.silence().filter(|_| findings.is_empty());
        let standing = || StandingQueue::longest(&self.whole()).filter(|_| findings.is_empty());
        let standing = || standing().map(|queue| queue.describe());
        let verdict = silence.or_else(standing).unwrap_or_else(|| {
            let is_seen = self.is_process_seen || self.looks == 0;
            verdict(&moved, &findings, is_seen)
        });
        WatchEnd { verdict, looks: self.looks, seconds: self.seconds(), moved, findings }
    }

    /// Describes a server that is missing or no longer answers.
    fn silence(&self) -> Option<String> {
        let last = self.last.as_ref()?;
        let is_silent = |answered_ms: &u64| last.at_ms.saturating_sub(*answered_ms) >= SILENT_MS;
        let answered = self.answered_ms.filter(is_silent);
        if let Some(answered_ms) = answered {
            return Some(format!(
                "The server has not answered on its control socket since {:.1} s: it has ended, \
                 hangs, or was stopped.",
                answered_ms as f64 / 1000.0
            ));
        }
        let has_listener = last.server_kernel.get(Metric::LISTENER_COUNT).is_none_or(|n| n > 0);
        (!has_listener)
            .then(|| "No process listens there: start the server, or correct --port.".to_owned())
    }

    /// Returns the findings of the rules for runs that need no data from a generator.
    fn findings(&self) -> Vec<Finding> {
        let mut history = History::new(RunHeader { target_is_here: false, ..RunHeader::default() });
        self.whole().iter().for_each(|interval| history.add(interval));
        diagnose_without_load(&history)
    }

    /// Returns the kept samples, and the last one.
    fn whole(&self) -> Vec<Interval> {
        let mut whole = self.intervals.clone();
        if let Some(last) = &self.last
            && whole.last().is_none_or(|kept| kept.at_ms < last.at_ms)
        {
            whole.push(last.clone());
        }
        for n in 1..whole.len() {
            whole[n].span_ms = whole[n].at_ms - whole[n - 1].at_ms;
        }
        whole
    }
}

/// Returns the verdict of the server's own host, in a sentence: the host does not know what the
/// users requested.
fn verdict(moved: &[CounterDelta], found: &[Finding], is_process_seen: bool) -> String {
    match (found.first(), moved.len()) {
        (Some(first), _) => format!("{}; do: {}.", first.first_sentence(), first.remedy),
        (None, 0) if !is_process_seen => format!(
            "No cause that stops a server was found on this host, but the server's CPU and memory \
             could not be seen: {SUDO}."
        ),
        (None, 0) => "No cause that stops a server was found on this host.".to_owned(),
        (None, 1) => format!("One trouble counter moved, {}.", moved[0].counter),
        (None, n) => format!("{n} trouble counters moved, {} and others.", moved[0].counter),
    }
}

/// What to do if the process that listens cannot be read.
pub(super) const SUDO: &str = "run it with sudo, or as the server's user";

/// Converts a sample to a line of the run file: all of it is on the server's side.
fn as_interval(line: WatchLine) -> Interval {
    Interval {
        at_ms: line.at_ms,
        span_ms: line.span_ms,
        server: line.server,
        server_kernel: line.kernel,
        server_machine: line.machine,
        unseen: Some(line.unseen),
        ..Interval::default()
    }
}

/// The number of kept samples at which half of them are dropped.
const KEPT_MAX: usize = 2_048;

/// The time without an answer after which a server counts as silent. One late answer only means
/// that it is busy.
const SILENT_MS: u64 = 3_000;

#[cfg(test)]
mod tests {
    use throng_measure::ProcessMetric;

    use super::*;

    fn sample(at_ms: u64, overflows: i64) -> WatchLine {
        let kernel = [(Metric::TCPEXT_LISTEN_OVERFLOWS, overflows)].into();
        WatchLine { at_ms, span_ms: 1000, kernel, ..WatchLine::default() }
    }

    #[test]
    fn a_watch_of_days_keeps_a_bounded_part_and_loses_no_count() {
        let mut seen = WatchSummary::default();
        for n in 0..20_000 {
            seen.add(sample(n * 1000, n as i64));
        }
        assert!(seen.intervals.len() < KEPT_MAX);
        assert_eq!(seen.looks, 20_000);
        assert_eq!(seen.seconds(), 19_999.0);
        assert_eq!(seen.end().moved[0].by, 19_999);
        let whole = seen.whole();
        assert!(whole.windows(2).all(|pair| pair[1].span_ms == pair[1].at_ms - pair[0].at_ms));
    }

    #[test]
    fn rules_that_need_a_load_do_not_run_without_one() {
        let mut seen = WatchSummary::default();
        for n in 0..10 {
            let mut sample = sample(n * 1000, 40 * n as i64);
            // As many SYNs as a flood: they belong to a load that is not counted here.
            sample.kernel.set(Metric::TCPEXT_TCP_REQ_Q_FULL_DO_COOKIES, 900 * n as i64);
            sample.kernel.set(Metric::LISTENER_SYN_RECV, 200);
            seen.add(sample);
        }
        let found: Vec<_> = seen.findings().into_iter().map(|finding| finding.id).collect();
        assert_eq!(found, ["accept_queue_overflow"]);
    }

    #[test]
    fn a_server_that_is_silent_or_not_there_is_reported() {
        let verdict = |answered_until_ms: u64, listeners: i64, oom_kills: i64| {
            let mut seen = WatchSummary::default();
            for n in 0..10 {
                let mut sample = sample(n * 1000, 7);
                sample.server = (n * 1000 <= answered_until_ms).then(Default::default);
                sample.kernel.set(Metric::LISTENER_COUNT, listeners);
                sample.kernel.set(ProcessMetric::FDS_MAX.server, 1_024);
                sample.kernel.set(Metric::CGROUP_MEMORY_OOM_KILLS, oom_kills * n as i64);
                seen.add(sample);
            }
            seen.end().verdict
        };
        assert_eq!(verdict(9_000, 1, 0), "No cause that stops a server was found on this host.");
        assert_eq!(verdict(8_000, 1, 0), verdict(9_000, 1, 0), "it was late once");
        assert!(
            verdict(4_000, 1, 0)
                .starts_with("The server has not answered on its control socket since 4.0 s")
        );
        assert!(verdict(9_000, 0, 0).starts_with("No process listens there"));
        assert!(
            verdict(4_000, 1, 1).starts_with("The kernel killed"),
            "the cause explains more than the silence"
        );
    }

    #[test]
    fn a_server_that_is_killed_for_its_memory_is_found_without_a_load() {
        let watched = |process: Option<Metric>| {
            let mut seen = WatchSummary::default();
            for n in 0..10 {
                let mut sample = sample(n * 1000, 7);
                sample.kernel.set(Metric::CGROUP_MEMORY_OOM_KILLS, i64::from(n > 5));
                if let Some(metric) = process {
                    sample.kernel.set(metric, 1_024);
                }
                seen.add(sample);
            }
            seen.findings().into_iter().map(|finding| finding.text).collect::<Vec<_>>()
        };
        assert_eq!(
            watched(Some(ProcessMetric::FDS_MAX.server)),
            ["The kernel killed a process because the memory of the server's control group was \
                 full."]
        );
        assert_eq!(watched(None), [""; 0], "it is the group of the watching process");
    }

    #[test]
    fn a_quiet_host_gives_no_finding() {
        let mut seen = WatchSummary::default();
        (0..10).for_each(|n| seen.add(sample(n * 1000, 7)));
        let end = seen.end();
        assert_eq!((end.moved, end.findings), (vec![], vec![]));
    }
}
