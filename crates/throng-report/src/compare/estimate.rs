//! The difference of two values, and the interval in which it is likely to be.

use super::bootstrap::Uncertainty;

/// A value of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Estimate {
    pub(super) value: Option<f64>,
    pub(super) spread: Option<Uncertainty>,
}

/// The difference between two values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Difference {
    /// The second value minus the first.
    pub(super) difference: Option<f64>,
    /// The second value divided by the first.
    pub(super) ratio: Option<f64>,
    pub(super) difference_interval: Option<(f64, f64)>,
    pub(super) ratio_interval: Option<(f64, f64)>,
}

/// The confidence of all intervals.
pub(super) const CONFIDENCE: f64 = 0.95;

/// The digits in which a value was recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Precision {
    /// All digits.
    Exact,
    /// A latency in microseconds, in the cells of a histogram: 1 µs wide, and from 2 ms on 0.1 % of
    /// their value.
    Cells,
}

impl Precision {
    /// Returns the width of the cell that a value is in.
    fn width(self, value: f64) -> f64 {
        match self {
            Self::Exact => 0.0,
            Self::Cells => f64::max(CELL_SHARE * value, CELL_LEAST_US),
        }
    }
}

/// The width of a wide cell, as a share of its value.
const CELL_SHARE: f64 = 0.001;
/// The width of the narrowest cell, in microseconds.
const CELL_LEAST_US: f64 = 1.0;

/// Compares two values. An interval is wider by the cell that each of them was recorded in.
pub(super) fn compare(before: &Estimate, after: &Estimate, precision: Precision) -> Difference {
    let Some((a, b)) = before.value.zip(after.value) else { return Difference::default() };
    let difference = b - a;
    let ratio = match (a == b, a > 0.0) {
        (true, _) => Some(1.0),
        (false, true) => Some(b / a),
        (false, false) => None,
    };
    let mut compared = Difference { difference: Some(difference), ratio, ..Difference::default() };
    let Some((one, other)) = before.spread.zip(after.spread) else { return compared };
    let half = half_width((one.error, one.freedom), (other.error, other.freedom));
    let half = half + (precision.width(a) + precision.width(b)) / 2.0;
    compared.difference_interval = Some((brief(difference - half), brief(difference + half)));
    if let (Some(log_one), Some(log_other), true) =
        (one.log_error, other.log_error, a > 0.0 && b > 0.0)
    {
        let least = a.min(b);
        let half = half_width((log_one, one.freedom), (log_other, other.freedom));
        let half = half + precision.width(least) / least;
        let log = (b / a).ln();
        compared.ratio_interval = Some((brief((log - half).exp()), brief((log + half).exp())));
    }
    compared
}

impl Difference {
    /// Reports whether the interval leaves out that nothing changed; `None` without an interval.
    pub(super) fn excludes_zero(&self) -> Option<bool> {
        let (interval, same) = match (self.ratio_interval, self.difference_interval) {
            (Some(interval), _) => (interval, 1.0),
            (None, Some(interval)) => (interval, 0.0),
            (None, None) => return None,
        };
        Some(same < interval.0 || same > interval.1)
    }
}

/// Rounds to six digits: an interval is not known to more.
fn brief(n: f64) -> f64 {
    format!("{n:.5e}").parse().unwrap_or(n)
}

/// Returns half the width of the interval of a difference, by Welch's method. A value comes with
/// its standard error and degrees of freedom.
fn half_width(one: (f64, f64), other: (f64, f64)) -> f64 {
    let (v1, v2) = (one.0.powi(2), other.0.powi(2));
    if v1 + v2 <= 0.0 {
        return 0.0;
    }
    let freedom = (v1 + v2).powi(2) / (v1.powi(2) / one.1 + v2.powi(2) / other.1);
    student(freedom) * (v1 + v2).sqrt()
}

/// Returns the quantile of Student's distribution that 95 % of its values do not exceed on either
/// side.
fn student(freedom: f64) -> f64 {
    let whole = freedom.floor().max(1.0);
    match QUANTILES.get(whole as usize - 1) {
        Some(quantile) => *quantile,
        None => 1.96 + 2.46 / freedom,
    }
}

/// These quantiles for 1 to 30 degrees of freedom.
const QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, error: f64) -> Estimate {
        let log_error = (value > 0.0).then(|| error / value);
        let spread = Some(Uncertainty { error, log_error, freedom: 1e6, samples: 9 });
        Estimate { value: Some(value), spread }
    }

    #[test]
    fn an_interval_is_around_the_difference_and_around_the_ratio() {
        let compared = compare(&estimate(100.0, 3.0), &estimate(120.0, 4.0), Precision::Exact);
        let (low, high) = compared.difference_interval.unwrap();
        assert!((low - 10.2).abs() < 0.01 && (high - 29.8).abs() < 0.01, "{low} {high}");
        assert_eq!(compared.ratio, Some(1.2));
        let (low, high) = compared.ratio_interval.unwrap();
        assert!(low > 1.09 && low < 1.2 && high < 1.33, "{low} {high}");
        assert_eq!(compared.excludes_zero(), Some(true));
    }

    #[test]
    fn nothing_is_divided_by_zero() {
        let compared = compare(&estimate(0.0, 0.0), &estimate(3.0, 1.0), Precision::Exact);
        assert_eq!((compared.ratio, compared.ratio_interval), (None, None));
        assert_eq!(compared.difference, Some(3.0));
        let same = compare(&estimate(0.0, 0.0), &estimate(0.0, 0.0), Precision::Exact);
        assert_eq!((same.ratio, same.excludes_zero()), (Some(1.0), Some(false)));
    }

    #[test]
    fn a_cell_of_the_histogram_is_no_difference() {
        let excludes = |a: f64, b: f64| {
            let compared = compare(&estimate(a, 0.0), &estimate(b, 0.0), Precision::Cells);
            let (low, high) = compared.difference_interval.unwrap();
            assert_eq!(compared.excludes_zero(), Some(low > 0.0 || high < 0.0), "{a} {b}");
            compared.excludes_zero().unwrap()
        };
        for (a, b) in [(2_000.0, 2_001.0), (64.0, 65.0), (65.0, 64.0), (1.0, 2.0), (0.0, 1.0)] {
            assert!(!excludes(a, b), "{a} {b}");
        }
        for (a, b) in [(2_000.0, 2_010.0), (64.0, 66.0), (66.0, 64.0), (500_000.0, 501_000.0)] {
            assert!(excludes(a, b), "{a} {b}");
        }
    }

    #[test]
    fn what_was_not_measured_has_no_difference() {
        let compared = compare(&Estimate::default(), &estimate(3.0, 1.0), Precision::Exact);
        assert_eq!((compared, compared.excludes_zero()), (Difference::default(), None));
    }
}
