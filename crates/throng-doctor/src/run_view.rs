//! A view of a run for the rules.

use throng_measure::runfile::RunHeader;
use throng_measure::{
    AnswerGap, Endpoint, EndpointFacts, ErrorKind, LoadCounters, LoadInterval, MachineUse, Metric,
    ProgramUse, RunEventKind, Series, ServerSnapshot, is_of_family,
};
pub(crate) use throng_measure::{Growth, Peak};
use throng_report::Summary;

use crate::history::{History, Sample};
use crate::missed_thresholds::MissedThresholds;

/// One run, and the queries of the rules. A value that was not recorded is `None`; a rule that
/// needs it then finds nothing.
///
/// *While the load is on* means from the first interval until all users begin to leave. Connections
/// that their own users close are no evidence.
#[derive(Clone, Debug)]
pub struct RunView<'a> {
    /// The plan of the run.
    pub header: &'a RunHeader,
    /// Measurements of the whole run.
    pub summary: &'a Summary,
    /// Thresholds that the run missed.
    pub(crate) thresholds: &'a MissedThresholds,
    /// Intervals while the load is on, with the one of zero length at the beginning.
    samples: &'a [Sample],
    /// These, and the interval in which users begin to leave: what the generator counts. It counts
    /// nothing of what happens after that moment.
    counted: &'a [Sample],
    /// All intervals, with those in which users leave.
    all: &'a [Sample],
    /// True if facts of another kernel or network namespace were recorded for the server.
    has_server_kernel: bool,
    /// What does not change, of the generator and of the server.
    facts: [EndpointFacts; 2],
}

/// The load that a run had reached at some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadLevel {
    /// Established connections.
    pub connections: u64,
    /// Connects a second in that interval, with the failed ones.
    pub connects_per_s: f64,
    /// Messages, pushes and HTTP requests a second in that interval.
    pub messages_per_s: f64,
}

impl<'a> RunView<'a> {
    /// Returns the view of a run with its summary and the thresholds that it missed.
    pub(crate) fn judged(
        history: &'a History,
        summary: &'a Summary,
        thresholds: &'a MissedThresholds,
    ) -> Self {
        let all = history.samples();
        let leaves = |sample: &Sample| sample.load().is_some_and(|load| load.is_leaving());
        let end = all.iter().position(leaves).unwrap_or(all.len());
        // A run without two intervals of load is viewed as a whole.
        let end = if end < 2 { all.len() } else { end };
        let samples = &all[..end];
        let counted = &all[..all.len().min(end + 1)];
        let has_server_kernel =
            samples.iter().any(|sample| !sample.interval.server_kernel.is_empty());
        let (header, facts) = (&history.header, Default::default());
        let has = has_server_kernel;
        let mut run = Self {
            header,
            summary,
            thresholds,
            samples,
            counted,
            all,
            has_server_kernel: has,
            facts,
        };
        run.facts = [Endpoint::Client, Endpoint::Server].map(|end| run.read_facts(end));
        run
    }

    /// Returns the view of a run without thresholds.
    #[cfg(test)]
    pub(crate) fn new(history: &'a History, summary: &'a Summary) -> Self {
        static NOTHING: std::sync::LazyLock<MissedThresholds> =
            std::sync::LazyLock::new(MissedThresholds::default);
        Self::judged(history, summary, &NOTHING)
    }

    /// Returns the intervals while the load is on.
    pub fn samples(&self) -> &'a [Sample] {
        self.samples
    }

    /// Returns what the generator has counted in the whole run. It counts nothing of what happens
    /// once its users leave.
    pub(crate) fn counted(&self) -> Option<&'a LoadInterval> {
        self.counted.last().and_then(Sample::load)
    }

    /// Returns each interval of non-zero length together with the one before it.
    pub fn steps(&self) -> impl Iterator<Item = (&'a Sample, &'a Sample)> + use<'a> {
        self.samples
            .windows(2)
            .map(|pair| (&pair[0], &pair[1]))
            .filter(|(_, now)| now.interval.span_ms > 0)
    }

    /// Reports whether facts of this side's kernel were recorded. If both are on one machine, the
    /// server's are the generator's.
    pub fn has_facts(&self, end: Endpoint) -> bool {
        match end {
            Endpoint::Client => {
                self.samples.iter().any(|sample| !sample.interval.kernel.is_empty())
            }
            Endpoint::Server => self.header.target_is_here || self.has_server_kernel,
        }
    }

    /// Reports whether generator and server share one kernel and one network namespace, so that a
    /// counter may belong to either.
    pub fn shares_kernel(&self) -> bool {
        !self.has_server_kernel
    }

    /// Returns a counter or gauge of one side's kernel in one sample.
    pub fn value(&self, end: Endpoint, sample: &Sample, metric: Metric) -> Option<i64> {
        let interval = &sample.interval;
        match end {
            Endpoint::Client => interval.kernel.get(metric),
            // An interval without the server's own value says nothing about it: the generator's is
            // another one.
            Endpoint::Server if self.has_server_kernel => interval.server_kernel.get(metric),
            Endpoint::Server if self.header.target_is_here => interval.kernel.get(metric),
            Endpoint::Server => None,
        }
    }

    /// Returns what does not change during the run at one side, such as the limits of its kernel.
    /// If both are on one machine, the server's kernel is the generator's.
    pub fn facts(&self, end: Endpoint) -> &EndpointFacts {
        let [client, server] = &self.facts;
        match end {
            Endpoint::Client => client,
            Endpoint::Server => server,
        }
    }

    /// Returns the facts of the header. What it does not say is the first value of an interval.
    fn read_facts(&self, end: Endpoint) -> EndpointFacts {
        let header = match end {
            Endpoint::Client => &self.header.client_facts,
            Endpoint::Server => &self.header.server_facts,
        };
        let mut facts = header.clone().unwrap_or_default();
        let first = |end, metric| {
            self.samples.iter().find_map(|sample: &Sample| self.value(end, sample, metric))
        };
        facts.complete_kernel(|metric| first(end, metric));
        // The process may be sampled with the generator's kernel, though its namespace is another.
        let process = |metric| first(end, metric).or_else(|| first(Endpoint::Client, metric));
        facts.complete_process(|metric| process(metric.of(end)));
        let backlog = |sample: &Sample| Some(sample.interval.server.as_ref()?.backlog as i64);
        let asked = || self.samples.iter().find_map(backlog).filter(|asked| *asked > 0);
        facts.backlog_asked = facts.backlog_asked.or_else(asked);
        facts
    }

    /// Returns the growth of a counter while the load was on, or `None` if it did not grow or is
    /// not known.
    pub fn growth(&self, end: Endpoint, counter: Metric) -> Option<Growth> {
        self.growth_of(counter.name(), |sample| self.value(end, sample, counter))
    }

    /// Returns the growth of a counter over the whole run, until the last user has left. It is for
    /// counters that move when something ends.
    pub fn growth_to_the_end(&self, end: Endpoint, counter: Metric) -> Option<Growth> {
        self.to_the_end().growth(end, counter)
    }

    /// Returns a view of the whole run, until the last user has left.
    fn to_the_end(&self) -> Self {
        Self { samples: self.all, counted: self.all, ..self.clone() }
    }

    /// Returns the growth of one of the generator's own counters.
    pub fn load_growth(&self, counter: &str, of: impl Fn(&LoadCounters) -> u64) -> Option<Growth> {
        self.load_growth_of(counter, |load| of(&load.counters))
    }

    /// Returns the growth of a counter of a throng server.
    pub fn server_growth(
        &self,
        counter: &str,
        of: impl Fn(&ServerSnapshot) -> u64,
    ) -> Option<Growth> {
        self.growth_of(counter, |sample| Some(of(sample.interval.server.as_ref()?) as i64))
    }

    /// Returns the growth of one kind of failed connect.
    pub fn connect_failures(&self, errno: impl AsRef<str>) -> Option<Growth> {
        let errno = errno.as_ref();
        self.load_growth_of(&format!("connect_failed.{errno}"), |load| {
            load.connect_failed.get(errno)
        })
    }

    /// Returns the growth of one kind of error on an established connection.
    pub fn errors(&self, kind: impl AsRef<str>) -> Option<Growth> {
        let kind = kind.as_ref();
        self.load_growth_of(&format!("errors.{kind}"), |load| load.errors.get(kind))
    }

    /// Returns the growth over the whole run of the errors of each kind of a family:
    /// `http_status.429` is one of `http_status`. The most frequent kind comes first.
    pub(crate) fn errors_of_family(&self, family: ErrorKind) -> Vec<(&'a str, Growth)> {
        let run = self.to_the_end();
        let tally = run.samples.last().and_then(Sample::load).map(|load| &load.errors);
        let kinds = tally.into_iter().flat_map(|tally| tally.0.keys().map(String::as_str));
        let kinds = kinds.filter(|kind| is_of_family(kind, family.name()));
        by_growth(kinds.filter_map(|kind| Some((kind, run.errors(kind)?))))
    }

    /// Returns the growth over the whole run of the answers to HTTP requests with each status. The
    /// most frequent one comes first.
    pub(crate) fn http_statuses(&self) -> Vec<(&'a str, Growth)> {
        let run = self.to_the_end();
        let tally = run.samples.last().and_then(Sample::load).map(|load| &load.http_statuses);
        let statuses = tally.into_iter().flat_map(|tally| tally.0.keys().map(String::as_str));
        by_growth(statuses.filter_map(|status| {
            let of = |load: &LoadInterval| load.http_statuses.get(status);
            Some((status, run.load_growth_of(&format!("http_statuses.{status}"), of)?))
        }))
    }

    /// Returns the growth of `value` over the samples. A value that falls starts again at zero, as
    /// that of a restarted server.
    pub fn growth_of(
        &self,
        counter: &str,
        value: impl Fn(&Sample) -> Option<i64>,
    ) -> Option<Growth> {
        self.series(counter, value).growth().filter(|growth| growth.by() > 0)
    }

    /// Returns the growth of a value that the generator counts. It counts from the start of the
    /// run, and has counted already where the first sample was taken late. Its growth is the whole
    /// run's, as in the report's tables.
    pub(crate) fn load_growth_of(
        &self,
        counter: &str,
        of: impl Fn(&LoadInterval) -> u64,
    ) -> Option<Growth> {
        let first = self
            .all
            .first()
            .filter(|all| self.samples.first().is_some_and(|first| std::ptr::eq(*all, first)));
        let start = first.map(|sample| (&sample.interval, Some(0)));
        let value = |sample: &Sample| Some(of(sample.load()?) as i64);
        let samples = self.counted.iter().map(|sample| (&sample.interval, value(sample)));
        let series = Series::new(counter, start.into_iter().chain(samples));
        series.growth().filter(|growth| growth.by() > 0)
    }

    /// Returns the peak of a gauge while the load was on.
    pub fn peak(&self, end: Endpoint, gauge: Metric) -> Option<Peak> {
        self.peak_of(gauge.name(), |sample| self.value(end, sample, gauge))
    }

    /// Returns the peak of `value` over the samples.
    pub fn peak_of(&self, gauge: &str, value: impl Fn(&Sample) -> Option<i64>) -> Option<Peak> {
        self.series(gauge, value).peak()
    }

    fn series(&self, name: &str, value: impl Fn(&Sample) -> Option<i64>) -> Series {
        Series::new(name, self.samples.iter().map(|sample| (&sample.interval, value(sample))))
    }

    /// Returns the pid of the last server process that the run file names.
    pub(crate) fn server_pid(&self) -> Option<u64> {
        let reported =
            |sample: &Sample| sample.interval.server.as_ref().map(|server| server.process.pid);
        let found = |sample: &Sample| {
            sample.interval.events.iter().rev().find_map(|event| match &event.kind {
                RunEventKind::ServerProcess { pid, .. } => Some(*pid),
                _ => None,
            })
        };
        let pid =
            self.samples.iter().rev().find_map(|sample| found(sample).or_else(|| reported(sample)));
        pid.filter(|pid| *pid != 0).map(u64::from)
    }

    /// Returns the name of the server's program with its pid, as the run file first names it.
    pub(crate) fn server_program(&self) -> Option<String> {
        let mut events = self.samples.iter().flat_map(|sample| &sample.interval.events);
        events.find_map(|event| match &event.kind {
            RunEventKind::ServerProcess { pid, program, .. } => {
                Some(format!("{program} (pid {pid})"))
            }
            _ => None,
        })
    }

    /// Returns the other programs that used the CPUs of one side's machine in an interval.
    pub(crate) fn programs<'m>(&self, end: Endpoint, sample: &'m Sample) -> &'m [ProgramUse] {
        let interval = &sample.interval;
        match end {
            Endpoint::Client => &interval.programs,
            Endpoint::Server if interval.server_machine.is_some() => &interval.server_programs,
            Endpoint::Server if self.header.target_is_here => &interval.programs,
            Endpoint::Server => &[],
        }
    }

    /// Returns the CPU times of one side's machine in a sample.
    pub fn machine<'m>(&self, end: Endpoint, sample: &'m Sample) -> Option<&'m MachineUse> {
        let interval = &sample.interval;
        match end {
            Endpoint::Client => interval.machine.as_ref(),
            Endpoint::Server if interval.server_machine.is_some() => {
                interval.server_machine.as_ref()
            }
            Endpoint::Server if self.header.target_is_here => interval.machine.as_ref(),
            Endpoint::Server => None,
        }
    }

    /// Returns the longest time in which users waited and none was answered.
    pub(crate) fn longest_gap(&self) -> Option<AnswerGap> {
        let gaps = self.samples.iter().filter_map(|sample| sample.load()?.answer_gap);
        gaps.max_by_key(AnswerGap::length_ms)
    }

    /// Returns the load that the run had reached in the interval that ends at `at_ms`.
    pub fn load_at(&self, at_ms: u64) -> LoadLevel {
        let steps: Vec<_> = self.steps().collect();
        let at = steps.iter().position(|(_, now)| now.interval.at_ms >= at_ms);
        // While users leave, the load that they made is the one before.
        let Some(at) = at.or(steps.len().checked_sub(1)) else { return LoadLevel::default() };
        let now = LoadLevel::of(steps[at]);
        let earlier = |n: usize| at.checked_sub(n).map(|before| LoadLevel::of(steps[before]));
        let before = earlier(1);
        // Answers that arrive all at once after a wait are not the planned load.
        let is_burst = |now: &LoadLevel, before: &LoadLevel| {
            before.messages_per_s >= 1.0 && now.messages_per_s > 4.0 * before.messages_per_s
        };
        let before_is_burst =
            before.zip(earlier(2)).is_some_and(|(before, earlier)| is_burst(&before, &earlier));
        // If the server ends in the middle of an interval, the whole interval before it describes
        // the load better.
        let is_better = |before: &LoadLevel| {
            let ended = before.messages_per_s > 2.0 * now.messages_per_s;
            (ended && !before_is_burst) || is_burst(&now, before)
        };
        let held = before.map_or(0, |before| before.connections).max(now.connections);
        LoadLevel { connections: held, ..before.filter(is_better).unwrap_or(now) }
    }

    /// Reports whether the run went on after a failure at `at_ms`: in the end it had all its users,
    /// and they sent as much as then.
    pub(crate) fn went_on_after(&self, at_ms: Option<u64>) -> bool {
        let Some((at_ms, last)) = at_ms.zip(self.samples.last()) else { return false };
        let (then, end) = (self.load_at(at_ms), self.load_at(last.interval.at_ms));
        end.connections as f64 >= (self.header.users_planned as f64 * ALL_SHARE).max(1.0)
            && end.messages_per_s >= then.messages_per_s * AS_BEFORE_SHARE
    }
}

/// Sorts by growth, the largest first.
fn by_growth<'a>(found: impl Iterator<Item = (&'a str, Growth)>) -> Vec<(&'a str, Growth)> {
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|(_, growth)| std::cmp::Reverse(growth.by()));
    found
}

/// The share of the planned users that counts as all of them: some are connecting again.
const ALL_SHARE: f64 = 0.9;

/// The share of the messages a second with which a run goes on.
const AS_BEFORE_SHARE: f64 = 0.5;

impl LoadLevel {
    /// Returns the load in one interval.
    pub(crate) fn of((before, now): (&Sample, &Sample)) -> Self {
        let (Some(before), Some(load)) = (before.load(), now.load()) else {
            return LoadLevel::default();
        };
        let grown = load.counters.since(&before.counters);
        let seconds = now.interval.span_ms as f64 / 1000.0;
        // What arrives in answer to nothing counts as much as what is sent, but not what is
        // answered late.
        let unasked =
            |load: &LoadCounters| load.messages_answered.saturating_sub(load.messages_sent);
        let unasked = unasked(&load.counters).saturating_sub(unasked(&before.counters));
        let messages = grown.requests_begun() + unasked;
        Self {
            connections: load.counters.connected,
            connects_per_s: (grown.connects_ok + grown.connects_failed) as f64 / seconds,
            messages_per_s: messages as f64 / seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::fixture::Run;

    #[test]
    fn the_load_is_that_before_the_failure() {
        let load = |at_ms| {
            let run = Run::quiet().loaded(|load, second| {
                // Most connections close in the seventh second; the eighth is a burst.
                load.counters.connected = if second >= 7 { 300 } else { load.counters.connected };
                let burst = if second >= 8 { 9_000 } else { 0 };
                load.counters.messages_sent += burst;
                load.counters.messages_answered += burst;
            });
            let (history, summary) = run.whole();
            let load = RunView::new(&history, &summary).load_at(at_ms);
            (load.connections, load.messages_per_s)
        };
        assert_eq!(load(7_000), (1_000, 1_000.0));
        assert_eq!(load(8_000), (300, 1_000.0));
        assert_eq!(load(9_000), (300, 1_000.0));
    }

    #[test]
    fn what_the_first_sample_has_counted_is_growth() {
        let run = Run::quiet().loaded(|load, _| load.errors.add("reset", 7));
        let (history, summary) = run.whole();
        let growth = RunView::new(&history, &summary).errors("reset").expect("errors");
        assert_eq!((growth.from, growth.to, growth.by()), (0, 7, 7));
    }

    #[test]
    fn the_errors_of_the_interval_in_which_users_begin_to_leave_count() {
        let run = Run::quiet().loaded(|load, second| {
            load.errors.add("reset", 60 * second);
            if second >= 9 {
                load.phase = throng_measure::LEAVING.into();
            }
            if second == 10 {
                load.errors.add("reset", 7);
            }
        });
        let (history, summary) = run.whole();
        let view = RunView::new(&history, &summary);
        assert_eq!(view.errors("reset").map(|growth| growth.to), Some(540));
        assert_eq!(view.counted().unwrap().errors.get("reset"), 540);
        assert_eq!(view.samples().last().unwrap().interval.at_ms, 8_000);
    }

    #[test]
    fn a_second_without_the_servers_values_does_not_use_the_generators() {
        let mut run =
            Run::quiet().with(Metric::TCPEXT_LISTEN_OVERFLOWS, 500).changed(|interval, second| {
                if second % 2 == 1 {
                    interval.server_kernel.set(Metric::TCPEXT_LISTEN_OVERFLOWS, 7);
                }
            });
        let grown = |run: &Run, end| {
            let (history, summary) = run.whole();
            RunView::new(&history, &summary).growth(end, Metric::TCPEXT_LISTEN_OVERFLOWS)
        };
        assert_eq!((grown(&run, Endpoint::Server), grown(&run, Endpoint::Client)), (None, None));
        for interval in run.intervals.iter_mut().skip(6) {
            interval.server_kernel.set(Metric::TCPEXT_LISTEN_OVERFLOWS, 9);
        }
        assert_eq!(grown(&run, Endpoint::Server).map(|growth| growth.by()), Some(2));
    }
}
