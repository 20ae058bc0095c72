//! The statistics of a latency: percentiles, the largest value and the mean.

use throng_measure::unanswered::judged;
use throng_measure::{LatencySummary, LatencyTotal, Percentile};

/// A statistic of a latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Statistic {
    /// A percentile.
    Percentile(Percentile),
    /// The largest value.
    Max,
    /// The mean.
    Mean,
}

impl Statistic {
    /// Returns the statistic `name`: `p95`, `max` or `mean`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "max" => Some(Self::Max),
            "mean" => Some(Self::Mean),
            _ => Percentile::named(name).map(Self::Percentile),
        }
    }

    /// Returns its name in the summary and in thresholds.
    pub fn name(self) -> String {
        match self {
            Self::Percentile(percentile) => percentile.name(),
            Self::Max => "max".to_owned(),
            Self::Mean => "mean".to_owned(),
        }
    }

    /// Returns the value that thresholds compare, in microseconds.
    pub(crate) fn judged(self, total: &LatencyTotal) -> u64 {
        match self {
            Self::Percentile(percentile) => total.judged_us(percentile),
            Self::Max => judged(&total.answered, &total.unanswered).max,
            Self::Mean => judged(&total.answered, &total.unanswered).mean,
        }
    }

    /// Returns its value of the answered latencies and the value that thresholds compare. `None`
    /// if the summary does not have this percentile and there are no histograms.
    pub(super) fn values(
        self,
        [answered, judged]: [&LatencySummary; 2],
        total: Option<&LatencyTotal>,
    ) -> Option<(u64, u64)> {
        let percentile = match self {
            Self::Max => return Some((answered.max, judged.max)),
            Self::Mean => return Some((answered.mean, judged.mean)),
            Self::Percentile(percentile) => percentile,
        };
        let known = percentile.of_summary(answered).zip(percentile.of_summary(judged));
        known.or_else(|| {
            total.map(|total| (total.answered_us(percentile), total.judged_us(percentile)))
        })
    }
}

/// The statistics that a list of names has. Any other percentile is one, too.
pub(super) const USUAL: [&str; 7] = ["p50", "p90", "p95", "p99", "p999", "max", "mean"];
