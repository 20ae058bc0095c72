//! The histograms of a latency over a whole run.

use crate::{Histogram, Percentile};

/// A latency over a whole run: any percentile can be computed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatencyTotal {
    /// The latencies of what was answered.
    pub answered: Histogram,
    /// The waits that no answer ended.
    pub unanswered: Histogram,
}

impl LatencyTotal {
    /// Returns a percentile of the answered latencies, in microseconds.
    pub fn answered_us(&self, percentile: Percentile) -> u64 {
        percentile.of(&self.answered)
    }

    /// Returns a percentile as [thresholds compare it](crate::unanswered::judged), in microseconds.
    pub fn judged_us(&self, percentile: Percentile) -> u64 {
        let alone = percentile.of(&self.answered);
        if self.unanswered.is_empty() {
            return alone;
        }
        let mut all = self.answered.clone();
        all.merge(&self.unanswered);
        percentile.of(&all).max(alone)
    }
}
