//! The end of a paced loop.

use std::time::Duration;

use throng_load::scenario::Curve;
use throng_load::schedule::{Pace, PacedTurns};

/// Returns the time from the last turn of an `every` to the end of its `for`. A scenario goes on
/// after the last turn at once, however long `for` is.
pub(crate) fn rest_after_last_turn(pace: Pace, length: Duration) -> Duration {
    let turns = PacedTurns::new(pace);
    let last = turns.turns_planned(length).saturating_sub(1);
    length.saturating_sub(turns.due(last))
}

/// Returns turns at a rate that stays the same.
pub(crate) fn constant(per_second: f64) -> Pace {
    let curve = Curve::default();
    Pace::Rate { from: per_second, to: per_second, over: Duration::ZERO, curve }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_turn_is_before_the_end() {
        for (period, length, rest) in
            [(1_000, 2_000, 1_000), (1_000, 1_900, 900), (500, 250, 250), (500, 0, 0)]
        {
            let [period, length, rest] = [period, length, rest].map(Duration::from_millis);
            assert_eq!(rest_after_last_turn(Pace::Period(period), length), rest);
        }
        let a_third = rest_after_last_turn(constant(3.0), Duration::from_secs(1));
        assert_eq!(a_third.as_millis(), 333);
    }
}
