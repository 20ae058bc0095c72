//! What is known of a latency without its values: their number, mean and extremes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Merge;

/// Statistics of the values of a latency in an interval, where the values themselves are not known:
/// the run was imported from a log that has no more. All times are in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencyStats {
    /// The number of values.
    pub count: u64,
    /// Their mean.
    pub mean_us: f64,
    /// Their standard deviation, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviation_us: Option<f64>,
    /// The smallest value. Absent if it is known only that none is smaller than those before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_us: Option<f64>,
    /// The largest value. Absent if it is known only that none is larger than those before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_us: Option<f64>,
    /// The percentiles that are known by name, `p95`. They are those of this interval alone.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub percentiles_us: BTreeMap<String, f64>,
}

impl LatencyStats {
    /// Returns the known statistics in whole microseconds: p50, p90, p95, p99,
    /// p99.9 and the largest value.
    pub fn shown(&self) -> [Option<u64>; 6] {
        let shown = ["p50", "p90", "p95", "p99", "p999", "max"];
        shown.map(|statistic| self.named(statistic).map(|us| us.round() as u64))
    }

    /// Returns a statistic by its name in thresholds, `mean`, `max` or `p95`, if it is known.
    pub fn named(&self, statistic: &str) -> Option<f64> {
        match statistic {
            "mean" => Some(self.mean_us),
            "max" => self.max_us,
            percentile => self.percentiles_us.get(percentile).copied(),
        }
        .filter(|us| us.is_finite())
    }

    /// Reports whether a percentile is known.
    pub fn has_percentiles(&self) -> bool {
        !self.percentiles_us.is_empty()
    }
}

/// Joins the values of two intervals. Percentiles of both together are not known.
impl Merge for LatencyStats {
    fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other.clone();
            return;
        }
        let (n, more) = (self.count as f64, other.count as f64);
        let mean_us = (n * self.mean_us + more * other.mean_us) / (n + more);
        let squares = |stats: &Self, n: f64| {
            let apart = stats.mean_us - mean_us;
            stats.deviation_us.map(|deviation| n * (deviation * deviation + apart * apart))
        };
        let squares = squares(self, n).zip(squares(other, more));
        self.deviation_us = squares.map(|(one, two)| ((one + two) / (n + more)).sqrt());
        self.mean_us = mean_us;
        self.count = self.count.saturating_add(other.count);
        self.min_us = known(self.min_us, other.min_us, f64::min);
        self.max_us = known(self.max_us, other.max_us, f64::max);
        self.percentiles_us.clear();
    }
}

fn known(one: Option<f64>, two: Option<f64>, of: fn(f64, f64) -> f64) -> Option<f64> {
    match (one, two) {
        (Some(one), Some(two)) => Some(of(one, two)),
        (one, two) => one.or(two),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> LatencyStats {
        let n = values.len() as f64;
        let mean_us = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|us| (us - mean_us).powi(2)).sum::<f64>() / n;
        LatencyStats {
            count: values.len() as u64,
            mean_us,
            deviation_us: Some(variance.sqrt()),
            min_us: values.iter().copied().reduce(f64::min),
            max_us: values.iter().copied().reduce(f64::max),
            percentiles_us: [("p50".to_owned(), values[values.len() / 2])].into(),
        }
    }

    #[test]
    fn merged_intervals_have_the_statistics_of_all_values() {
        let mut merged = LatencyStats::default();
        merged.merge(&of(&[3.0, 5.0, 100.0]));
        assert_eq!(merged.named("p50"), Some(5.0));
        merged.merge(&of(&[1.0, 7.0]));
        let all = of(&[3.0, 5.0, 100.0, 1.0, 7.0]);
        assert_eq!((merged.count, merged.min_us, merged.max_us), (5, Some(1.0), Some(100.0)));
        assert!((merged.mean_us - all.mean_us).abs() < 1e-9, "{merged:?}");
        let deviations = merged.deviation_us.zip(all.deviation_us).unwrap();
        assert!((deviations.0 - deviations.1).abs() < 1e-9, "{merged:?}");
        assert_eq!(merged.named("p50"), None, "the median of both is not known");
    }

    #[test]
    fn an_extreme_that_is_absent_is_no_more_extreme_than_those_before() {
        let mut merged = of(&[3.0, 9.0]);
        merged.merge(&LatencyStats { min_us: None, max_us: None, ..of(&[5.0]) });
        assert_eq!((merged.min_us, merged.max_us), (Some(3.0), Some(9.0)));
    }

    #[test]
    fn a_deviation_that_is_not_known_of_both_is_not_known() {
        let mut merged = of(&[3.0, 9.0]);
        merged.merge(&LatencyStats { deviation_us: None, ..of(&[5.0]) });
        assert_eq!((merged.deviation_us, merged.count), (None, 3));
    }
}
