//! A run up to now, in the doctor's form: all intervals, without their histograms.

use crate::two_modes::TwoModes;
use throng_measure::runfile::{RunFile, RunHeader};
use throng_measure::{
    AnswerGap, Histogram, Interval, LoadInterval, Operation, Outage, PerOperation, ProgramUse,
};

/// The plan of a run and its samples second by second. A long run keeps every second sample, then
/// every fourth, and so on: never more than 2,048 samples, which use some tens of megabytes.
#[derive(Clone, Debug)]
pub struct History {
    /// First line of the run file.
    pub header: RunHeader,
    samples: Vec<Sample>,
    /// Number of intervals that make one sample.
    each: u32,
    /// Number of intervals in the last sample, or zero if it is complete.
    open: u32,
    /// Number of events in all samples.
    events: usize,
}

/// An interval whose histograms are reduced to a few numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Interval without its histograms and probes, which are empty.
    pub interval: Interval,
    /// Delay of the generator behind its schedule.
    pub lag: Quantiles,
    /// Time from the intended moment of each operation until its end arrived.
    latencies: PerOperation<Quantiles>,
    /// Time from the moment at which a message was sent until its answer.
    pub from_send: Quantiles,
    /// Fast and slow answers, if the times of the most frequent kind of answers have two modes.
    /// Those of messages count from when these were sent: a turn that begins late because of a
    /// slow answer is no slow one itself.
    pub(crate) answer_modes: Option<TwoModes>,
}

/// A histogram as a few numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// Number of values.
    pub count: u64,
    /// Median, in microseconds.
    pub p50_us: u64,
    /// 99th percentile, in microseconds.
    pub p99_us: u64,
    /// Smallest value, in microseconds, as exact as a bucket of the histogram.
    pub min_us: u64,
    /// Number of values that are at most a tenth longer than the smallest.
    pub fastest: u64,
    /// Largest value, in microseconds.
    pub max_us: u64,
}

impl History {
    /// Creates the history of a run before its first interval.
    pub fn new(header: RunHeader) -> Self {
        Self { header, samples: Vec::new(), each: 1, open: 0, events: 0 }
    }

    /// Creates the history of a run that is over.
    pub fn of(file: &RunFile) -> Self {
        let mut history = Self::new(file.header.clone());
        file.intervals.iter().for_each(|interval| history.add(interval));
        history
    }

    /// Adds the next interval.
    pub fn add(&mut self, interval: &Interval) {
        let mut sample = Sample::of(interval);
        let room = EVENTS_MAX.saturating_sub(self.events);
        sample.interval.events.truncate(room);
        self.events += sample.interval.events.len();
        if let Some(last) = self.samples.last_mut().filter(|_| self.open > 0) {
            sample.merge(std::mem::take(last));
            *last = sample;
        } else {
            self.samples.push(sample);
        }
        // The interval of zero length at the beginning stays on its own.
        self.open = if self.samples.len() == 1 { 0 } else { (self.open + 1) % self.each };
        if self.samples.len() > SAMPLES_MAX && self.open == 0 {
            self.thin_out();
        }
    }

    /// Merges each two samples after the first into one.
    fn thin_out(&mut self) {
        let mut kept: Vec<Sample> = Vec::with_capacity(self.samples.len() / 2 + 1);
        for (n, mut sample) in std::mem::take(&mut self.samples).into_iter().enumerate() {
            match kept.last_mut().filter(|_| n > 0 && n % 2 == 0) {
                Some(last) => {
                    sample.merge(std::mem::take(last));
                    *last = sample;
                }
                None => kept.push(sample),
            }
        }
        self.samples = kept;
        self.each *= 2;
    }

    /// Returns the samples, the oldest first.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }
}

/// Returns the two modes of the times of the most frequent kind of answers: for messages from when
/// they were sent, if that is known.
fn answer_modes(load: &LoadInterval) -> Option<TwoModes> {
    let count = |operation: &Operation| load.latency(*operation).count();
    let most = Operation::requests().max_by_key(count)?;
    let from_send = &load.times.from_send;
    let is_from_send = most == Operation::Message && from_send.count() > 0;
    TwoModes::of(if is_from_send { from_send } else { load.latency(most) })
}

impl Sample {
    /// Reduces an interval to a sample.
    fn of(interval: &Interval) -> Self {
        let quantiles = |of: &dyn Fn(&LoadInterval) -> &Histogram| {
            interval.load.as_ref().map_or_else(Quantiles::default, |load| Quantiles::of(of(load)))
        };
        Self {
            lag: quantiles(&|load| &load.lag),
            latencies: PerOperation::of(|operation| quantiles(&|load| load.latency(operation))),
            from_send: quantiles(&|load| &load.times.from_send),
            answer_modes: interval.load.as_ref().and_then(answer_modes),
            interval: Interval {
                at_ms: interval.at_ms,
                span_ms: interval.span_ms,
                load: interval.load.as_ref().map(|load| LoadInterval {
                    answer_gap: load.answer_gap,
                    outage: load.outage,
                    early_closes: load.early_closes.clone(),
                    ..load.without_measured()
                }),
                server: interval.server.clone(),
                machine: interval.machine.clone(),
                kernel: interval.kernel.clone(),
                server_kernel: interval.server_kernel.clone(),
                server_machine: interval.server_machine.clone(),
                programs: interval.programs.clone(),
                server_programs: interval.server_programs.clone(),
                unseen: interval.unseen.clone(),
                events: interval.events.clone(),
            },
        }
    }

    /// Merges the sample before this one into it. Counters and gauges are those of the end in any
    /// case.
    fn merge(&mut self, mut before: Self) {
        self.interval.span_ms = self.interval.span_ms.saturating_add(before.interval.span_ms);
        if let (Some(load), Some(before)) = (&mut self.interval.load, &before.interval.load) {
            load.answer_gap = longer_gap(before.answer_gap, load.answer_gap);
            load.outage = merge_outages(before.outage, load.outage);
            let room = EARLY_CLOSES_MAX.saturating_sub(load.early_closes.len());
            load.early_closes.extend(before.early_closes.iter().take(room).cloned());
            for (own, before) in load.machines.iter_mut().zip(&before.machines) {
                own.merge(before);
            }
        }
        for (own, other) in [
            (&mut self.interval.programs, &mut before.interval.programs),
            (&mut self.interval.server_programs, &mut before.interval.server_programs),
        ] {
            merge_programs(own, std::mem::take(other));
        }
        let events = std::mem::take(&mut self.interval.events);
        self.interval.events = [before.interval.events, events].concat();
        self.answer_modes = self.answer_modes.or(before.answer_modes);
        self.interval.unseen = self.interval.unseen.take().or(before.interval.unseen);
        self.lag.merge_worse(before.lag);
        self.from_send.merge_worse(before.from_send);
        for (operation, own) in self.latencies.iter_mut() {
            own.merge_worse(before.latencies[operation]);
        }
    }

    /// Returns the latency of an operation.
    pub fn latency(&self, operation: Operation) -> Quantiles {
        self.latencies[operation]
    }

    /// Returns the generator's part, which every interval of a sound file has.
    pub fn load(&self) -> Option<&LoadInterval> {
        self.interval.load.as_ref()
    }
}

/// Returns the longer of two gaps, or the first if they are equal.
fn longer_gap(first: Option<AnswerGap>, second: Option<AnswerGap>) -> Option<AnswerGap> {
    let gaps = [second, first].into_iter().flatten();
    gaps.max_by_key(AnswerGap::length_ms)
}

/// Merges the outage marks of two intervals: the first of each kind, and the last refusal.
fn merge_outages(first: Option<Outage>, second: Option<Outage>) -> Option<Outage> {
    let (Some(one), Some(other)) = (first, second) else { return first.or(second) };
    Some(Outage {
        lost_ms: one.lost_ms.or(other.lost_ms),
        refused_ms: one.refused_ms.or(other.refused_ms),
        refused_last_ms: other.refused_last_ms.or(one.refused_last_ms),
        back_ms: one.back_ms.or(other.back_ms),
    })
}

/// Adds the programs of another interval. A program in both keeps its larger CPU time.
fn merge_programs(own: &mut Vec<ProgramUse>, others: Vec<ProgramUse>) {
    for other in others {
        match own.iter_mut().find(|known| known.pid == other.pid) {
            Some(known) => known.millicpus = known.millicpus.max(other.millicpus),
            None => own.push(other),
        }
    }
    if own.len() > PROGRAMS_MAX {
        own.sort_by_key(|program| std::cmp::Reverse(program.millicpus));
        own.truncate(PROGRAMS_MAX);
    }
}

/// Early closes that a sample keeps.
const EARLY_CLOSES_MAX: usize = 64;

impl Quantiles {
    /// Returns these if they have a value, else the others.
    pub(crate) fn or(self, others: Self) -> Self {
        if self.count > 0 { self } else { others }
    }

    /// Keeps the worse of two, with the count of both.
    fn merge_worse(&mut self, other: Self) {
        let count = self.count + other.count;
        if other.p99_us > self.p99_us {
            *self = other;
        }
        self.count = count;
    }

    /// Reduces a histogram to a few numbers.
    fn of(histogram: &Histogram) -> Self {
        let min_us = histogram.iter().next().map_or(0, |(us, _)| us);
        let fastest = histogram.iter().take_while(|(us, _)| *us <= min_us + min_us / 10);
        Self {
            fastest: fastest.map(|(_, count)| u64::from(count)).sum(),
            count: histogram.count(),
            p50_us: histogram.percentile(50.0),
            p99_us: histogram.percentile(99.0),
            min_us,
            max_us: histogram.max(),
        }
    }
}

/// The most events that are kept: the first ones.
const EVENTS_MAX: usize = 50_000;
/// The most programs of one sample: those with the most CPU time.
const PROGRAMS_MAX: usize = 64;
/// The most samples that are kept: half an hour of seconds.
const SAMPLES_MAX: usize = 2_048;

#[cfg(test)]
mod tests {
    use throng_measure::{RunEvent, RunEventKind};

    use throng_measure::Metric;

    use super::*;

    #[test]
    fn a_run_of_days_keeps_a_bounded_part_and_loses_no_time_no_count_and_no_event() {
        let mut history = History::new(RunHeader::default());
        for second in 0..100_000_u64 {
            let mut load = LoadInterval::default();
            load.lag.record_us(if second == 50_001 { 77_000 } else { 10 });
            let event =
                RunEvent::new(second, RunEventKind::AcceptResumed { core: 0, paused_ms: 1 });
            history.add(&Interval {
                at_ms: 1_000 * second,
                span_ms: if second == 0 { 0 } else { 1_000 },
                load: Some(load),
                kernel: [(Metric::TCP_IN_SEGS, second as i64)].into(),
                events: Vec::from_iter((second % 10_000 == 7).then_some(event)),
                ..Interval::default()
            });
        }
        let samples = history.samples();
        assert!((SAMPLES_MAX / 2..=SAMPLES_MAX + 1).contains(&samples.len()), "{}", samples.len());
        assert_eq!((samples[0].interval.at_ms, samples[0].interval.span_ms), (0, 0));
        for pair in samples.windows(2) {
            assert_eq!(pair[0].interval.at_ms + pair[1].interval.span_ms, pair[1].interval.at_ms);
        }
        let last = samples.last().unwrap();
        assert_eq!(
            (last.interval.at_ms, last.interval.kernel[Metric::TCP_IN_SEGS]),
            (99_999_000, 99_999)
        );
        let sum = |of: fn(&Sample) -> u64| samples.iter().map(of).sum::<u64>();
        assert_eq!(sum(|sample| sample.lag.count), 100_000);
        assert_eq!(sum(|sample| sample.interval.events.len() as u64), 10);
        assert!(samples.iter().any(|sample| sample.lag.p99_us >= 77_000));
    }
}
