//! The turns of `every`.

use std::time::Duration;

use super::curve::{RateCurve, duration};
use crate::scenario::Curve;

/// Due moments of the turns of `every`, from the beginning of the loop. The first is due at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Turn k is due after k periods.
    Period(Duration),
    /// Turns per second, changing over a time and then constant.
    Rate {
        /// Turns per second at the beginning.
        from: f64,
        /// Turns per second at the end; more than 0.
        to: f64,
        /// Time of the change; zero for a constant rate.
        over: Duration,
        /// Form of the change.
        curve: Curve,
    },
}

/// Due moments of turn 0, 1, 2, ... of a loop, from its beginning. The turn's number is the only
/// state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacedTurns(Kind);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Whole nanoseconds, so that the millionth turn is not a microsecond off.
    Period(u64),
    Curve(RateCurve),
}

impl PacedTurns {
    /// Creates the turns of a scenario's pace.
    pub fn new(pace: Pace) -> Self {
        Self(match pace {
            Pace::Period(period) => {
                Kind::Period(u64::try_from(period.as_nanos()).unwrap_or(u64::MAX))
            }
            Pace::Rate { from, to, over, curve } => {
                Kind::Curve(RateCurve::new(from, to, over, curve))
            }
        })
    }

    /// Returns the due moment of turn `k`; turn 0 is due at once.
    pub fn due(&self, k: u64) -> Duration {
        match self.0 {
            Kind::Period(nanos) => Duration::from_nanos(nanos.saturating_mul(k)),
            Kind::Curve(curve) => duration(curve.moment_of(k as f64)),
        }
    }

    /// Returns the number of turns that are due by `passed`, including one that is due at this very
    /// moment.
    pub fn turns_due(&self, passed: Duration) -> u64 {
        self.turns_in(passed.saturating_add(Duration::from_nanos(1)))
    }

    /// Returns the number of turns due before `span`: those that a loop with `for: span` takes.
    pub fn turns_in(&self, span: Duration) -> u64 {
        let seconds = span.as_secs_f64();
        let mut turns = match self.0 {
            Kind::Period(nanos) => {
                let turns = span.as_nanos().div_ceil(u128::from(nanos.max(1)));
                return u64::try_from(turns).unwrap_or(u64::MAX);
            }
            Kind::Curve(curve) => curve.count_by(seconds) as u64,
        };
        // The float may be one off either way; `due` decides.
        while turns > 0 && self.due(turns - 1) >= span {
            turns -= 1;
        }
        while self.due(turns) < span {
            turns += 1;
        }
        turns
    }
}
