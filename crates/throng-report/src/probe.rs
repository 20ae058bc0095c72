//! One probe: a message to everybody, and when everybody had it.

use serde::{Deserialize, Serialize};

use crate::{Histogram, ProbeCounters};

/// What became of one probe so far. Latencies are in microseconds, from the moment at which it was due.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbeReport {
    /// Which, from 1.
    pub number: u64,
    /// When it was due, in milliseconds since the first phase of the load began.
    pub due_ms: u64,
    /// Its deliveries.
    #[serde(flatten)]
    pub counters: ProbeCounters,
    /// The first delivery.
    pub first_us: Option<u64>,
    /// Half of those who got it had it by then.
    pub p50_us: Option<u64>,
    /// 99 % of them had.
    pub p99_us: Option<u64>,
    /// The last delivery so far.
    pub last_us: Option<u64>,
}

impl ProbeReport {
    /// The report of probe `number` from what was counted and measured of it. `first_us` and `last_us` are exact, the
    /// histogram's ends are rounded.
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
