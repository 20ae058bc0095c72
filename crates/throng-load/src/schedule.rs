//! When users start and stop, and when the turns of a paced loop are due: arithmetic, no clock.
//!
//! Every moment is a distance from the start of the run (or of the loop). It is computed from the
//! number of the user or the turn alone, so errors do not add up, and a late generator can measure
//! how late it is. Core `i` of `n` takes the users `k` with `k mod n = i`: together the cores do
//! exactly what one core would do, on one machine or on several ([`MachineShare`]).

mod closed;
mod curve;
mod numbers;
mod open;
mod paced;
mod rate_clock;
mod share;

use std::sync::Arc;
use std::time::Duration;

pub use closed::{ClosedSchedule, ScheduleEvent, UserChange};
pub(crate) use numbers::UserNumbers;
pub use open::Arrivals;
pub use paced::{Pace, PacedTurns};
pub use rate_clock::RateClock;
pub use share::{MachineShare, RUN_CORES_MAX};

use crate::scenario::Phase;
use curve::RateCurve;

/// Returns the maximum number of users at once in the closed model. In the open model it depends on
/// how long the users' steps take, so this returns [`arrivals_total`], an upper bound.
pub fn peak_users(phases: &[Phase]) -> u64 {
    u64::from(ClosedSchedule::new(phases).peak_users()).max(arrivals_total(phases))
}

/// Returns the maximum number of users at once of loads that run beside one another. Users of the
/// closed model are counted at each moment, those of the open model as in [`peak_users`].
pub fn peak_users_beside<'p>(loads: impl Iterator<Item = &'p [Phase]>) -> u64 {
    let (mut lines, mut arrivals) = (Vec::new(), 0);
    for phases in loads {
        lines.push(ClosedSchedule::new(phases));
        arrivals += arrivals_total(phases);
    }
    // Between two bends no sum of lines is above both its ends.
    let bends = lines.iter().flat_map(ClosedSchedule::bends);
    let moments = bends.flat_map(|at| [at.saturating_sub(Duration::from_nanos(1)), at]);
    let users_at = |at| lines.iter().map(|line| line.users_at(at)).sum::<u64>();
    arrivals + moments.map(users_at).max().unwrap_or(0)
}

/// Returns the maximum number of users that start per second: the highest arrival rate, or the
/// steepest ramp up. In the closed model, users that begin another iteration add to it.
pub fn peak_rate(phases: &[Phase]) -> f64 {
    let open = phases.iter().map(|phase| match phase {
        Phase::Arrivals { from, to, .. } => from.max(*to),
        Phase::Recorded { moments_ns, .. } => busiest_second(moments_ns),
        _ => 0.0,
    });
    open.fold(ClosedSchedule::new(phases).peak_rate(), f64::max)
}

/// Returns the largest number of moments in a second; moments are in order.
fn busiest_second(moments_ns: &[u64]) -> f64 {
    let (mut first, mut most) = (0, 0);
    for (index, moment) in moments_ns.iter().enumerate() {
        while moment - moments_ns[first] >= 1_000_000_000 {
            first += 1;
        }
        most = most.max(index + 1 - first);
    }
    most as f64
}

/// Returns the number of arrivals in all phases of the open model; with Poisson spacing, the mean.
pub fn arrivals_total(phases: &[Phase]) -> u64 {
    phases.iter().filter_map(OpenPhase::of).map(|phase| phase.count()).sum()
}

/// A phase of arrivals.
#[derive(Clone, Debug)]
enum OpenPhase {
    /// Arrivals at a rate.
    Curve { curve: RateCurve, seconds: f64, most: u64 },
    /// Arrivals at moments from the beginning of the phase.
    Recorded { moments_ns: Arc<[u64]> },
}

impl OpenPhase {
    fn of(phase: &Phase) -> Option<Self> {
        match phase {
            Phase::Arrivals { from, to, curve, span, most, .. } => Some(Self::Curve {
                curve: RateCurve::new(*from, *to, *span, *curve),
                seconds: span.as_secs_f64(),
                most: most.unwrap_or(u64::MAX),
            }),
            Phase::Recorded { moments_ns, .. } => {
                Some(Self::Recorded { moments_ns: Arc::clone(moments_ns) })
            }
            _ => None,
        }
    }

    /// Returns the number of arrivals that are due before the end of the phase.
    fn count(&self) -> u64 {
        match self {
            Self::Curve { curve, seconds, most } => {
                // A sum such as 1000/s for 100 s may come out slightly above or below 100000.
                let due = (curve.count_by(*seconds) * (1.0 - 1e-12)).ceil();
                (due as u64).min(*most)
            }
            Self::Recorded { moments_ns } => moments_ns.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests;
