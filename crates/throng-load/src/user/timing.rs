//! Arrival of an answer by two clocks: when this core read it, and when it reached the kernel.

use std::time::Duration;

use throng_base::Instant;
use throng_engine::Arrival;
use throng_measure::Histogram;

/// Arrival of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerTiming {
    /// Moment at which this core read it.
    pub(crate) seen_at: Instant,
    /// Arrival as reported by the kernel.
    pub(crate) arrival: Arrival,
}

impl AnswerTiming {
    /// Returns the timing of what this core itself did at `at`: both clocks say the same.
    pub(crate) const fn own(at: Instant) -> Self {
        Self { seen_at: at, arrival: Arrival::Unknown }
    }

    /// Returns the best known moment of arrival: the kernel's, else that at which this core read
    /// it, which is an upper bound. It is never later than `seen_at`.
    pub(crate) fn arrived_at(self) -> Instant {
        self.arrival.moment().map_or(self.seen_at, |at| at.min(self.seen_at))
    }

    /// Reports whether it arrived before `at`, whatever the difference between the two clocks.
    pub(crate) fn is_before(self, at: Instant) -> bool {
        self.arrived_at() + CLOCK_ERROR_MAX < at
    }

    /// Records the latency from `from`, once in each histogram: until this core read the answer in
    /// `seen`, until it arrived in `arrived`.
    pub(crate) fn record(self, from: Instant, seen: &mut Histogram, arrived: &mut Histogram) {
        seen.record_us(self.seen_at.micros_since(from));
        arrived.record_us(self.arrived_at().micros_since(from));
    }

    /// Returns the number of answers for which the kernel did not report the exact arrival.
    pub(crate) fn by_own_clock(self) -> u64 {
        u64::from(!matches!(self.arrival, Arrival::At(_)))
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
    fn check(arrival: Arrival, arrived_ms: u64) {
        let mut histograms = [Histogram::new(), Histogram::new()];
        let [seen, arrived] = &mut histograms;
        AnswerTiming { seen_at: at(107), arrival }.record(at(100), seen, arrived);
        assert_eq!((seen.count(), seen.max() / 1_000), (1, 7));
        assert_eq!((arrived.count(), arrived.max() / 1_000), (1, arrived_ms));
    }

    #[test]
    fn each_answer_counts_once_by_each_clock() {
        check(Arrival::At(at(101)), 1);
        check(Arrival::By(at(102)), 2);
        check(Arrival::Unknown, 7);
    }

    #[test]
    fn no_answer_arrives_after_it_was_read() {
        check(Arrival::At(at(108)), 7);
    }
}
