//! The kind of answer that was slow for longest.

use throng_measure::{Evidence, Operation};
use throng_report::render::micros;

use super::SLOW_US;
use crate::cpus::INTERVALS_MIN;
use crate::history::{Quantiles, Sample};
use crate::impact::timed;
use crate::run_view::RunView;

/// The kind of answer that was slow.
pub(super) struct SlowAnswers<'a> {
    pub(super) operation: Operation,
    /// The intervals in which it was, and its p99 there.
    pub(super) late: Vec<(&'a Sample, u64)>,
    pub(super) worst_us: u64,
    /// The name of the intervals that count.
    intervals: &'static str,
    /// The first slow interval, and the worst if that is another one.
    pub(super) evidence: Vec<Evidence>,
}

impl<'a> SlowAnswers<'a> {
    /// Returns the answers that were slow for longest, if most of their time is not the round trip.
    pub(super) fn slowest(run: &RunView<'a>, is_away: bool) -> Option<Self> {
        let way_us = run
            .samples()
            .iter()
            .map(way)
            .filter(|quantiles| quantiles.count > 0)
            .map(|quantiles| quantiles.p50_us)
            .min();
        let way_limit_us = way_us.unwrap_or(0).saturating_mul(WAYS_MIN);
        let found = timed().filter_map(|operation| {
            let of = |sample: &Sample| answered(sample, operation);
            let threshold_us = run.thresholds.latency_us(operation.name());
            let slow_us = threshold_us.unwrap_or(SLOW_US).min(operation.slow_us());
            let limit_us = way_limit_us.max(slow_us);
            let (in_a_gap, slow): (Vec<_>, Vec<_>) = run
                .samples()
                .iter()
                .filter(|sample| of(sample).count > 0 && of(sample).p99_us > limit_us)
                .partition(|sample| is_away && waited_in_a_gap(run, sample, of(sample).p99_us));
            let stood_still = slow.iter().any(|sample| of(sample).p99_us >= STALL_US);
            let is_enough = stood_still || threshold_us.is_some() || slow.len() >= INTERVALS_MIN;
            let first = slow.first().filter(|_| is_enough)?;
            let worst_us = slow.iter().map(|sample| of(sample).p99_us).max()?;
            let worst = slow.iter().find(|sample| of(sample).p99_us == worst_us)?;
            let before = run.samples().iter().find(|sample| of(sample).count > 0)?;
            let counter = format!("load.{operation}_us.p99");
            let rise = |from: &Sample, to: &Sample| Evidence {
                counter: counter.clone(),
                from: of(from).p99_us as f64,
                to: of(to).p99_us as f64,
                at_ms: to.interval.at_ms,
            };
            let mut evidence = vec![rise(before, first)];
            if of(first).p99_us < worst_us {
                evidence.push(rise(first, worst));
            }
            let intervals = match in_a_gap.is_empty() {
                true => "interval",
                false => "interval in which it did not stand still",
            };
            let late = slow.into_iter().map(|sample| (sample, of(sample).p99_us)).collect();
            Some(Self { operation, late, worst_us, intervals, evidence })
        });
        found.max_by_key(|slow| slow.late.len())
    }

    pub(super) fn describe(&self, run: &RunView<'_>) -> String {
        let Self { operation, worst_us, intervals, .. } = self;
        let plural = match operation {
            Operation::Connect => "upgrades",
            other => other.plural(),
        };
        let worst = micros(*worst_us);
        match self.sent_late(run) {
            Some(us) => format!(
                "{plural} took {} from when they were sent (p50), and {worst} from when they were \
                 due (p99 of the worst {intervals}),",
                micros(us)
            ),
            None => format!("{plural} took {worst} (p99 of the worst {intervals})"),
        }
    }

    /// Returns the median time from when messages were sent, if they were sent late: in the worst
    /// interval, that time was at most two thirds of their latency. Each had to wait for the answer
    /// to the one before.
    pub(super) fn sent_late(&self, run: &RunView<'_>) -> Option<u64> {
        let (worst, us) = self.late.iter().max_by_key(|(_, us)| *us)?;
        let is_late = worst.from_send.count > 0
            && worst.from_send.p99_us.saturating_mul(3) <= us.saturating_mul(2);
        (self.operation == Operation::Message && is_late)
            .then_some(run.summary.message.from_send_us.p50)
    }
}

/// Reports whether one gap, in which the server answered no user, explains most of the answers'
/// time in this interval. It ended in this interval or in the one before: what became due meanwhile
/// is asked after it.
fn waited_in_a_gap(run: &RunView<'_>, sample: &Sample, p99_us: u64) -> bool {
    let earlier =
        run.samples().partition_point(|other| other.interval.at_ms < sample.interval.at_ms);
    let before = earlier.checked_sub(1).map(|at| &run.samples()[at]);
    let gaps = [Some(sample), before].into_iter().flatten();
    let mut gaps = gaps.filter_map(|sample| sample.load()?.answer_gap);
    gaps.any(|gap| gap.length_ms() * 1000 * 2 >= p99_us)
}

/// Returns the round-trip time, as a connect takes it.
fn way(sample: &Sample) -> Quantiles {
    sample.latency(Operation::Tcp).or(sample.latency(Operation::Connect))
}

/// Returns the part of an operation that the server program answers: of a connect, the upgrade.
fn answered(sample: &Sample, operation: Operation) -> Quantiles {
    match operation {
        Operation::Connect => upgrade(sample),
        other => sample.latency(other),
    }
}

/// Returns the part of a WebSocket's connect that the server program answers.
fn upgrade(sample: &Sample) -> Quantiles {
    let [connect, tcp] = [Operation::Connect, Operation::Tcp].map(|of| sample.latency(of));
    if tcp.count == 0 {
        return Quantiles::default();
    }
    Quantiles { p99_us: connect.p99_us.saturating_sub(tcp.p99_us), ..connect }
}

/// The wait from which a single one counts: the server stopped for that long.
const STALL_US: u64 = 1_000_000;

/// The number of round trips above which an answer was not on its way most of the time.
const WAYS_MIN: u64 = 4;
