//! The turns of `every`.

use std::time::Duration;

use throng_base::Prng;

use super::curve::{RateCurve, duration};
use crate::scenario::Curve;

/// Due moments of the turns of `every`, from the beginning of the loop. The first is due at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Turn k is due after k periods.
    Period(Duration),
    /// Turn k is due after k periods, give or take a share of one. What a turn deviates does not
    /// move the next one, and turns stay in order.
    Jittered {
        /// Mean distance of two turns.
        period: Duration,
        /// Share of the period by which a turn varies either way, evenly distributed; at most a
        /// half. Turn 0 does not vary.
        jitter: f64,
    },
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
    Jittered {
        period_ns: u64,
        jitter: f64,
        seed: u64,
    },
    Curve(RateCurve),
}

impl PacedTurns {
    /// Creates the turns of a scenario's pace.
    pub fn new(pace: Pace) -> Self {
        Self(match pace {
            Pace::Period(period) => Kind::Period(nanos_of(period)),
            Pace::Jittered { period, jitter } => {
                Kind::Jittered { period_ns: nanos_of(period), jitter, seed: 0 }
            }
            Pace::Rate { from, to, over, curve } => {
                Kind::Curve(RateCurve::new(from, to, over, curve))
            }
        })
    }

    /// Returns the same turns with the deviations of one user. The same seed and user give the same
    /// ones.
    pub fn of_user(self, seed: u64, user: u64) -> Self {
        match self.0 {
            Kind::Jittered { period_ns, jitter, .. } => {
                let seed = Prng::derive(seed ^ JITTER_SEED, user).bits();
                Self(Kind::Jittered { period_ns, jitter, seed })
            }
            Kind::Period(_) | Kind::Curve(_) => self,
        }
    }

    /// Returns the number of turns that a loop of this length takes: those that are due in it, if
    /// no turn deviated.
    pub fn turns_planned(&self, span: Duration) -> u64 {
        match self.0 {
            Kind::Jittered { period_ns, .. } => Self(Kind::Period(period_ns)).turns_in(span),
            Kind::Period(_) | Kind::Curve(_) => self.turns_in(span),
        }
    }

    /// Returns the highest rate of the turns, per second.
    pub fn peak_per_s(&self) -> f64 {
        match self.0 {
            Kind::Period(period_ns) | Kind::Jittered { period_ns, .. } => {
                1e9 / period_ns.max(1) as f64
            }
            Kind::Curve(curve) => curve.peak_per_s(),
        }
    }

    /// Returns the due moment of turn `k`; turn 0 is due at once.
    pub fn due(&self, k: u64) -> Duration {
        match self.0 {
            Kind::Period(nanos) => Duration::from_nanos(nanos.saturating_mul(k)),
            Kind::Jittered { .. } if k == 0 => Duration::ZERO,
            Kind::Jittered { period_ns, jitter, seed } => {
                let deviation = jitter * (2.0 * Prng::derive(seed, k).unit() - 1.0);
                let offset_ns = (period_ns as f64 * deviation) as i64;
                Duration::from_nanos(period_ns.saturating_mul(k).saturating_add_signed(offset_ns))
            }
            Kind::Curve(curve) => duration(curve.moment_of(k as f64)),
        }
    }

    /// Returns the number of turns that are due by `passed`, including one that is due at this very
    /// moment.
    pub fn turns_due(&self, passed: Duration) -> u64 {
        self.turns_in(passed.saturating_add(Duration::from_nanos(1)))
    }

    /// Returns the number of turns due before `span`.
    pub fn turns_in(&self, span: Duration) -> u64 {
        let seconds = span.as_secs_f64();
        let mut turns = match self.0 {
            Kind::Period(nanos) => {
                let turns = span.as_nanos().div_ceil(u128::from(nanos.max(1)));
                return u64::try_from(turns).unwrap_or(u64::MAX);
            }
            Kind::Jittered { .. } => self.turns_planned(span),
            Kind::Curve(curve) => curve.count_by(seconds) as u64,
        };
        // The float and a deviation may be one off either way; `due` decides.
        while turns > 0 && self.due(turns - 1) >= span {
            turns -= 1;
        }
        while self.due(turns) < span {
            turns += 1;
        }
        turns
    }
}

fn nanos_of(period: Duration) -> u64 {
    u64::try_from(period.as_nanos()).unwrap_or(u64::MAX)
}

/// Keeps the deviations apart from what else a user draws.
const JITTER_SEED: u64 = 0x7175_726e_6a69_7474;
