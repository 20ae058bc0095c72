//! Latencies by the kernel's clock.

use serde::{Deserialize, Serialize};

use crate::{Histogram, LoadInterval};

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
    /// The number of messages, joins, pushes, requests and probes whose exact arrival the kernel
    /// did not report. They are recorded here by an upper bound: the arrival of later bytes that
    /// were read with them, or else the generator's own clock.
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

/// Returns the latencies of a kind by the better clock: until the answers arrived if all of them
/// are there, else until the generator read them.
pub(crate) fn better_clock<'a>(seen: &'a Histogram, arrived: &'a Histogram) -> &'a Histogram {
    if arrived.count() == seen.count() { arrived } else { seen }
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

    /// Adds the latencies of an interval by the better clock of each kind.
    pub(crate) fn merge_best(&mut self, load: &LoadInterval) {
        let Latencies { connect, tcp, message, join, push, http, broadcast } = load.latencies();
        let best = [connect, tcp, message, join, push, http, broadcast];
        for (histogram, add) in self.all_mut().into_iter().zip(best) {
            histogram.merge(add);
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
        let Self { connect: _, tcp: _, message, join, push, http, broadcast, by_own_clock: _ } =
            self;
        [message, join, push, http, broadcast].into_iter().map(Histogram::count).sum()
    }

    /// Returns the histogram of each kind, in the order of `LoadInterval::seen`.
    pub(crate) fn all(&self) -> [&Histogram; 7] {
        let Self { connect, tcp, message, join, push, http, broadcast, by_own_clock: _ } = self;
        [connect, tcp, message, join, push, http, broadcast]
    }

    pub(crate) fn all_mut(&mut self) -> [&mut Histogram; 7] {
        let Self { connect, tcp, message, join, push, http, broadcast, by_own_clock: _ } = self;
        [connect, tcp, message, join, push, http, broadcast]
    }
}
