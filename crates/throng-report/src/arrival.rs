//! Latencies by the kernel's clock.

use serde::{Deserialize, Serialize};

use crate::Histogram;

/// Latencies of an interval from the intended moment until the answer reached the generator's machine, by
/// its kernel's clock. The histograms of the same names in [`LoadInterval`](crate::LoadInterval) go on
/// until the generator saw the answer, which is later where it reads late.
///
/// An answer whose arrival the kernel does not tell is here by the generator's own clock. A busy generator
/// asks for a sample of the arrivals; each counts for those that it stands for, so that the counts are
/// equal to within a few.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ArrivalLatencies {
    /// Of connects.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub connect: Histogram,
    /// Of connects until TCP was established; of WebSockets only.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub tcp: Histogram,
    /// Of messages.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub message: Histogram,
    /// Of joins.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub join: Histogram,
    /// Of pushes.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub push: Histogram,
    /// Of probes.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub broadcast: Histogram,
    /// How many of the messages, joins, pushes and probes are here by the generator's own clock, because
    /// the kernel did not tell when they arrived.
    #[serde(skip_serializing_if = "is_zero")]
    pub by_own_clock: u64,
}

/// The latencies of an interval by the best clock that there is, see [`LoadInterval::latencies`].
///
/// [`LoadInterval::latencies`]: crate::LoadInterval::latencies
#[derive(Clone, Copy, Debug)]
pub struct Latencies<'a> {
    /// Of connects.
    pub connect: &'a Histogram,
    /// Of connects until TCP was established; of WebSockets only.
    pub tcp: &'a Histogram,
    /// Of messages.
    pub message: &'a Histogram,
    /// Of joins.
    pub join: &'a Histogram,
    /// Of pushes.
    pub push: &'a Histogram,
    /// Of probes.
    pub broadcast: &'a Histogram,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl ArrivalLatencies {
    /// Returns whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.all().iter().all(|histogram| histogram.is_empty())
    }

    /// Adds everything that `other` recorded.
    pub fn merge(&mut self, other: &Self) {
        for (histogram, add) in self.all_mut().into_iter().zip(other.all()) {
            histogram.merge(add);
        }
        self.by_own_clock += other.by_own_clock;
    }

    /// Returns how many messages, joins, pushes and probes were timed by the kernel's clock, of how many.
    pub fn by_kernel(&self) -> (u64, u64) {
        let Self { connect: _, tcp: _, message, join, push, broadcast, by_own_clock } = self;
        let all = [message, join, push, broadcast].into_iter().map(Histogram::count).sum::<u64>();
        (all.saturating_sub(*by_own_clock), all)
    }

    fn all(&self) -> [&Histogram; 6] {
        let Self { connect, tcp, message, join, push, broadcast, by_own_clock: _ } = self;
        [connect, tcp, message, join, push, broadcast]
    }

    fn all_mut(&mut self) -> [&mut Histogram; 6] {
        let Self { connect, tcp, message, join, push, broadcast, by_own_clock: _ } = self;
        [connect, tcp, message, join, push, broadcast]
    }
}
