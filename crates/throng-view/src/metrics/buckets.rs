//! A histogram with few buckets, as Prometheus scrapes it, made from HDR histograms.

use throng_measure::Histogram;

/// The upper bounds of the buckets, in microseconds: seven in each power of ten, each at most half
/// as large again as the one before. So a quantile is off by half of its value at most. Longer
/// latencies are in the last bucket, `+Inf`.
const BOUNDS_US: [u64; BOUNDS] = bounds();

/// The powers of ten from 10 µs to 100 s, …
const DECADES: u32 = 7;
/// … the bounds in each of them, in tenths, …
const STEPS: [u64; 7] = [10, 15, 20, 30, 40, 50, 70];
/// … and the number of all bounds: 100 s is the last.
const BOUNDS: usize = STEPS.len() * DECADES as usize + 1;

const fn bounds() -> [u64; BOUNDS] {
    let mut bounds = [0; BOUNDS];
    let mut i = 0;
    while i < BOUNDS {
        bounds[i] = STEPS[i % STEPS.len()] * 10_u64.pow((i / STEPS.len()) as u32);
        i += 1;
    }
    bounds
}

/// The latencies of a run so far, counted in buckets.
#[derive(Clone, Debug)]
pub(super) struct BucketCounts {
    /// The counts of each bucket alone; the last is above all bounds.
    counts: [u64; BOUNDS + 1],
    sum_us: f64,
}

impl Default for BucketCounts {
    fn default() -> Self {
        Self { counts: [0; BOUNDS + 1], sum_us: 0.0 }
    }
}

impl BucketCounts {
    /// Adds the latencies of an interval. One within a thousandth of a bound may fall on either
    /// side: that is the precision of the histogram.
    pub(super) fn add(&mut self, interval: &Histogram) {
        for (us, n) in interval.iter() {
            let bucket = BOUNDS_US.partition_point(|bound| *bound < us);
            self.counts[bucket] += u64::from(n);
        }
        self.sum_us += interval.mean() * interval.count() as f64;
    }

    /// Returns the number of latencies.
    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of the latencies, in seconds.
    pub(super) fn sum_s(&self) -> f64 {
        self.sum_us / 1e6
    }

    /// Returns the upper bound of each bucket, in seconds, and its own count.
    pub(super) fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS_US.iter().map(|us| *us as f64 / 1e6).chain([f64::INFINITY]);
        bounds.zip(self.counts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_grow_from_10_us_to_100_s() {
        assert!(BOUNDS_US.windows(2).all(|two| two[0] < two[1] && two[1] * 2 <= two[0] * 3));
        assert_eq!(BOUNDS_US[..8], [10, 15, 20, 30, 40, 50, 70, 100]);
        assert_eq!(BOUNDS_US.last(), Some(&100_000_000));
    }

    #[test]
    fn a_latency_counts_in_the_first_bucket_that_is_not_below_it() {
        let mut interval = Histogram::new();
        [1, 10, 11, 1_000, 119_000_000].into_iter().for_each(|us| interval.record_us(us));
        let mut counts = BucketCounts::default();
        counts.add(&interval);
        counts.add(&interval);
        let of = |bound| counts.buckets().iter().find(|(le, _)| *le == bound).unwrap().1;
        assert_eq!((of(1e-5), of(1.5e-5), of(1e-3), of(f64::INFINITY)), (4, 2, 2, 2));
        assert_eq!(counts.count(), 10);
        assert!((counts.sum_s() - 238.0).abs() < 0.3, "{}", counts.sum_s());
    }
}
