//! The knee: the load beyond which latency stays above its baseline.

use throng_measure::{Interval, LoadInterval};
use throng_report::render::micros;
use throng_run::test_bed::NextStep;

/// One second of a growing load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// The end of the second, in milliseconds since the run began.
    pub(crate) at_ms: u64,
    /// Messages per second that were due.
    pub(crate) intended_rate: f64,
    /// Messages per second that were answered.
    pub(crate) rate: f64,
    /// p99 of the answers, from their intended moments; none without answers.
    pub(crate) p99_us: Option<u64>,
}

/// Returns the first point from which the latency stays up.
///
/// The baseline is the median of the p99s of the first quarter of the points. The knee is the first
/// point of at least [`POINTS_UP`] in a row (or of the last ones, if fewer are left) whose p99 is
/// above both [`TIMES_BASELINE`] times the baseline and [`FLOOR_US`], or above [`CEILING_US`]. A
/// point without an answer counts as above every limit if messages were due.
pub(crate) fn knee(points: &[Point]) -> Option<Knee> {
    let ground_us = baseline(points)?;
    let limit_us = (TIMES_BASELINE * ground_us).clamp(FLOOR_US, CEILING_US);
    let is_up = |point: &Point| match point.p99_us {
        Some(p99_us) => p99_us > limit_us,
        None => point.intended_rate > 0.0,
    };
    // The first point cannot be the knee: the rate before it is unknown.
    let stays_up = |from: usize| points[from..].iter().take(POINTS_UP).all(is_up);
    let at = (1..points.len()).find(|from| stays_up(*from))?;
    let before = points[..at].iter().map(|point| point.intended_rate).fold(0.0, f64::max);
    Some(Knee { at_ms: points[at].at_ms, rate: before, baseline_us: ground_us, limit_us })
}

/// Returns the median p99 of the first quarter, in microseconds.
pub(crate) fn baseline(points: &[Point]) -> Option<u64> {
    let first = points.len().div_ceil(4);
    let mut p99s: Vec<_> = points[..first].iter().filter_map(|point| point.p99_us).collect();
    p99s.sort_unstable();
    p99s.get(p99s.len().checked_sub(1)? / 2).copied()
}

/// Describes the knee: `the first second of at least 3 whose p99 is …`.
pub(crate) fn describe() -> String {
    format!(
        "the first second of at least {POINTS_UP} whose p99 is above {TIMES_BASELINE} times the \
         baseline (the median p99 of the first quarter) and above {}, or above {}",
        micros(FLOOR_US),
        micros(CEILING_US)
    )
}

/// The point at which latency rose above its baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Knee {
    /// The end of the knee's second, in milliseconds since the run began.
    pub(crate) at_ms: u64,
    /// The most messages per second that were due before the knee, answered or not.
    pub(crate) rate: f64,
    /// The baseline of the p99.
    pub(crate) baseline_us: u64,
    /// The limit above which the p99 then stayed.
    pub(crate) limit_us: u64,
}

/// Ends a load soon after its knee: messages that are due later only queue up.
pub(crate) struct KneeWatch<P> {
    /// Returns the point of an interval, from the counters before it and after it.
    point: P,
    before: Option<LoadInterval>,
    points: Vec<Point>,
}

impl<P: Fn(&Interval, &LoadInterval, &LoadInterval) -> Option<Point>> KneeWatch<P> {
    pub(crate) fn new(point: P) -> Self {
        Self { point, before: None, points: Vec::new() }
    }

    pub(crate) fn add(&mut self, interval: &Interval) -> NextStep {
        let Some(now) = &interval.load else { return NextStep::Continue };
        if let Some(before) = self.before.replace(now.clone()) {
            self.points.extend((self.point)(interval, &before, now));
        }
        let last_ms = self.points.last().map_or(0, |point| point.at_ms);
        // The next seconds can still disprove a knee.
        let is_known = |knee: Knee| last_ms >= knee.at_ms + 1000 * POINTS_UP as u64;
        let enough = self.points.len() >= POINTS_LEAST;
        if enough && knee(&self.points).is_some_and(is_known) {
            NextStep::Stop
        } else {
            NextStep::Continue
        }
    }
}

/// The fewest seconds that give a baseline.
const POINTS_LEAST: usize = 12;
/// The points in a row that must be above the limit.
const POINTS_UP: usize = 3;
/// The multiple of the baseline that is the limit.
const TIMES_BASELINE: u64 = 5;
/// The lowest limit, however low the baseline: 10 ms.
const FLOOR_US: u64 = 10_000;
/// The highest limit, however slow the beginning of the run: 100 ms.
const CEILING_US: u64 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns points a second apart, each with 1,000 more messages per second; 0 means no answer.
    fn points(p99s_ms: &[u64]) -> Vec<Point> {
        let point = |(i, p99): (usize, &u64)| Point {
            at_ms: 1000 * (i as u64 + 1),
            intended_rate: 1000.0 * (i + 1) as f64,
            rate: 1000.0 * (i + 1) as f64,
            p99_us: (*p99 > 0).then_some(p99 * 1000),
        };
        p99s_ms.iter().enumerate().map(point).collect()
    }

    #[track_caller]
    fn check(p99s_ms: &[u64], at_ms_and_rate: Option<(u64, f64)>) {
        let found = knee(&points(p99s_ms)).map(|knee| (knee.at_ms, knee.rate));
        assert_eq!(found, at_ms_and_rate, "{p99s_ms:?}");
    }

    #[test]
    fn the_knee_is_where_latency_stays_up() {
        check(&[1, 1, 1, 1, 2, 2, 30, 40, 50, 60, 70, 80], Some((7000, 6000.0)));
        check(&[1, 1, 1, 1, 2, 40, 2, 2, 30, 40, 50, 60], Some((9000, 8000.0)));
    }

    #[test]
    fn a_spike_is_no_knee_and_neither_is_a_low_rise() {
        check(&[1, 1, 1, 1, 2, 40, 40, 2, 2, 2, 2, 2], None);
        check(&[1, 1, 1, 1, 2, 6, 7, 8, 9, 10, 10, 10], None);
    }

    #[test]
    fn the_limit_is_five_times_a_high_baseline() {
        check(&[20, 20, 20, 20, 90, 100, 100, 101, 102, 103, 104, 105], Some((8000, 7000.0)));
    }

    #[test]
    fn a_slow_beginning_does_not_raise_the_limit() {
        check(&[400, 300, 50, 60, 50, 60, 200, 300, 400, 500, 600, 700], Some((7000, 6000.0)));
    }

    #[test]
    fn a_rise_at_the_very_end_counts_and_silence_is_a_rise() {
        check(&[1, 1, 1, 1, 1, 1, 1, 50], Some((8000, 7000.0)));
        check(&[1, 1, 1, 1, 0, 0, 0, 0], Some((5000, 4000.0)));
    }

    #[test]
    fn the_knee_is_at_what_was_due_and_not_at_what_was_answered() {
        let mut points = points(&[1, 1, 1, 1, 2, 2, 30, 40, 50]);
        // While a backlog shrinks, more messages are answered than are due.
        points[5].rate = 9000.0;
        assert_eq!(knee(&points).map(|knee| knee.rate), Some(6000.0));
    }

    #[test]
    fn without_points_there_is_no_knee() {
        check(&[], None);
        check(&[0, 0], None);
        assert_eq!(baseline(&points(&[5, 1, 9, 3, 1, 1, 1, 1, 1, 1, 1, 1])), Some(5000));
    }
}
