//! Arrival of an answer by two clocks: when this core read it, and when it reached the kernel.

use std::time::Duration;

use throng_base::Instant;
use throng_engine::Arrival;
use throng_report::Histogram;

/// Arrival of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerTiming {
    /// Moment at which this core read it.
    pub(crate) seen_at: Instant,
    /// Arrival as reported by the kernel.
    pub(crate) arrival: Arrival,
}

impl AnswerTiming {
    /// Returns the best known moment of arrival.
    pub(crate) fn arrived_at(self) -> Instant {
        match self.arrival {
            Arrival::Stamped { at, .. } => at,
            Arrival::NotSampled | Arrival::Unknown { .. } => self.seen_at,
        }
    }

    /// Reports whether it arrived before `at`, whatever the difference between the two clocks.
    pub(crate) fn is_before(self, at: Instant) -> bool {
        self.arrived_at() + CLOCK_ERROR_MAX < at
    }

    /// Records the latency from `from`: in `seen` by this core's clock, in `arrived` by the
    /// kernel's. If the kernel reports no time, both use this core's clock.
    pub(crate) fn record(self, from: Instant, seen: &mut Histogram, arrived: &mut Histogram) {
        let seen_us = self.seen_at.micros_since(from);
        seen.record_us(seen_us);
        match self.arrival {
            Arrival::Stamped { at, weight } => arrived.record_n(at.micros_since(from), weight),
            Arrival::Unknown { weight } => arrived.record_n(seen_us, weight),
            Arrival::NotSampled => {}
        }
    }

    /// Returns the number of answers whose arrival only this core's clock reports.
    pub(crate) fn by_own_clock(self) -> u64 {
        match self.arrival {
            Arrival::Unknown { weight } => weight.into(),
            Arrival::Stamped { .. } | Arrival::NotSampled => 0,
        }
    }
}

/// Maximum difference between the two clocks. An arrival that lies this much before a request
/// cannot be its answer.
pub(crate) const CLOCK_ERROR_MAX: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[track_caller]
    fn check(arrival: Arrival, arrived: &[u64]) {
        let mut histograms = [Histogram::new(), Histogram::new()];
        let [seen, by_kernel] = &mut histograms;
        AnswerTiming { seen_at: at(107), arrival }.record(at(100), seen, by_kernel);
        assert_eq!((seen.count(), seen.max() / 1_000), (1, 7));
        assert_eq!(by_kernel.count(), arrived.len() as u64);
        assert_eq!(by_kernel.max() / 1_000, arrived.last().copied().unwrap_or(0));
    }

    #[test]
    fn each_clock_has_its_histogram() {
        check(Arrival::Stamped { at: at(101), weight: 1 }, &[1]);
        check(Arrival::Stamped { at: at(101), weight: 3 }, &[1, 1, 1]);
        check(Arrival::Unknown { weight: 2 }, &[7, 7]);
        check(Arrival::NotSampled, &[]);
    }
}
