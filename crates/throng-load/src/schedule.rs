//! When users start and stop, and when the turns of a paced loop are due: arithmetic, no clock.
//!
//! Every moment is a distance from the start of the run (or of the loop). It is computed from the
//! number of the user or the turn alone, so errors do not add up, and a late generator can measure
//! how late it is. Core `i` of `n` takes the users `k` with `k mod n = i`: together the cores do
//! exactly what one core would do.

mod closed;
mod curve;
mod open;
mod paced;

use std::time::Duration;

pub use closed::{ClosedSchedule, ScheduleEvent, UserChange};
pub use open::Arrivals;
pub use paced::{Pace, PacedTurns};

use crate::scenario::Phase;
use curve::RateCurve;

/// Returns the length of all phases.
pub fn length(phases: &[Phase]) -> Duration {
    phases.iter().fold(Duration::ZERO, |sum, phase| sum.saturating_add(phase.length()))
}

/// Returns the maximum number of users at once in the closed model. In the open model it depends on
/// how long the users' steps take, so this returns [`arrivals_total`], an upper bound.
pub fn peak_users(phases: &[Phase]) -> u64 {
    let ramps = phases.iter().map(|phase| match phase {
        Phase::Ramp { to, .. } => u64::from(*to),
        _ => 0,
    });
    ramps.max().unwrap_or(0).max(arrivals_total(phases))
}

/// Returns the maximum number of users that start per second: the highest arrival rate, or the
/// steepest ramp up. In the closed model, users that begin another iteration add to it.
pub fn peak_rate(phases: &[Phase]) -> f64 {
    let mut users = 0;
    let mut most = 0.0f64;
    for phase in phases {
        match *phase {
            Phase::Ramp { to, over } => {
                let up = f64::from(to.saturating_sub(users));
                most = most.max(up / over.as_secs_f64());
                users = to;
            }
            Phase::Hold { .. } => {}
            Phase::Arrivals { from, to, .. } => most = most.max(from).max(to),
        }
    }
    most
}

/// Returns the number of arrivals in all phases of the open model; with Poisson spacing, the mean.
pub fn arrivals_total(phases: &[Phase]) -> u64 {
    phases.iter().filter_map(OpenPhase::of).map(|phase| phase.count()).sum()
}

/// A phase of arrivals and its rate.
#[derive(Clone, Copy, Debug)]
struct OpenPhase {
    curve: RateCurve,
    seconds: f64,
    most: u64,
}

impl OpenPhase {
    fn of(phase: &Phase) -> Option<Self> {
        let Phase::Arrivals { from, to, span, most, .. } = *phase else { return None };
        let curve = RateCurve::new(from, to, span);
        Some(Self { curve, seconds: span.as_secs_f64(), most: most.unwrap_or(u64::MAX) })
    }

    /// Returns the number of arrivals that are due before the end of the phase.
    fn count(&self) -> u64 {
        // A sum such as 1000/s for 100 s may come out slightly above or below 100000.
        let due = (self.curve.count_by(self.seconds) * (1.0 - 1e-12)).ceil();
        (due as u64).min(self.most)
    }
}

#[cfg(test)]
mod tests;
