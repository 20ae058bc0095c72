//! Times that are of two kinds, with nothing between them.

use throng_measure::Histogram;

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
    /// has too few values. Hardly any values lie in the gap: a pause of a machine delays a few.
    pub(crate) fn of(histogram: &Histogram) -> Option<Self> {
        let all = histogram.count();
        let buckets: Vec<(u64, u64)> =
            histogram.iter().map(|(us, count)| (us, u64::from(count))).collect();
        if all < VALUES_MIN {
            return None;
        }
        let few = |one_in: u64| all / one_in;
        let (mut fast, mut widest) = (0, None::<(f64, Gap)>);
        for (at, (from_us, count)) in buckets.iter().enumerate() {
            fast += count;
            let with_strays = |most| Gap::after(at, fast, all, &buckets, most);
            for gap in [with_strays(0), with_strays(few(STRAY_ONE_IN))] {
                let Some((to_us, _)) = buckets.get(gap.above) else { continue };
                let times = *to_us as f64 / (*from_us).max(1) as f64;
                let is_wide = times >= TIMES_MIN && *to_us >= SLOW_MIN_US;
                // Values that differ by chance are outliers where they are few.
                let is_fixed = || {
                    gap.slow >= FIXED_MIN
                        && gap.slow > few(FIXED_ONE_IN)
                        && is_fixed(&buckets[gap.above..])
                };
                let is_many = fast > few(FEW_ONE_IN) && (gap.slow > few(FEW_ONE_IN) || is_fixed());
                let is_kind = || gap.strays == 0 || is_near(&buckets[gap.above..], gap.slow);
                if is_wide && is_many && is_kind() && widest.is_none_or(|widest| times > widest.0) {
                    widest = Some((times, gap));
                }
            }
        }
        let (_, Gap { below, above, fast, slow, .. }) = widest?;
        Some(Self {
            all,
            slow,
            fast_us: median(&buckets[..below], fast)?,
            slow_us: median(&buckets[above..], slow)?,
            is_fixed: is_fixed(&buckets[above..]),
        })
    }

    /// Returns the share of slow values.
    pub(crate) fn share(&self) -> f64 {
        self.slow as f64 / self.all as f64
    }
}

/// A part of a histogram that has hardly any values.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// Number of buckets below it, and index of the first one above it.
    below: usize,
    above: usize,
    /// Values below and above it.
    fast: u64,
    slow: u64,
    /// Values in it.
    strays: u64,
}

impl Gap {
    /// Returns the gap after a bucket, in which at most so many values lie. `fast` of `all` values
    /// are up to that bucket.
    fn after(at: usize, fast: u64, all: u64, buckets: &[(u64, u64)], strays_most: u64) -> Self {
        let (mut above, mut slow, mut strays) = (at + 1, all - fast, 0);
        while let Some((_, count)) = buckets.get(above).filter(|(_, n)| strays + n <= strays_most) {
            strays += count;
            slow -= count;
            above += 1;
        }
        Self { below: at + 1, above, fast, slow, strays }
    }
}

/// Reports whether the last of these buckets is about as slow as the first.
fn is_fixed(buckets: &[(u64, u64)]) -> bool {
    let ends = buckets.first().zip(buckets.last());
    ends.is_some_and(|((first, _), (last, _))| last - first <= first / FIXED_NEAR_ONE_IN)
}

/// Reports whether most of so many values in buckets are near to one another. Those of a server
/// that stands still now and then are of any length.
fn is_near(buckets: &[(u64, u64)], count: u64) -> bool {
    let of_ten = |tenth| quantile(buckets, count, tenth, 10);
    let ends = of_ten(1).zip(of_ten(9));
    ends.is_some_and(|(low, high)| high as f64 <= low as f64 * NEAR_TIMES)
}

/// Returns the median of so many values in buckets.
fn median(buckets: &[(u64, u64)], count: u64) -> Option<u64> {
    quantile(buckets, count, 1, 2)
}

/// Returns the smallest of so many values in buckets that at least this part of them do not exceed.
fn quantile(buckets: &[(u64, u64)], count: u64, part: u64, of: u64) -> Option<u64> {
    let mut seen = 0;
    buckets.iter().find_map(|(us, n)| {
        seen += n;
        (seen * of >= count * part).then_some(*us)
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
const FIXED_ONE_IN: u64 = 100;
const FIXED_MIN: u64 = 5;

/// The part of all values, one in so many, that may lie between both sides.
const STRAY_ONE_IN: u64 = 50;

/// How many times as long as the shortest tenth of them the longest tenth of near values is.
const NEAR_TIMES: f64 = 2.5;

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
        assert_eq!(of(&[(1_000, 1_190), (1_000_000, 10)]), None);
    }

    #[test]
    fn a_few_values_between_two_kinds_do_not_hide_them() {
        let between = |n| of(&[(30_000, 100), (80_000, n), (200_000, 48)]);
        let modes = between(2).expect("two modes");
        assert_eq!((modes.all, modes.slow), (150, 48));
        assert_eq!(between(20), None);
        // Those of a loop that stands still for 300 ms are of any length.
        let mut blocked = vec![(1_000, 180), (10_000, 1), (30_000, 1)];
        blocked.extend((0..12).map(|n| (60_000 + 20_000 * n, 2)));
        assert_eq!(of(&blocked), None);
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
