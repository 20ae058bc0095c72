//! A latency by two clocks: until the answer arrived, and until the generator read it.

use throng_measure::unanswered::judged;
use throng_measure::{Histogram, LatencySummary, LatencyTotal};

/// The latencies of a kind, each answer once in both: until the generator read the answer, and
/// until the answer arrived, as far as the kernel timed it.
pub(super) struct Clocks<'a> {
    pub(super) seen: &'a Histogram,
    pub(super) arrived: &'a Histogram,
}

impl Clocks<'_> {
    pub(super) fn latency_us(&self) -> LatencySummary {
        self.arrived.into()
    }

    pub(super) fn judged_us(&self, unanswered: &Histogram) -> LatencySummary {
        judged(self.arrived, unanswered)
    }

    /// Returns the histograms, for other percentiles.
    pub(super) fn total(&self, unanswered: &Histogram) -> LatencyTotal {
        LatencyTotal { answered: self.arrived.clone(), unanswered: unanswered.clone() }
    }
}
