//! Latencies by the kernel's clock.

use serde::{Deserialize, Serialize};

use crate::Histogram;

/// Latencies of an interval from the intended moment until the answer reached the generator's
/// machine, by its kernel's clock. The histograms of the same names in
/// [`LoadInterval`](crate::LoadInterval) extend until the generator read the answer, which is later
/// if it reads late.
///
/// An answer without an arrival time from the kernel is recorded here by the generator's own clock.
/// A busy generator requests the times of a sample of the arrivals; each counts for the arrivals
/// that it represents, so the counts are equal to within a few.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ArrivalLatencies {
    /// Latencies of connects.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub connect: Histogram,
    /// Latencies of connects until TCP was established; WebSockets only.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub tcp: Histogram,
    /// Latencies of messages.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub message: Histogram,
    /// Latencies of joins.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub join: Histogram,
    /// Latencies of pushes.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub push: Histogram,
    /// Latencies of HTTP requests.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub http: Histogram,
    /// Latencies of probes.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub broadcast: Histogram,
    /// The number of messages, joins, pushes and probes that are recorded here by the generator's
    /// own clock, because the kernel did not report their arrival.
    #[serde(skip_serializing_if = "is_zero")]
    pub by_own_clock: u64,
}

/// The latencies of an interval by the best available clock, see [`LoadInterval::latencies`].
///
/// [`LoadInterval::latencies`]: crate::LoadInterval::latencies
#[derive(Clone, Copy, Debug)]
pub struct Latencies<'a> {
    /// Latencies of connects.
    pub connect: &'a Histogram,
    /// Latencies of connects until TCP was established; WebSockets only.
    pub tcp: &'a Histogram,
    /// Latencies of messages.
    pub message: &'a Histogram,
    /// Latencies of joins.
    pub join: &'a Histogram,
    /// Latencies of pushes.
    pub push: &'a Histogram,
    /// Latencies of HTTP requests.
    pub http: &'a Histogram,
    /// Latencies of probes.
    pub broadcast: &'a Histogram,
}

/// Returns the latencies of a kind by the better clock: until the answers arrived if the kernel
/// timed any, else until the generator read them.
pub(crate) fn better_clock<'a>(seen: &'a Histogram, arrived: &'a Histogram) -> &'a Histogram {
    if arrived.is_empty() { seen } else { arrived }
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl ArrivalLatencies {
    /// Reports whether no latency was recorded.
    pub fn is_empty(&self) -> bool {
        self.all().iter().all(|histogram| histogram.is_empty())
    }

    /// Adds every value that `other` recorded.
    pub fn merge(&mut self, other: &Self) {
        for (histogram, add) in self.all_mut().into_iter().zip(other.all()) {
            histogram.merge(add);
        }
        self.by_own_clock += other.by_own_clock;
    }

    /// Returns the number of messages, joins, pushes, requests and probes timed by the kernel's
    /// clock, and the number of all.
    pub fn by_kernel(&self) -> (u64, u64) {
        let Self { connect: _, tcp: _, message, join, push, http, broadcast, by_own_clock } = self;
        let all =
            [message, join, push, http, broadcast].into_iter().map(Histogram::count).sum::<u64>();
        (all.saturating_sub(*by_own_clock), all)
    }

    fn all(&self) -> [&Histogram; 7] {
        let Self { connect, tcp, message, join, push, http, broadcast, by_own_clock: _ } = self;
        [connect, tcp, message, join, push, http, broadcast]
    }

    fn all_mut(&mut self) -> [&mut Histogram; 7] {
        let Self { connect, tcp, message, join, push, http, broadcast, by_own_clock: _ } = self;
        [connect, tcp, message, join, push, http, broadcast]
    }
}
