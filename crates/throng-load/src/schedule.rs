//! When users begin and end, and when the turns of a paced loop are due: arithmetic, no clock.
//!
//! Every moment is a distance from the start of the run (or of the loop) and is found on its own
//! from the number of the user or the turn, so nothing drifts and a late generator can see how late it is.
//! Core `i` of `n` takes the users `k` with `k mod n = i`: the cores together do exactly what one
//! would do.

mod closed;
mod curve;
mod open;
mod paced;

use std::time::Duration;

pub use closed::{ClosedSchedule, ScheduleEvent, UserChange};
pub use open::Arrivals;
pub use paced::PacedTurns;

use crate::scenario::Phase;
use curve::RateCurve;

/// The time from the first moment of the first phase to the last of the last.
pub fn length(phases: &[Phase]) -> Duration {
    phases.iter().fold(Duration::ZERO, |sum, phase| sum.saturating_add(phase.length()))
}

/// The most users at once in the closed model. In the open model nobody knows before the run: a
/// user stays for as long as its steps take; what is certain is that no more than
/// [`arrivals_total`] are there at once, and that is what this returns.
pub fn peak_users(phases: &[Phase]) -> u64 {
    let ramps = phases.iter().map(|phase| match phase {
        Phase::Ramp { to, .. } => u64::from(*to),
        _ => 0,
    });
    ramps.max().unwrap_or(0).max(arrivals_total(phases))
}

/// The most users that begin per second: the highest rate of arrivals, or the steepest ramp up.
/// In the closed model users that begin again come on top of it.
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

/// How many users arrive in all phases of the open model; with Poisson spacing, the mean of it.
pub fn arrivals_total(phases: &[Phase]) -> u64 {
    phases.iter().filter_map(OpenPhase::of).map(|phase| phase.count()).sum()
}

/// A phase of arrivals and the rate in it.
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

    /// The arrivals 0, 1, ... that are due before the end of the phase.
    fn count(&self) -> u64 {
        // A sum such as 1000/s for 100 s may come out a hair above or below 100000.
        let due = (self.curve.count_by(self.seconds) * (1.0 - 1e-12)).ceil();
        (due as u64).min(self.most)
    }
}

#[cfg(test)]
mod tests;
