//! Latencies by the kernel's clock.

use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

use crate::{Histogram, LoadInterval, Operation, PerOperation};

/// Latencies of an interval from the intended moment until the answer reached the generator's
/// machine, by its kernel's clock. The histograms of the same names in
/// [`LoadInterval`] extend until the generator read the answer, which is later
/// if it reads late.
///
/// Each answer is recorded once here and once there. Where the kernel did not report its exact
/// arrival, an upper bound of it is recorded here. So the counts are
/// equal, and no percentile here is larger than the one there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ArrivalLatencies {
    /// Latencies of each operation.
    #[serde(flatten)]
    pub latencies: PerOperation<Histogram>,
    /// The number of messages, joins, pushes, requests and probes whose exact arrival the kernel
    /// did not report. They are recorded here by an upper bound: the arrival of later bytes that
    /// were read with them, or else the generator's own clock.
    #[serde(skip_serializing_if = "is_zero")]
    pub by_own_clock: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Index<Operation> for ArrivalLatencies {
    type Output = Histogram;

    fn index(&self, operation: Operation) -> &Histogram {
        &self.latencies[operation]
    }
}

impl IndexMut<Operation> for ArrivalLatencies {
    fn index_mut(&mut self, operation: Operation) -> &mut Histogram {
        &mut self.latencies[operation]
    }
}

impl ArrivalLatencies {
    /// Reports whether no latency was recorded.
    pub fn is_empty(&self) -> bool {
        self.latencies.is_empty()
    }

    /// Adds every value that `other` recorded.
    pub fn merge(&mut self, other: &Self) {
        self.latencies.merge(&other.latencies);
        self.by_own_clock += other.by_own_clock;
    }

    /// Adds the latencies of an interval by the better clock of each operation.
    pub fn merge_best(&mut self, load: &LoadInterval) {
        for (operation, histogram) in self.latencies.iter_mut() {
            histogram.merge(load.latency(operation));
        }
        let by_kernel = if load.has_all_arrivals() { load.arrival.by_kernel() } else { 0 };
        self.by_own_clock += load.answers().saturating_sub(by_kernel);
    }

    /// Returns the number of messages, joins, pushes, requests and probes timed by the kernel's
    /// clock.
    pub fn by_kernel(&self) -> u64 {
        self.answers().saturating_sub(self.by_own_clock)
    }

    /// Returns the number of messages, joins, pushes, requests and probes.
    pub fn answers(&self) -> u64 {
        Operation::answered().map(|operation| self[operation].count()).sum()
    }
}
