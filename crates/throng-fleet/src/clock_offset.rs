//! How far the clock of another machine is from this one's.
//!
//! One machine asks for the time, and the other answers. The answer was made at some moment between
//! the question and its arrival, so half of that time is the error at most. The quickest of several
//! answers says it best: it waited least in queues. This is the method of NTP (RFC 5905, section 8)
//! with the time of the answering machine taken as one moment.

use std::time::Duration;

/// Offset of another machine's clock, as far as answers show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// Microseconds by which the other clock is ahead.
    pub ahead_us: i64,
    /// Microseconds by which that may be wrong, in either direction.
    pub error_us: u64,
}

impl ClockOffset {
    /// Returns what one answer shows. All moments are in microseconds: this machine `asked`, the
    /// other one `answered`, and the answer `came`. Returns `None` if it came before the question.
    pub fn of_answer(asked_us: u64, answered_us: u64, came_us: u64) -> Option<Self> {
        let round_trip_us = came_us.checked_sub(asked_us)?;
        let middle_us = asked_us + round_trip_us / 2;
        let ahead_us = answered_us.wrapping_sub(middle_us) as i64;
        // Rounded up: the middle was rounded.
        Some(Self { ahead_us, error_us: round_trip_us.div_ceil(2) })
    }

    /// Returns the better one of two.
    #[must_use]
    pub fn better(self, other: Self) -> Self {
        if other.error_us < self.error_us { other } else { self }
    }

    /// Returns the offset after this time, in which the clocks may have drifted by 500 microseconds
    /// a second.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        let drift_us = (time.as_micros() * DRIFT_MAX_PPM).div_ceil(1_000_000) as u64;
        Self { error_us: self.error_us.saturating_add(drift_us), ..self }
    }

    /// Reports whether two offsets of one clock exclude each other, although the clocks may drift:
    /// one of the clocks stepped meanwhile.
    pub fn contradicts(self, later: Self, between: Duration) -> bool {
        let error_us = self.after(between).error_us.saturating_add(later.error_us);
        self.ahead_us.abs_diff(later.ahead_us) > error_us
    }

    /// Returns the moment on the other clock that is `own_us` on this one.
    pub fn there(self, own_us: u64) -> u64 {
        own_us.saturating_add_signed(self.ahead_us)
    }

    /// Returns the moment on this clock that is `there_us` on the other one.
    pub fn here(self, there_us: u64) -> u64 {
        there_us.saturating_add_signed(self.ahead_us.saturating_neg())
    }
}

/// Drift between two clocks, in microseconds a second: what NTP takes for the worst.
const DRIFT_MAX_PPM: u128 = 500;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_error(
            ahead_us in -1_000_000_000_i64..1_000_000_000,
            (there_us, back_us) in (0_u64..3_000_000, 0_u64..3_000_000),
        ) {
            let asked_us = 1_800_000_000_000_000;
            let answered_us = (asked_us + there_us).saturating_add_signed(ahead_us);
            let came_us = asked_us + there_us + back_us;
            let offset = ClockOffset::of_answer(asked_us, answered_us, came_us).unwrap();
            prop_assert!(offset.ahead_us.abs_diff(ahead_us) <= offset.error_us);
            prop_assert_eq!(offset.here(offset.there(asked_us)), asked_us);
        }
    }

    #[test]
    fn the_quickest_answer_counts() {
        let slow = ClockOffset::of_answer(100, 700, 1_100).unwrap();
        let quick = ClockOffset::of_answer(2_000, 2_130, 2_020).unwrap();
        assert_eq!(quick, ClockOffset { ahead_us: 120, error_us: 10 });
        assert_eq!((slow.better(quick), quick.better(slow)), (quick, quick));
        assert_eq!(ClockOffset::of_answer(200, 150, 100), None);
        // A clock that no machine has is one that is far ahead or far behind.
        for answered in [u64::MAX, 1 << 63, 0] {
            let offset = ClockOffset::of_answer(2_000, answered, 2_020).unwrap();
            _ = (offset.here(1), offset.there(1), offset.contradicts(quick, Duration::MAX));
        }
    }

    #[test]
    fn a_clock_that_was_set_is_told_from_one_that_drifts() {
        let before = ClockOffset { ahead_us: 0, error_us: 100 };
        let minute = Duration::from_secs(60);
        let later = |ahead_us| ClockOffset { ahead_us, error_us: 100 };
        assert!(!before.contradicts(later(30_000), minute));
        assert!(before.contradicts(later(31_000), minute));
        assert!(before.contradicts(later(-31_000), minute));
    }
}
