//! Where latency leaves the ground as the load grows.

/// One second of a growing load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// When it ended, in milliseconds since the run began.
    pub(crate) at_ms: u64,
    /// Messages per second that were due.
    pub(crate) intended_rate: f64,
    /// Messages per second that were answered.
    pub(crate) rate: f64,
    /// 99 % of the answers took at most so long, from the moment they were due; none without answers.
    pub(crate) p99_us: Option<u64>,
}

/// The first point from which the latency stays up, and what it is compared with.
///
/// The ground is the median of the p99s of the first quarter of the points. The knee is the first point
/// of at least [`STAYS_UP`] in a row (or of the last ones, if fewer are left) whose p99 is above both
/// [`TIMES_GROUND`] times the ground and [`FLOOR_US`], or above [`CEILING_US`]. A point in which nothing was answered although
/// something was due is above everything.
pub(crate) fn knee(points: &[Point]) -> Option<Knee> {
    let ground_us = baseline(points)?;
    let limit_us = (TIMES_GROUND * ground_us).clamp(FLOOR_US, CEILING_US);
    let is_up = |point: &Point| match point.p99_us {
        Some(p99_us) => p99_us > limit_us,
        None => point.intended_rate > 0.0,
    };
    // The ground itself is not searched: it is by definition not above itself for long.
    let stays_up = |from: usize| points[from..].iter().take(STAYS_UP).all(is_up);
    let at = (1..points.len()).find(|from| stays_up(*from))?;
    let before = points[..at].iter().map(|point| point.intended_rate).fold(0.0, f64::max);
    Some(Knee { at_ms: points[at].at_ms, rate: before, baseline_us: ground_us, limit_us })
}

/// The median p99 of the first quarter, in microseconds.
pub(crate) fn baseline(points: &[Point]) -> Option<u64> {
    let first = points.len().div_ceil(4);
    let mut p99s: Vec<_> = points[..first].iter().filter_map(|point| point.p99_us).collect();
    p99s.sort_unstable();
    p99s.get(p99s.len().checked_sub(1)? / 2).copied()
}

/// Where latency left the ground.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Knee {
    /// When, in milliseconds since the run began.
    pub(crate) at_ms: u64,
    /// The most messages a second that were due before: what was asked for, not what came of it.
    pub(crate) rate: f64,
    /// The ground.
    pub(crate) baseline_us: u64,
    /// What the p99 then stayed above.
    pub(crate) limit_us: u64,
}

/// How many points in a row must be above.
pub(crate) const STAYS_UP: usize = 3;
/// Times the ground.
pub(crate) const TIMES_GROUND: u64 = 5;
/// A p99 below this is never a knee, however low the ground: 10 ms.
pub(crate) const FLOOR_US: u64 = 10_000;

/// A p99 above this is never the ground, however badly the run began: 100 ms.
pub(crate) const CEILING_US: u64 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Points a second apart, at 1,000 messages a second more each; 0 stands for no answer.
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
    fn a_high_ground_is_left_at_five_times_its_height() {
        check(&[20, 20, 20, 20, 90, 100, 100, 101, 102, 103, 104, 105], Some((8000, 7000.0)));
    }

    #[test]
    fn a_bad_beginning_is_no_ground() {
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
        // A backlog that is worked off answers more than is due.
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
