//! One probe: a message to all users, and the times of its deliveries.

use serde::{Deserialize, Serialize};

use crate::{Histogram, ProbeCounters};

/// The state of one probe so far. Latencies are in microseconds, from the moment when it was due.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbeReport {
    /// The number of the probe, from 1.
    pub number: u64,
    /// The moment when it was due, in milliseconds since the first phase of the load began.
    pub due_ms: u64,
    /// The counters of its deliveries.
    #[serde(flatten)]
    pub counters: ProbeCounters,
    /// The latency of the first delivery.
    pub first_us: Option<u64>,
    /// The latency that half of the deliveries did not exceed.
    pub p50_us: Option<u64>,
    /// The latency that 99 % of the deliveries did not exceed.
    pub p99_us: Option<u64>,
    /// The latency of the last delivery so far.
    pub last_us: Option<u64>,
}

impl ProbeReport {
    /// Returns the report of probe `number` from its counters and its histogram. `first_us` and
    /// `last_us` are exact; the histogram's bounds are rounded.
    pub fn of(
        number: u64,
        due_ms: u64,
        counters: ProbeCounters,
        latency: &Histogram,
        first_and_last_us: Option<(u64, u64)>,
    ) -> Self {
        let percentile = |percent| (!latency.is_empty()).then(|| latency.percentile(percent));
        Self {
            number,
            due_ms,
            counters,
            first_us: first_and_last_us.map(|(first, _)| first),
            p50_us: percentile(50.0),
            p99_us: percentile(99.0),
            last_us: first_and_last_us.map(|(_, last)| last),
        }
    }
}
