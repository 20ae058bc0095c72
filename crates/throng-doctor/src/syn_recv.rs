//! When to count half-open connections. Pure: time is an argument.

use std::time::Duration;

use throng_base::time::Instant;

/// Rations a question whose cost grows with every connection of the machine (41 ms at 400,000 sockets,
/// 340 ms at two million).
///
/// After an answer that took `cost`, the next one is due no sooner than 125 times that later, so
/// that at most 0.8 % of the time is spent asking and the rest of a sample still fits into 1 % of a
/// core. A quarter of that share is enough while nothing points to half-open connections; all of it
/// is for when `ListenDrops` has moved.
///
/// The last answer says little about the next when the machine has become busy since: a walk over 1.4 million sockets took 16 s
/// where all CPUs were wanted. So above [`SOCKETS_MAX`] nobody asks.
#[derive(Clone, Debug, Default)]
pub struct SynRecvMeter {
    asked: Option<LastCount>,
    drops_at_last: Option<u64>,
    drops_moved: bool,
}

#[derive(Clone, Copy, Debug)]
struct LastCount {
    ended: Instant,
    cost: Duration,
}

impl SynRecvMeter {
    /// Whether to ask now, given `TcpExt.ListenDrops` and the number of TCP sockets where they are known. A drop that
    /// comes while it is too early to ask is remembered.
    pub fn due(&mut self, now: Instant, listen_drops: Option<u64>, sockets: Option<u64>) -> bool {
        if let (Some(before), Some(after)) = (self.drops_at_last, listen_drops) {
            self.drops_moved |= after > before;
        }
        self.drops_at_last = listen_drops.or(self.drops_at_last);
        if sockets.is_some_and(|sockets| sockets > SOCKETS_MAX) {
            return false;
        }
        let Some(asked) = self.asked else { return true };
        let factor = if self.drops_moved { RESTS_ALARMED } else { RESTS_QUIET };
        now.since(asked.ended) >= asked.cost.saturating_mul(factor)
    }

    /// Notes that it was asked, when that ended, and how long it took.
    pub fn asked(&mut self, ended: Instant, cost: Duration) {
        self.asked = Some(LastCount { ended, cost });
        self.drops_moved = false;
    }
}

/// TCP sockets of the namespace above which the question is not asked.
const SOCKETS_MAX: u64 = 500_000;

/// Rests of one answer's cost each before the next: 0.8 % of the time.
const RESTS_ALARMED: u32 = 125;

/// The same in quiet times: 0.2 %.
const RESTS_QUIET: u32 = 500;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn at_ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn the_first_question_is_due_at_once() {
        assert!(SynRecvMeter::default().due(at_ms(5), None, None));
    }

    #[test]
    fn an_expensive_answer_is_followed_by_a_long_rest() {
        let mut meter = SynRecvMeter::default();
        assert!(meter.due(at_ms(0), Some(7), None));
        meter.asked(at_ms(340), Duration::from_millis(340));
        assert!(!meter.due(at_ms(170_000), Some(7), None));
        assert!(meter.due(at_ms(170_340), Some(7), None));
    }

    #[test]
    fn drops_shorten_the_rest_even_when_they_came_too_early() {
        let mut meter = SynRecvMeter::default();
        assert!(meter.due(at_ms(0), Some(7), None));
        meter.asked(at_ms(10), Duration::from_millis(10));
        assert!(!meter.due(at_ms(500), Some(9), None), "its share of the time is used up");
        assert!(meter.due(at_ms(1_260), Some(9), None), "the drop is remembered");
        meter.asked(at_ms(1_270), Duration::from_millis(10));
        assert!(!meter.due(at_ms(2_600), Some(9), None), "the old drop has been looked into");
        assert!(!meter.due(at_ms(2_600), None, None), "an unknown count is no new drop");
        assert!(meter.due(at_ms(2_600), Some(10), None));
    }

    #[test]
    fn of_very_many_sockets_nobody_asks_and_drops_are_remembered() {
        let mut meter = SynRecvMeter::default();
        assert!(!meter.due(at_ms(0), Some(7), Some(SOCKETS_MAX + 1)));
        assert!(meter.due(at_ms(0), Some(7), Some(SOCKETS_MAX)));
        meter.asked(at_ms(10), Duration::from_millis(10));
        assert!(!meter.due(at_ms(9_000), Some(8), Some(2_000_000)));
        assert!(meter.due(at_ms(1_270), Some(8), Some(400_000)), "the drop is not forgotten");
    }

    proptest! {
        /// Whatever the answers cost and whatever is dropped, asking takes less than 1 % of the time
        /// up to the moment when the next question is due.
        #[test]
        fn asking_takes_less_than_one_per_cent(
            seconds in proptest::collection::vec((0_u64..600_000_000, any::<bool>()), 1..400),
        ) {
            let mut meter = SynRecvMeter::default();
            let (mut drops, mut spent, mut now) = (0, Duration::ZERO, Instant::ZERO);
            for (cost, dropped) in seconds {
                drops += u64::from(dropped);
                if meter.due(now, Some(drops), None) {
                    prop_assert!(spent * 100 <= now.since(Instant::ZERO), "{spent:?} at {now:?}");
                    let cost = Duration::from_nanos(cost);
                    spent += cost;
                    now += cost;
                    meter.asked(now, cost);
                }
                now += Duration::from_secs(1);
            }
        }
    }
}
