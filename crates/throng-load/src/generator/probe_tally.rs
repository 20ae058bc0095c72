//! Counts and latencies of one probe.

use serde::{Deserialize, Serialize};
use throng_base::Instant;
use throng_measure::{Histogram, ProbeCounters};

use crate::user::AnswerTiming;

/// Counts and latencies of a probe on one core since the previous hand-over.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProbeTally {
    /// Number of the probe, from 1.
    pub number: u32,
    /// Its counters.
    pub counters: ProbeCounters,
    /// Latencies from its due moment until a user had read it.
    pub latency: Histogram,
    /// Latencies from its due moment until it reached this machine, by the kernel's clock.
    pub arrival: Histogram,
    /// The shortest and the longest latency, in microseconds.
    pub first_and_last_us: Option<(u64, u64)>,
}

impl ProbeTally {
    /// Records a delivery of the probe that was due at `due_at`.
    pub(super) fn record(&mut self, due_at: Instant, timing: AnswerTiming) {
        timing.record(due_at, &mut self.latency, &mut self.arrival);
        let us = timing.arrived_at().micros_since(due_at);
        let (first, last) = self.first_and_last_us.unwrap_or((us, us));
        self.first_and_last_us = Some((first.min(us), last.max(us)));
    }
}
