//! When an answer came, by two clocks: when this core saw it, and when it reached the kernel.

use std::time::Duration;

use throng_base::Instant;
use throng_driver::Driver;
use throng_engine::{Arrival, Conn};
use throng_report::Histogram;

use super::{Generator, Mail};

/// When an answer came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// When this core saw it.
    pub(super) seen_at: Instant,
    /// What the kernel says.
    pub(super) arrival: Arrival,
}

impl Timing {
    /// Returns the timing of the present event.
    pub(super) fn of<D: Driver<Mail = Mail>>(conn: &mut Conn<'_, D, Generator>) -> Self {
        let arrival = match conn.state().flags.stamps() {
            Stamps::None => Arrival::Sampled,
            Stamps::Own => conn.arrival(),
            Stamps::OfMany => conn.arrival().times(CONNECTIONS_WEIGHT),
        };
        Self { seen_at: conn.now(), arrival }
    }

    /// Returns when the answer came, as well as it is known.
    pub(super) fn came_at(self) -> Instant {
        match self.arrival {
            Arrival::Stamped { at, .. } => at,
            Arrival::Sampled | Arrival::Unknown { .. } => self.seen_at,
        }
    }

    /// Records the latency from `from` by each of the clocks: `seen` by this core's, `arrived` by the
    /// kernel's. Where the kernel does not say, both are by this core's clock.
    pub(super) fn record(self, from: Instant, seen: &mut Histogram, arrived: &mut Histogram) {
        let seen_us = self.seen_at.micros_since(from);
        seen.record_us(seen_us);
        match self.arrival {
            Arrival::Stamped { at, weight } => arrived.record_n(at.micros_since(from), weight),
            Arrival::Unknown { weight } => arrived.record_n(seen_us, weight),
            Arrival::Sampled => {}
        }
    }

    /// Returns for how many answers only this core's clock says when they came.
    pub(super) fn by_own_clock(self) -> u64 {
        match self.arrival {
            Arrival::Unknown { weight } => weight.into(),
            Arrival::Stamped { .. } | Arrival::Sampled => 0,
        }
    }
}

/// Whether the kernel is asked when what comes on a connection arrived. Each packet to such a socket costs
/// a look at the clock, so of many connections only some are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stamps {
    /// It is not asked.
    #[default]
    None,
    /// It is asked, and the connection stands for itself.
    Own,
    /// It is asked, and the connection stands for [`CONNECTIONS_WEIGHT`].
    OfMany,
}

/// Decides which connections of a core are asked for arrivals.
#[derive(Debug, Default)]
pub(super) struct StampChooser {
    connects: u32,
}

impl StampChooser {
    /// Begins an interval of the report.
    pub(super) fn begin_interval(&mut self) {
        self.connects = 0;
    }

    /// Decides for a connect of user `id`, while `connected` others are.
    pub(super) fn of_connect(&mut self, id: u64, connected: u64) -> Stamps {
        if self.connects < CONNECTS_STAMPED && connected < CONNECTED_STAMPED {
            self.connects += 1;
            return Stamps::Own;
        }
        // By a hash, as classes repeat with the number of a user.
        let hash = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        if hash % u64::from(CONNECTIONS_WEIGHT) == 0 { Stamps::OfMany } else { Stamps::None }
    }
}

/// Connects of an interval on a core that are all asked, …
const CONNECTS_STAMPED: u32 = 16;
/// … until so many are connected.
const CONNECTED_STAMPED: u64 = 256;
/// Of the others, one in so many is.
const CONNECTIONS_WEIGHT: u32 = 16;

/// How far two clocks may be apart. What came that much before a question was sent does not answer it.
pub(super) const CLOCK_ERROR_MAX: Duration = Duration::from_millis(1);

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
        Timing { seen_at: at(107), arrival }.record(at(100), seen, by_kernel);
        assert_eq!((seen.count(), seen.max() / 1_000), (1, 7));
        assert_eq!(by_kernel.count(), arrived.len() as u64);
        assert_eq!(by_kernel.max() / 1_000, arrived.last().copied().unwrap_or(0));
    }

    #[test]
    fn of_many_connections_those_that_are_asked_stand_for_all() {
        let mut chooser = StampChooser::default();
        let asked = |connected, chooser: &mut StampChooser| {
            let mut stands_for = 0;
            for id in 0..100_000 {
                stands_for += match chooser.of_connect(id * 2, connected) {
                    Stamps::None => 0,
                    Stamps::Own => 1,
                    Stamps::OfMany => CONNECTIONS_WEIGHT,
                };
            }
            stands_for
        };
        let few: Vec<_> = (0..16).map(|id| chooser.of_connect(id, id)).collect();
        assert_eq!(few, [Stamps::Own; 16]);
        assert!(asked(100, &mut chooser).abs_diff(100_000) < 2_000);
        chooser.begin_interval();
        assert_eq!(chooser.of_connect(1, 255), Stamps::Own);
        assert!(asked(100_000, &mut chooser).abs_diff(100_000) < 2_000);
    }

    #[test]
    fn each_clock_has_its_histogram() {
        check(Arrival::Stamped { at: at(101), weight: 1 }, &[1]);
        check(Arrival::Stamped { at: at(101), weight: 3 }, &[1, 1, 1]);
        check(Arrival::Unknown { weight: 2 }, &[7, 7]);
        check(Arrival::Sampled, &[]);
    }
}
