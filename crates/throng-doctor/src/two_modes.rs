//! Times that are of two kinds, with nothing between them.

use throng_report::Histogram;

/// A histogram that falls apart into fast and slow values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TwoModes {
    /// Number of all values.
    pub(crate) all: u64,
    /// Number of slow values.
    pub(crate) slow: u64,
    /// Median of the fast values, in microseconds.
    pub(crate) fast_us: u64,
    /// Median of the slow values, in microseconds.
    pub(crate) slow_us: u64,
    /// True if all slow values are nearly the same: those of a fixed time.
    pub(crate) is_fixed: bool,
}

impl TwoModes {
    /// Splits a histogram at its widest gap, or returns `None` if the gap is narrow, or one side
    /// has too few values.
    pub(crate) fn of(histogram: &Histogram) -> Option<Self> {
        let all = histogram.count();
        let buckets: Vec<(u64, u64)> =
            histogram.iter().map(|(us, count)| (us, u64::from(count))).collect();
        if all < VALUES_MIN {
            return None;
        }
        let (mut fast, mut widest) = (0, None::<(f64, usize, u64)>);
        for (at, pair) in buckets.windows(2).enumerate() {
            fast += pair[0].1;
            let times = pair[1].0 as f64 / pair[0].0.max(1) as f64;
            let is_wide = times >= TIMES_MIN && pair[1].0 >= SLOW_MIN_US;
            let slow = all - fast;
            let few = |one_in: u64| all / one_in;
            // Values that differ by chance are outliers where they are few.
            let is_fixed =
                || slow >= FIXED_MIN && slow > few(FIXED_ONE_IN) && is_fixed(&buckets[at + 1..]);
            let is_many = slow > few(FEW_ONE_IN) || is_fixed();
            if is_wide && fast > few(FEW_ONE_IN) && is_many && widest.is_none_or(|w| times > w.0) {
                widest = Some((times, at + 1, fast));
            }
        }
        let (_, at, fast) = widest?;
        let (below, above) = buckets.split_at(at);
        Some(Self {
            all,
            slow: all - fast,
            fast_us: median(below, fast)?,
            slow_us: median(above, all - fast)?,
            is_fixed: is_fixed(above),
        })
    }

    /// Returns the share of slow values.
    pub(crate) fn share(&self) -> f64 {
        self.slow as f64 / self.all as f64
    }
}

/// Reports whether the last of these buckets is about as slow as the first.
fn is_fixed(buckets: &[(u64, u64)]) -> bool {
    let ends = buckets.first().zip(buckets.last());
    ends.is_some_and(|((first, _), (last, _))| last - first <= first / FIXED_NEAR_ONE_IN)
}

/// Returns the median of so many values in buckets.
fn median(buckets: &[(u64, u64)], count: u64) -> Option<u64> {
    let mut seen = 0;
    buckets.iter().find_map(|(us, n)| {
        seen += n;
        (seen * 2 >= count).then_some(*us)
    })
}

/// The fewest values that can have two modes.
const VALUES_MIN: u64 = 20;

/// How many times as long as the slowest fast value the fastest slow one is.
const TIMES_MIN: f64 = 4.0;

/// The fastest value that is slow: people do not notice less.
const SLOW_MIN_US: u64 = 50_000;

/// The part of all values, one in so many, that each side must exceed: fewer are outliers.
const FEW_ONE_IN: u64 = 12;

/// The same part for slow values that are nearly the same, and the fewest of them.
const FIXED_ONE_IN: u64 = 40;
const FIXED_MIN: u64 = 5;

/// The part of a fixed time, one in so many, by which its values differ at most.
const FIXED_NEAR_ONE_IN: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[(u64, u32)]) -> Option<TwoModes> {
        let mut histogram = Histogram::new();
        values.iter().for_each(|(us, n)| histogram.record_n(*us, *n));
        TwoModes::of(&histogram)
    }

    #[test]
    fn two_kinds_of_times_are_told_apart() {
        let modes = of(&[(900, 20), (1_000, 30), (2_000, 10), (400_000, 25), (420_000, 5)]);
        let modes = modes.expect("two modes");
        assert_eq!((modes.all, modes.slow), (90, 30));
        assert!((modes.fast_us, modes.slow_us) > (900, 390_000), "{modes:?}");
        assert!(modes.fast_us < 1_100 && modes.slow_us < 410_000, "{modes:?}");
    }

    #[test]
    fn a_few_values_of_a_fixed_time_are_a_kind() {
        let modes = of(&[(1_000, 190), (1_000_000, 6), (1_010_000, 4)]).expect("two modes");
        assert_eq!((modes.slow, modes.is_fixed), (10, true));
        assert_eq!(of(&[(1_000, 190), (1_000_000, 6), (2_000_000, 4)]), None);
        assert_eq!(of(&[(1_000, 590), (1_000_000, 10)]), None);
    }

    #[test]
    fn one_kind_a_few_outliers_and_a_slope_are_not_two() {
        assert_eq!(of(&[(1_000, 90)]), None);
        assert_eq!(of(&[(1_000, 90), (400_000, 3)]), None);
        let slope: Vec<_> = (0..40).map(|n| (10_000 * (n + 1), 3)).collect();
        assert_eq!(of(&slope), None);
        // Both are fast.
        assert_eq!(of(&[(1_000, 50), (30_000, 50)]), None);
        assert_eq!(of(&[(1_000, 5), (400_000, 5)]), None);
    }
}
