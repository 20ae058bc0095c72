//! The schedule for counting the sockets in a state. Pure: time is an argument.

use std::time::Duration;

use throng_base::time::Instant;

/// Limits how often sockets in a state are counted, half-open or established ones, because the cost
/// grows with every connection of the machine (41 ms at 400,000 sockets, 340 ms at two million).
///
/// After a count that took `cost`, the next one is due 125 times that later. Counting then takes at
/// most 0.8 % of the time, and the rest of a sample still fits into 1 % of a core. If several
/// states are counted, each has a meter, and they share these 0.8 % evenly. Without a sign of
/// half-open connections, a quarter of its share is enough for a meter; the full share is for when
/// `ListenDrops` has grown.
///
/// The last cost says little about the next one if the machine has become busy: a walk over 1.4
/// million sockets took 16 s while all CPUs were busy. Above 500,000 sockets there is
/// therefore no count.
#[derive(Clone, Debug)]
pub struct SocketCountMeter {
    /// The meters that share the time.
    meters: u32,
    last: Option<LastCount>,
    drops_at_last: Option<u64>,
    drops_grew: bool,
}

/// The last count.
#[derive(Clone, Copy, Debug)]
struct LastCount {
    ended: Instant,
    cost: Duration,
}

impl SocketCountMeter {
    /// Creates one of `meters` meters that share the time.
    pub fn new(meters: u32) -> Self {
        Self { meters, last: None, drops_at_last: None, drops_grew: false }
    }

    /// Reports whether a count is due, given `TcpExt.ListenDrops` and the number of TCP sockets if
    /// they are known. It remembers drops while it is too early to count.
    pub fn is_due(
        &mut self,
        now: Instant,
        listen_drops: Option<u64>,
        sockets: Option<u64>,
    ) -> bool {
        if let (Some(before), Some(after)) = (self.drops_at_last, listen_drops) {
            self.drops_grew |= after > before;
        }
        self.drops_at_last = listen_drops.or(self.drops_at_last);
        if sockets.is_some_and(|sockets| sockets > SOCKETS_MAX) {
            return false;
        }
        let Some(last) = self.last else { return true };
        let factor = if self.drops_grew { RESTS_ALARMED } else { RESTS_QUIET };
        now.since(last.ended) >= last.cost.saturating_mul(factor.saturating_mul(self.meters))
    }

    /// Records the end and the cost of a count.
    pub fn record(&mut self, ended: Instant, cost: Duration) {
        self.last = Some(LastCount { ended, cost });
        self.drops_grew = false;
    }
}

/// The TCP sockets of the namespace above which there is no count.
const SOCKETS_MAX: u64 = 500_000;

/// The pause after a count of the only meter, in multiples of its cost: counting takes 0.8 % of the
/// time.
const RESTS_ALARMED: u32 = 125;

/// The pause without new drops: counting takes 0.2 % of the time.
const RESTS_QUIET: u32 = 500;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn at_ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn the_first_count_is_due_at_once() {
        assert!(SocketCountMeter::new(1).is_due(at_ms(5), None, None));
    }

    #[test]
    fn an_expensive_count_is_followed_by_a_long_rest() {
        let mut meter = SocketCountMeter::new(1);
        assert!(meter.is_due(at_ms(0), Some(7), None));
        meter.record(at_ms(340), Duration::from_millis(340));
        assert!(!meter.is_due(at_ms(170_000), Some(7), None));
        assert!(meter.is_due(at_ms(170_340), Some(7), None));
    }

    #[test]
    fn drops_shorten_the_rest_even_when_they_came_too_early() {
        let mut meter = SocketCountMeter::new(1);
        assert!(meter.is_due(at_ms(0), Some(7), None));
        meter.record(at_ms(10), Duration::from_millis(10));
        assert!(!meter.is_due(at_ms(500), Some(9), None), "its share of the time is used up");
        assert!(meter.is_due(at_ms(1_260), Some(9), None), "the drop is remembered");
        meter.record(at_ms(1_270), Duration::from_millis(10));
        assert!(!meter.is_due(at_ms(2_600), Some(9), None), "the old drop has been counted");
        assert!(!meter.is_due(at_ms(2_600), None, None), "an unknown count is no new drop");
        assert!(meter.is_due(at_ms(2_600), Some(10), None));
    }

    #[test]
    fn very_many_sockets_are_not_counted_and_drops_are_remembered() {
        let mut meter = SocketCountMeter::new(1);
        assert!(!meter.is_due(at_ms(0), Some(7), Some(SOCKETS_MAX + 1)));
        assert!(meter.is_due(at_ms(0), Some(7), Some(SOCKETS_MAX)));
        meter.record(at_ms(10), Duration::from_millis(10));
        assert!(!meter.is_due(at_ms(9_000), Some(8), Some(2_000_000)));
        assert!(meter.is_due(at_ms(1_270), Some(8), Some(400_000)), "the drop is not forgotten");
    }

    #[test]
    fn two_meters_have_half_of_the_time_each() {
        let mut meter = SocketCountMeter::new(2);
        meter.record(at_ms(10), Duration::from_millis(10));
        assert!(!meter.is_due(at_ms(10_009), None, None));
        assert!(meter.is_due(at_ms(10_010), Some(1), None));
        meter.record(at_ms(20), Duration::from_millis(10));
        assert!(!meter.is_due(at_ms(2_519), Some(2), None));
        assert!(meter.is_due(at_ms(2_520), Some(2), None));
    }

    proptest! {
        /// Whatever the costs and the drops, all meters together take less than 1 % of the time:
        /// one of them takes less than its part up to its next count.
        #[test]
        fn counting_takes_less_than_one_per_cent(
            seconds in proptest::collection::vec((0_u64..600_000_000, any::<bool>()), 1..400),
            meters in 1_u32..4,
        ) {
            let mut meter = SocketCountMeter::new(meters);
            let (mut drops, mut spent, mut now) = (0, Duration::ZERO, Instant::ZERO);
            for (cost, dropped) in seconds {
                drops += u64::from(dropped);
                if meter.is_due(now, Some(drops), None) {
                    let all = spent * meters;
                    prop_assert!(all * 100 <= now.since(Instant::ZERO), "{all:?} at {now:?}");
                    let cost = Duration::from_nanos(cost);
                    spent += cost;
                    now += cost;
                    meter.record(now, cost);
                }
                now += Duration::from_secs(1);
            }
        }
    }
}
