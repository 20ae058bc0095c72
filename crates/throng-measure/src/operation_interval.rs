//! The operations of one class of users: what a line of the run file has of each.

use serde::{Deserialize, Serialize, Serializer};

use crate::better_clock::better_clock;
use crate::operation::OperationCounts;
use crate::{Histogram, PerOperation};

/// What users did of one operation. Counters are totals since the start, histograms cover the
/// interval alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperationInterval {
    /// How often it began, and how it ended.
    #[serde(flatten)]
    pub counts: OperationCounts,
    /// Time from the intended moment until the generator read what ended it.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub latency: Histogram,
    /// The same latencies until the answer arrived, by the kernel's clock.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub arrival: Histogram,
    /// Waits that no answer ended, until they timed out or the user was stopped.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub unanswered: Histogram,
}

impl OperationInterval {
    /// Returns the latencies by the best available clock.
    pub fn best(&self) -> &Histogram {
        better_clock(&self.latency, &self.arrival)
    }

    /// Reports whether no user has begun it.
    pub fn is_unused(&self) -> bool {
        self.counts == OperationCounts::default()
            && self.latency.is_empty()
            && self.unanswered.is_empty()
    }
}

impl PerOperation<OperationInterval> {
    /// Adds the counters of `other`.
    pub fn add_counts(&mut self, other: &Self) {
        for (operation, sum) in self.iter_mut() {
            sum.counts = sum.counts.plus(other[operation].counts);
        }
    }

    /// Sets the counters to those of `other`.
    pub fn set_counts(&mut self, other: &Self) {
        self.iter_mut().for_each(|(operation, of)| of.counts = other[operation].counts);
    }

    /// Adds every value that `other` recorded.
    pub fn merge_measured(&mut self, other: &Self) {
        for (operation, sum) in self.iter_mut() {
            let other = &other[operation];
            sum.latency.merge(&other.latency);
            sum.arrival.merge(&other.arrival);
            sum.unanswered.merge(&other.unanswered);
        }
    }

    /// Returns the totals since the start, without the values that cover this interval alone.
    pub fn without_measured(&self) -> Self {
        let counts = |of| OperationInterval { counts: self[of].counts, ..Default::default() };
        Self::of(counts)
    }
}

/// JSON has the operations that users have begun, by their names.
impl Serialize for PerOperation<OperationInterval> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let used = self.iter().filter(|(_, of)| !of.is_unused());
        to.collect_map(used.map(|(operation, of)| (operation.name(), of)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Operation;

    #[test]
    fn the_operations_that_were_begun_come_back_from_json() {
        let mut all = PerOperation::<OperationInterval>::default();
        all[Operation::Http].counts = OperationCounts { started: 3, ok: 2, ..Default::default() };
        all[Operation::Http].latency.record_us(7);
        let json = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<PerOperation<OperationInterval>>(&json).unwrap(), all);
        assert!(json.starts_with(r#"{"http":{"started":3,"ok":2,"#), "{json}");
        assert!(!json.contains("connect"), "{json}");
    }

    #[test]
    fn counters_and_values_are_added_apart() {
        let mut one = PerOperation::<OperationInterval>::default();
        one[Operation::Join].counts.failed = 2;
        one[Operation::Join].unanswered.record_us(5);
        let mut sum = one.without_measured();
        assert!(sum[Operation::Join].unanswered.is_empty());
        sum.add_counts(&one);
        sum.merge_measured(&one);
        let OperationInterval { counts, unanswered, .. } = &sum[Operation::Join];
        assert_eq!((counts.failed, unanswered.count()), (4, 1));
    }
}
