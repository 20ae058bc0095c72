//! The clock of a limit: the moments at which users may do something, at equal distances.
//!
//! It is the generic cell rate algorithm (ITU-T I.371) without a tolerance: time that no user used
//! is lost, so there is no burst after it. Each core has its share of a limit and a clock of its
//! own.

use std::time::Duration;

use throng_base::Instant;

/// Clock of the moments at which the users of one core may do something.
#[derive(Clone, Copy, Debug)]
pub struct RateClock {
    interval_ns: f64,
    /// Moment from which the turns are counted.
    base: Instant,
    /// Turns given since then. A moment is computed from their number, so errors do not add up.
    given: u64,
}

impl RateClock {
    /// Creates the clock of a rate.
    pub fn new(per_second: f64, start_at: Instant) -> Self {
        Self::of_core(per_second, 0, 1, start_at)
    }

    /// Creates the clock of core `core` of `cores`. Together the cores keep the rate; their turns
    /// alternate from `start_at` on.
    pub fn of_core(per_second: f64, core: usize, cores: usize, start_at: Instant) -> Self {
        let interval_ns = NANOS_PER_SECOND / per_second;
        let base = start_at + Duration::from_nanos((interval_ns * core as f64) as u64);
        Self { interval_ns: interval_ns * cores as f64, base, given: 0 }
    }

    /// Gives a user the next turn: now, or the first moment that no other user has.
    pub fn next_turn(&mut self, now: Instant) -> Instant {
        let next = self.moment(self.given);
        if next < now {
            (self.base, self.given) = (now, 1);
            return now;
        }
        self.given += 1;
        next
    }

    /// Returns the moment after that of a turn.
    pub fn after(&self, turn: Instant) -> Instant {
        turn + Duration::from_nanos(self.interval_ns as u64)
    }

    fn moment(&self, turn: u64) -> Instant {
        self.base + Duration::from_nanos((turn as f64 * self.interval_ns) as u64)
    }
}

const NANOS_PER_SECOND: f64 = 1e9;

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(per_second: f64, core: usize, cores: usize) -> RateClock {
        RateClock::of_core(per_second, core, cores, Instant::ZERO)
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn turns_are_at_equal_distances_while_users_wait() {
        let mut clock = clock(100.0, 0, 1);
        let turns: Vec<_> = (0..4).map(|_| clock.next_turn(at(0))).collect();
        assert_eq!(turns, [at(0), at(10), at(20), at(30)]);
    }

    #[test]
    fn time_that_no_user_used_is_lost() {
        let mut clock = clock(100.0, 0, 1);
        clock.next_turn(at(0));
        let turns: Vec<_> = (0..3).map(|_| clock.next_turn(at(500))).collect();
        assert_eq!(turns, [at(500), at(510), at(520)]);
    }

    #[test]
    fn the_cores_alternate_and_keep_the_rate_together() {
        let mut cores: Vec<_> = (0..4).map(|core| clock(100.0, core, 4)).collect();
        let mut turns: Vec<_> = (0..25)
            .flat_map(|_| cores.iter_mut().map(|it| it.next_turn(at(0))).collect::<Vec<_>>())
            .collect();
        turns.sort();
        assert_eq!(turns.len(), 100);
        assert!(turns.windows(2).all(|pair| pair[1] - pair[0] == Duration::from_millis(10)));
    }

    #[test]
    fn a_rate_without_a_whole_interval_does_not_drift() {
        let mut clock = clock(3.0, 0, 1);
        let last = (0..=3_000_000).map(|_| clock.next_turn(at(0))).last();
        let million_seconds = Instant::ZERO + Duration::from_secs(1_000_000);
        assert!(last.is_some_and(|last| million_seconds.since(last).as_nanos() < 1_000));
    }
}
