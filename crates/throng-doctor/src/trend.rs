//! The straight line through the values of a series.

/// A straight line through points in time, by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trend {
    /// Value of the line at the first point.
    pub(crate) from: f64,
    /// Value of the line at the last point.
    pub(crate) to: f64,
    /// Growth of the line in a second.
    pub(crate) per_second: f64,
    /// Time of the first point, in milliseconds.
    pub(crate) from_ms: u64,
    /// Time of the last point, in milliseconds.
    pub(crate) to_ms: u64,
    /// Part of the values' variance that the line explains, 0 to 1.
    fit: f64,
    /// Part of the steps from a point to the next that go up.
    rises: f64,
}

impl Trend {
    /// Returns the line through points of `(milliseconds, value)`, or `None` for fewer than
    /// [`POINTS_MIN`].
    pub(crate) fn of(points: &[(u64, f64)]) -> Option<Self> {
        if points.len() < POINTS_MIN {
            return None;
        }
        let (from_ms, to_ms) = (points.first()?.0, points.last()?.0);
        let seconds = |ms: u64| ms.saturating_sub(from_ms) as f64 / 1000.0;
        let n = points.len() as f64;
        let mean_x = points.iter().map(|(ms, _)| seconds(*ms)).sum::<f64>() / n;
        let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / n;
        let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
        for (ms, y) in points {
            let (dx, dy) = (seconds(*ms) - mean_x, y - mean_y);
            (xx, xy, yy) = (xx + dx * dx, xy + dx * dy, yy + dy * dy);
        }
        if xx <= 0.0 || yy <= 0.0 {
            return None;
        }
        let per_second = xy / xx;
        let at = |ms: u64| mean_y + per_second * (seconds(ms) - mean_x);
        let up = points.windows(2).filter(|pair| pair[1].1 > pair[0].1).count();
        Some(Self {
            from: at(from_ms).max(0.0),
            to: at(to_ms),
            per_second,
            from_ms,
            to_ms,
            fit: xy * xy / (xx * yy),
            rises: up as f64 / (points.len() - 1) as f64,
        })
    }

    /// Reports whether the values grow steadily: no single jump makes the line.
    pub(crate) fn is_steady_growth(&self) -> bool {
        self.per_second > 0.0 && self.fit >= FIT_MIN && self.rises >= RISES_MIN
    }

    /// Returns the growth over the whole line.
    pub(crate) fn by(&self) -> f64 {
        self.to - self.from
    }
}

/// The fewest points that make a trend.
pub(crate) const POINTS_MIN: usize = 5;

/// The smallest part of the variance that a steady growth explains.
const FIT_MIN: f64 = 0.85;

/// The smallest part of the steps that go up in a steady growth.
const RISES_MIN: f64 = 0.7;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Option<Trend> {
        let points: Vec<_> =
            values.iter().enumerate().map(|(n, value)| (1_000 * n as u64, *value)).collect();
        Trend::of(&points)
    }

    #[test]
    fn a_straight_line_is_found_as_it_is() {
        let line = of(&[10.0, 12.0, 14.0, 16.0, 18.0]).unwrap();
        assert!((line.per_second - 2.0).abs() < 1e-9 && line.is_steady_growth(), "{line:?}");
        assert!((line.from - 10.0).abs() < 1e-9 && (line.to - 18.0).abs() < 1e-9, "{line:?}");
        assert!((line.by() - 8.0).abs() < 1e-9);
    }

    #[test]
    fn a_jump_a_fall_and_noise_are_no_steady_growth() {
        let jump = of(&[10.0, 10.0, 10.0, 10.0, 90.0, 90.0]).unwrap();
        let fall = of(&[18.0, 16.0, 14.0, 12.0, 10.0]).unwrap();
        let noise = of(&[10.0, 14.0, 9.0, 15.0, 10.0, 13.0]).unwrap();
        assert!([jump, fall, noise].iter().all(|trend| !trend.is_steady_growth()));
        assert_eq!((of(&[1.0, 2.0, 3.0]), of(&[7.0; 6])), (None, None));
    }
}
