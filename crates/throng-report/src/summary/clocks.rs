//! A latency by two clocks: until the answer arrived, and until the generator read it.

use crate::arrival::better_clock;
use crate::unanswered::judged;
use crate::{Histogram, LatencySummary, LatencyTotal};

/// The latencies of a kind: until the generator read the answer, and until the answer arrived.
pub(super) struct Clocks<'a> {
    pub(super) seen: &'a Histogram,
    pub(super) arrived: &'a Histogram,
    /// The most by which the generator can have read an answer late.
    pub(super) late_us_most: u64,
}

impl<'a> Clocks<'a> {
    /// Returns the histogram of the better clock.
    fn best(&self) -> &'a Histogram {
        better_clock(self.seen, self.arrived)
    }

    pub(super) fn latency_us(&self) -> LatencySummary {
        self.complete(self.best().into(), self.seen.count())
    }

    pub(super) fn judged_us(&self, unanswered: &Histogram) -> LatencySummary {
        self.complete(judged(self.best(), unanswered), self.seen.count() + unanswered.count())
    }

    /// Returns the histograms, for other percentiles.
    pub(super) fn total(&self, unanswered: &Histogram) -> LatencyTotal {
        LatencyTotal { answered: self.best().clone(), unanswered: unanswered.clone() }
    }

    /// Adds what a sample of arrivals lacks: the full count, and the slowest.
    fn complete(&self, sampled: LatencySummary, count: u64) -> LatencySummary {
        let max = sampled.max.max(self.seen.max().saturating_sub(self.late_us_most));
        LatencySummary { count, max, ..sampled }
    }
}
