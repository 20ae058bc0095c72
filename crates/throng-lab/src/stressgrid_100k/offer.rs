//! The offered load of the rows: as much as leaves the generator headroom on this machine, now.

use std::time::{Duration, Instant};

use throng_load::scenario::Protocol;
use throng_measure::Grade;
use throng_measure::validity::LAG_DEGRADED_US;
use throng_report::Summary;
use throng_report::render::rate;
use throng_run::test_bed::FinishedRun;

use super::row::{run_row, size};
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::lab::Lab;
use crate::progress::{LabProgress, without_events};
use crate::throughput::{self, Throughput};

/// An offered load and the source of its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Offer {
    /// The users, each of which makes nearly one connection per second.
    pub(crate) users: u64,
    /// The machine's connections per second with server and generator on it; none when the options
    /// set the size.
    pub(super) capacity: Option<f64>,
}

impl Offer {
    /// Returns the users of the options, or else the result of a calibration and of short trials,
    /// each with less load. The second value is true when the user ended the lab meanwhile.
    pub(super) fn find(
        lab: &Lab<'_>,
        experiment: &Experiment,
        rows: usize,
        progress: &mut dyn FnMut(LabProgress<'_>),
    ) -> Result<(Self, bool), LabError> {
        if let Some(users) = lab.options.users {
            return Ok((Self { users, capacity: None }, false));
        }
        let capacity = Throughput::measure(lab, Protocol::Tcp, rows, progress)?.connects;
        let mut offer = Self::from_capacity(capacity, SHARE_FIRST);
        let mut interrupted = false;
        let began = Instant::now();
        while began.elapsed() < TRIALS_WITHIN {
            if interrupted || lab.test_bed.is_stopped() {
                return Ok((offer, true));
            }
            progress(LabProgress::Row { name: TRIAL, number: 2, of: rows, seconds: TRIAL_SECONDS });
            let progress = &mut without_events(progress);
            let sized = size(lab, experiment, offer.users, TRIAL_SECONDS)?;
            let run = run_row(lab, TRIAL, TRIAL_ACCEPT, &sized, progress)?;
            interrupted = run.interrupted;
            lab.test_bed.drop_diagnosis(TRIAL);
            if leaves_headroom(&run) {
                break;
            }
            offer.lower();
        }
        Ok((offer, interrupted))
    }

    fn from_capacity(capacity: f64, share: f64) -> Self {
        // The article's number is the upper limit.
        let users = ((capacity * share) as u64).clamp(1, 100_000);
        Self { users, capacity: (capacity > 0.0).then_some(capacity) }
    }

    /// Lowers the load.
    pub(super) fn lower(&mut self) {
        self.users = ((self.users as f64 * LOWER_BY) as u64).max(1);
    }

    /// Reports whether the load may be lowered: not if the options set its size.
    pub(super) fn may_be_lowered(&self) -> bool {
        self.capacity.is_some() && self.users > 1
    }

    /// Describes the size: `; 42 % of the 22k/s of a 2 s calibration with server and generator on
    /// it`.
    pub(super) fn describe(&self) -> String {
        let Some(capacity) = self.capacity else { return String::new() };
        format!(
            "; {:.0} % of the {} of a {} s calibration with server and generator on it",
            self.users as f64 / capacity * 100.0,
            rate(capacity),
            throughput::LENGTH.as_secs()
        )
    }
}

/// Reports whether the generator was well on time, so that it also is in the following rows.
fn leaves_headroom(run: &FinishedRun) -> bool {
    let summary = Summary::of(&run.file);
    summary.validity.grade == Grade::Valid
        && summary.generator.lag_us.p99 <= LAG_DEGRADED_US / 2
        && summary.connect.ok > 0
}

const TRIAL: &str = "trial";
/// The accept topology that costs the most.
const TRIAL_ACCEPT: &str = "dispatch";
const TRIAL_SECONDS: u64 = 2;
/// The time in which trials may begin. On a machine that is far too busy, trials take long without
/// a result.
const TRIALS_WITHIN: Duration = Duration::from_secs(15);
/// The first share of the machine's capacity: with more, the generator is late.
const SHARE_FIRST: f64 = 0.4;
const LOWER_BY: f64 = 0.7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_capacity_is_offered() {
        let offer = Offer::from_capacity(10_000.0, 0.5);
        assert_eq!((offer.users, offer.capacity), (5_000, Some(10_000.0)));
        assert_eq!(
            Offer::from_capacity(1e9, 0.7).users,
            100_000,
            "the article's number is the upper limit"
        );
        assert_eq!(Offer::from_capacity(0.0, 0.7), Offer { users: 1, capacity: None });
    }

    #[test]
    fn the_load_is_lowered_until_there_is_one_user() {
        let mut offer = Offer::from_capacity(10_000.0, 0.5);
        offer.lower();
        assert_eq!(offer.users, 3_500);
        assert!(offer.describe().starts_with("; 35 % of the 10k/s"), "{}", offer.describe());
        (0..99).for_each(|_| offer.lower());
        assert_eq!(offer.users, 1);
        assert!(!offer.may_be_lowered());
        assert!(!Offer { users: 500, capacity: None }.may_be_lowered(), "the options set it");
    }
}
