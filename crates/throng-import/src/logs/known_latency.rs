//! A latency whose values a log has, and how the run file keeps it.

use throng_measure::histogram::HIGHEST_US;
use throng_measure::{Histogram, LatencyStats, Merge};

/// The values of a latency in an interval. A histogram ends at two minutes; where a run has a
/// longer value, statistics are kept in its place.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownLatency {
    pub(crate) histogram: Histogram,
    pub(crate) stats: LatencyStats,
}

impl KnownLatency {
    /// Adds a value in milliseconds.
    pub(crate) fn add_ms(&mut self, ms: f64, is_long: bool) {
        let us = ms * 1_000.0;
        if is_long {
            self.stats.merge(&LatencyStats {
                count: 1,
                mean_us: us,
                deviation_us: Some(0.0),
                min_us: Some(us),
                max_us: Some(us),
                ..LatencyStats::default()
            });
        } else {
            self.histogram.record_us(us.round() as u64);
        }
    }
}

/// Reports whether a value in milliseconds is longer than a histogram can hold.
pub(crate) fn is_longer_than_histogram(ms: f64) -> bool {
    ms * 1_000.0 > HIGHEST_US as f64
}
