//! A run: a run as the rules look at it.

use throng_report::runfile::RunHeader;
use throng_report::{
    AnswerGap, Evidence, LoadCounters, MachineUse, ProgramUse, RunEventKind, ServerSnapshot,
    Summary, Tally,
};

use crate::history::{History, Sample};
use crate::missed_thresholds::MissedThresholds;

/// One run, and the questions that rules have about it. What was not recorded is `None`, and a rule that needs it is silent.
///
/// *While the load is on* means: from the first interval until everybody is told to leave. What happens to connections that
/// their own users end is no evidence of anything.
#[derive(Clone, Copy, Debug)]
pub struct RunView<'a> {
    /// What was to be run.
    pub header: &'a RunHeader,
    /// What was measured, as a whole.
    pub summary: &'a Summary,
    /// What was asked for and missed.
    pub(crate) asked: &'a MissedThresholds,
    /// The intervals while the load is on, the one of no length at the beginning included.
    samples: &'a [Sample],
    /// Whether the server has a kernel, or a network namespace, of its own that was recorded.
    has_server_kernel: bool,
}

/// One of the two ends of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The generator.
    Client,
    /// What is loaded.
    Server,
}

/// A counter that grew while the load was on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Growth {
    /// Its name in the run file.
    pub counter: String,
    /// Its value at the beginning.
    pub from: i64,
    /// Its value at the end.
    pub to: i64,
    /// The first interval in which it grew.
    pub began_ms: u64,
    /// The most that it grew by in a second.
    pub per_second_most: u64,
}

/// A gauge at its height.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peak {
    /// Its name in the run file.
    pub gauge: String,
    /// Its value at the beginning.
    pub from: i64,
    /// The most that it was.
    pub value: i64,
    /// The interval in which it was.
    pub at_ms: u64,
}

/// What the run had reached at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadLevel {
    /// Connections established.
    pub connections: u64,
    /// Connects a second in that interval, the failed ones too.
    pub connects_per_s: f64,
    /// Messages (or pushes) a second in that interval.
    pub messages_per_s: f64,
}

impl<'a> RunView<'a> {
    /// A run, its summary, and the thresholds that it missed.
    pub(crate) fn judged(
        history: &'a History,
        summary: &'a Summary,
        asked: &'a MissedThresholds,
    ) -> Self {
        let all = history.samples();
        let leaves = |moment: &Sample| moment.load().is_some_and(|load| load.is_leaving());
        let end = all.iter().position(leaves).unwrap_or(all.len());
        // A load of which not even one interval was on is looked at as it is.
        let end = if end < 2 { all.len() } else { end };
        let samples = &all[..end];
        let has_server_kernel =
            samples.iter().any(|moment| !moment.interval.server_kernel.is_empty());
        Self { header: &history.header, summary, asked, samples, has_server_kernel }
    }

    /// A run and its summary, where nobody asked for anything.
    #[cfg(test)]
    pub(crate) fn new(history: &'a History, summary: &'a Summary) -> Self {
        static NOTHING: std::sync::LazyLock<MissedThresholds> =
            std::sync::LazyLock::new(MissedThresholds::default);
        Self::judged(history, summary, &NOTHING)
    }

    /// The intervals while the load is on.
    pub fn samples(&self) -> &'a [Sample] {
        self.samples
    }

    /// Each interval of some length with the one before it.
    pub fn steps(&self) -> impl Iterator<Item = (&'a Sample, &'a Sample)> + use<'a> {
        self.samples
            .windows(2)
            .map(|pair| (&pair[0], &pair[1]))
            .filter(|(_, now)| now.interval.span_ms > 0)
    }

    /// Whether facts of this end's kernel were recorded. The server's are the generator's own where both are on one machine.
    pub fn sees(&self, end: Endpoint) -> bool {
        match end {
            Endpoint::Client => {
                self.samples.iter().any(|moment| !moment.interval.kernel.is_empty())
            }
            Endpoint::Server => self.header.target_is_here || self.has_server_kernel,
        }
    }

    /// Whether the two ends share one kernel, and one network namespace, so that a counter does not tell whose it is.
    pub fn ends_share_a_kernel(&self) -> bool {
        !self.has_server_kernel
    }

    /// A counter or gauge of one end's kernel at one moment.
    pub fn value(&self, end: Endpoint, moment: &Sample, name: &str) -> Option<i64> {
        let interval = &moment.interval;
        match end {
            Endpoint::Client => interval.kernel.get(name).copied(),
            // An interval in which the server's own was not heard of says nothing about it: the generator's is another.
            Endpoint::Server if self.has_server_kernel => interval.server_kernel.get(name).copied(),
            Endpoint::Server if self.header.target_is_here => interval.kernel.get(name).copied(),
            Endpoint::Server => None,
        }
    }

    /// A value that does not change, `sysctl.net.core.somaxconn` say: the first that was recorded.
    pub fn constant(&self, end: Endpoint, name: &str) -> Option<i64> {
        self.samples.iter().find_map(|moment| self.value(end, moment, name))
    }

    /// How a counter grew while the load was on; none when it did not, or is not known.
    pub fn growth(&self, end: Endpoint, counter: &str) -> Option<Growth> {
        self.growth_of(counter, |moment| self.value(end, moment, counter))
    }

    /// The same of the generator's own counters.
    pub fn load_growth(&self, counter: &str, of: impl Fn(&LoadCounters) -> u64) -> Option<Growth> {
        self.growth_of(counter, |moment| Some(of(&moment.load()?.counters) as i64))
    }

    /// The same of the counters of a throng server.
    pub fn server_growth(
        &self,
        counter: &str,
        of: impl Fn(&ServerSnapshot) -> u64,
    ) -> Option<Growth> {
        self.growth_of(counter, |moment| Some(of(moment.interval.server.as_ref()?) as i64))
    }

    /// The same of one kind of failed connect.
    pub fn connect_failures(&self, errno: &str) -> Option<Growth> {
        let of = |tally: &Tally| tally.get(errno) as i64;
        self.growth_of(&format!("connect_failed.{errno}"), |moment| {
            Some(of(&moment.load()?.connect_failed))
        })
    }

    /// The same of one kind of error on an established connection.
    pub fn errors(&self, kind: &str) -> Option<Growth> {
        let of = |tally: &Tally| tally.get(kind) as i64;
        self.growth_of(&format!("errors.{kind}"), |moment| Some(of(&moment.load()?.errors)))
    }

    /// How whatever `value` says grew. A value that falls begins anew, as that of a server that was started again.
    pub fn growth_of(
        &self,
        counter: &str,
        value: impl Fn(&Sample) -> Option<i64>,
    ) -> Option<Growth> {
        let mut values = self.samples.iter().filter_map(|moment| Some((moment, value(moment)?)));
        let (_, from) = values.next()?;
        let mut growth =
            Growth { counter: counter.to_owned(), from, to: from, began_ms: 0, per_second_most: 0 };
        let mut before = from;
        for (moment, now) in values {
            let by = if now >= before { now - before } else { now };
            before = now;
            if by <= 0 {
                continue;
            }
            if growth.to == growth.from {
                growth.began_ms = moment.interval.at_ms;
            }
            growth.to += by;
            let per_second = by as u64 * 1000 / moment.interval.span_ms.max(1);
            growth.per_second_most = growth.per_second_most.max(per_second);
        }
        (growth.to > growth.from).then_some(growth)
    }

    /// The height of a gauge while the load was on.
    pub fn peak(&self, end: Endpoint, gauge: &str) -> Option<Peak> {
        self.peak_of(gauge, |moment| self.value(end, moment, gauge))
    }

    /// The height of whatever `value` says.
    pub fn peak_of(&self, gauge: &str, value: impl Fn(&Sample) -> Option<i64>) -> Option<Peak> {
        let values = || {
            self.samples.iter().filter_map(|moment| Some((moment.interval.at_ms, value(moment)?)))
        };
        let (_, from) = values().next()?;
        // The first of several that are as high.
        let (at_ms, value) = values().rev().max_by_key(|(_, value)| *value)?;
        Some(Peak { gauge: gauge.to_owned(), from, value, at_ms })
    }

    /// The process that served last, as far as the run file says.
    pub(crate) fn server_pid(&self) -> Option<u64> {
        let said =
            |moment: &Sample| moment.interval.server.as_ref().map(|server| server.process.pid);
        let found = |moment: &Sample| {
            moment.interval.events.iter().rev().find_map(|event| match &event.kind {
                RunEventKind::ServerProcess { pid, .. } => Some(*pid),
                _ => None,
            })
        };
        let pid =
            self.samples.iter().rev().find_map(|moment| found(moment).or_else(|| said(moment)));
        pid.filter(|pid| *pid != 0).map(u64::from)
    }

    /// Other programs that took the CPUs of an end's machine in the interval before a moment.
    pub(crate) fn programs<'m>(&self, end: Endpoint, moment: &'m Sample) -> &'m [ProgramUse] {
        let interval = &moment.interval;
        match end {
            Endpoint::Client => &interval.programs,
            Endpoint::Server if interval.server_machine.is_some() => &interval.server_programs,
            Endpoint::Server if self.header.target_is_here => &interval.programs,
            Endpoint::Server => &[],
        }
    }

    /// CPU time of an end's machine at one moment.
    pub fn machine<'m>(&self, end: Endpoint, moment: &'m Sample) -> Option<&'m MachineUse> {
        let interval = &moment.interval;
        match end {
            Endpoint::Client => interval.machine.as_ref(),
            Endpoint::Server if interval.server_machine.is_some() => {
                interval.server_machine.as_ref()
            }
            Endpoint::Server if self.header.target_is_here => interval.machine.as_ref(),
            Endpoint::Server => None,
        }
    }

    /// The longest time in which users waited and none was answered.
    pub(crate) fn longest_gap(&self) -> Option<AnswerGap> {
        let gaps = self.samples.iter().filter_map(|moment| moment.load()?.answer_gap);
        gaps.max_by_key(AnswerGap::length_ms)
    }

    /// What the run had reached in the interval that ends at `at_ms`.
    pub fn load_at(&self, at_ms: u64) -> LoadLevel {
        let steps: Vec<_> = self.steps().collect();
        let Some(at) = steps.iter().position(|(_, now)| now.interval.at_ms >= at_ms) else {
            return LoadLevel::default();
        };
        let now = LoadLevel::of(steps[at]);
        let earlier = |n: usize| at.checked_sub(n).map(|before| LoadLevel::of(steps[before]));
        let before = earlier(1);
        // Answers that come all at once after a wait are not what was asked for.
        let is_burst = |now: &LoadLevel, before: &LoadLevel| {
            before.messages_per_s >= 1.0 && now.messages_per_s > 4.0 * before.messages_per_s
        };
        let before_is_burst =
            before.zip(earlier(2)).is_some_and(|(before, earlier)| is_burst(&before, &earlier));
        // Of a server that ends in the midst of an interval, the whole one before tells more.
        let told = |before: &LoadLevel| {
            let ended = before.messages_per_s > 2.0 * now.messages_per_s;
            (ended && !before_is_burst) || is_burst(&now, before)
        };
        let held = before.map_or(0, |before| before.connections).max(now.connections);
        LoadLevel { connections: held, ..before.filter(told).unwrap_or(now) }
    }
}

impl LoadLevel {
    fn of((before, now): (&Sample, &Sample)) -> Self {
        let (Some(before), Some(load)) = (before.load(), now.load()) else {
            return LoadLevel::default();
        };
        let grown = load.counters.since(&before.counters);
        let seconds = now.interval.span_ms as f64 / 1000.0;
        let messages = grown.messages_sent.max(grown.messages_answered) + grown.pushes_sent;
        Self {
            connections: load.counters.connected,
            connects_per_s: (grown.connects_ok + grown.connects_failed) as f64 / seconds,
            messages_per_s: messages as f64 / seconds,
        }
    }
}

impl Growth {
    /// By how much.
    pub fn by(&self) -> u64 {
        u64::try_from(self.to - self.from).unwrap_or(0)
    }

    /// As evidence of a finding.
    pub fn evidence(&self) -> Evidence {
        self.evidence_from(0)
    }

    /// The same of a counter that always grows, and means something from `at_ms` on: CPU time, when the CPUs were full.
    pub fn evidence_from(&self, at_ms: u64) -> Evidence {
        Evidence {
            counter: self.counter.clone(),
            from: self.from as f64,
            to: self.to as f64,
            at_ms: self.began_ms.max(at_ms),
        }
    }
}

impl Peak {
    /// As evidence of a finding.
    pub fn evidence(&self) -> Evidence {
        Evidence {
            counter: self.gauge.clone(),
            from: self.from as f64,
            to: self.value as f64,
            at_ms: self.at_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::fixture::Run;

    #[test]
    fn the_load_is_what_was_held_and_asked_before_it_broke() {
        let load = |at_ms| {
            let run = Run::quiet().loaded(|load, second| {
                // Most connections go in the seventh second; the eighth is a burst.
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
    fn a_second_in_which_the_server_was_not_heard_of_is_not_the_generators() {
        let mut run =
            Run::quiet().with("TcpExt.ListenOverflows", 500).changed(|interval, second| {
                if second % 2 == 1 {
                    interval.server_kernel.insert("TcpExt.ListenOverflows".to_owned(), 7);
                }
            });
        let grown = |run: &Run, end| {
            let (history, summary) = run.whole();
            RunView::new(&history, &summary).growth(end, "TcpExt.ListenOverflows")
        };
        assert_eq!((grown(&run, Endpoint::Server), grown(&run, Endpoint::Client)), (None, None));
        for interval in run.intervals.iter_mut().skip(6) {
            interval.server_kernel.insert("TcpExt.ListenOverflows".to_owned(), 9);
        }
        assert_eq!(grown(&run, Endpoint::Server).map(|growth| growth.by()), Some(2));
    }
}
