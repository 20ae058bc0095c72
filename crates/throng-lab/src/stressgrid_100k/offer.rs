//! How much load the rows are offered: as much as leaves the generator headroom on this machine, now.

use std::time::{Duration, Instant};

use throng_report::render::rate;
use throng_report::validity::LAG_DEGRADED_US;
use throng_report::{Grade, Summary};

use super::run_row;
use crate::calibrate::{self, CalibrationOutcome, calibrate};
use crate::error::LabError;
use crate::lab::Lab;
use crate::progress::{LabProgress, without_events};
use crate::test_bed::FinishedRun;

/// A load, and where its size comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Offer {
    /// Each makes nearly one connection a second.
    pub(crate) users: u64,
    /// What the machine takes in a second with both ends on it; none when the size was asked for.
    pub(super) capacity: Option<f64>,
}

impl Offer {
    /// As many users as were asked for; else what a calibration and short trials come to, from much to less. The second
    /// value tells whether the user ended it meanwhile.
    pub(super) fn find(
        lab: &Lab<'_>,
        rows: usize,
        progress: &mut dyn FnMut(LabProgress<'_>),
    ) -> Result<(Self, bool), LabError> {
        if let Some(users) = lab.options.users {
            return Ok((Self { users, capacity: None }, false));
        }
        let CalibrationOutcome { rate, interrupted } =
            calibrate(lab, "  - connect\n  - close\n", rows, progress)?;
        let mut offer = Self::from_capacity(rate.unwrap_or(0.0), SHARE_FIRST);
        let mut interrupted = interrupted;
        let began = Instant::now();
        while began.elapsed() < TRIALS_WITHIN {
            if interrupted || lab.test_bed.is_stopped() {
                return Ok((offer, true));
            }
            progress(LabProgress::Row { name: TRIAL, number: 2, of: rows, seconds: TRIAL_SECONDS });
            let progress = &mut without_events(progress);
            let run = run_row(lab, TRIAL, TRIAL_ACCEPT, offer.users, TRIAL_SECONDS, progress)?;
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
        // The article's number is the most.
        let users = ((capacity * share) as u64).clamp(1, 100_000);
        Self { users, capacity: (capacity > 0.0).then_some(capacity) }
    }

    /// Asks for less.
    pub(super) fn lower(&mut self) {
        self.users = ((self.users as f64 * LOWER_BY) as u64).max(1);
    }

    /// Whether a row that is not valid may be tried again with less: not where the size was asked for.
    pub(super) fn may_be_lowered(&self) -> bool {
        self.capacity.is_some() && self.users > 1
    }

    /// `; 42 % of the 22k/s that it took in a 3 s calibration with both ends on it`.
    pub(super) fn describe(&self) -> String {
        let Some(capacity) = self.capacity else { return String::new() };
        format!(
            "; {:.0} % of the {} that it took in a {} s calibration with both ends on it",
            self.users as f64 / capacity * 100.0,
            rate(capacity),
            calibrate::SECONDS
        )
    }
}

/// Whether the generator was on time by far, so that it is in the rows that follow too.
fn leaves_headroom(run: &FinishedRun) -> bool {
    let summary = Summary::of(&run.file);
    summary.validity.grade == Grade::Valid
        && summary.generator.lag_us.p99 <= LAG_DEGRADED_US / 2
        && summary.connect.ok > 0
}

const TRIAL: &str = "trial";
/// The way to accept that asks the most of a machine.
const TRIAL_ACCEPT: &str = "dispatch";
const TRIAL_SECONDS: u64 = 2;
/// No trial begins after that: those of a machine that is far too busy take long, and come to nothing.
const TRIALS_WITHIN: Duration = Duration::from_secs(15);
/// Of what the machine takes: with more, whoever is late is the generator.
const SHARE_FIRST: f64 = 0.5;
const LOWER_BY: f64 = 0.7;

#[cfg(test)]
mod tests {
    use throng_load::scenario::Scenario;

    use super::super::scenario;
    use super::*;

    #[test]
    fn a_share_of_what_the_machine_takes_is_offered() {
        let offer = Offer::from_capacity(10_000.0, 0.5);
        assert_eq!((offer.users, offer.capacity), (5_000, Some(10_000.0)));
        assert_eq!(
            Offer::from_capacity(1e9, 0.7).users,
            100_000,
            "the article's number is the most"
        );
        assert_eq!(Offer::from_capacity(0.0, 0.7), Offer { users: 1, capacity: None });
    }

    #[test]
    fn less_is_asked_for_until_there_is_one_user() {
        let mut offer = Offer::from_capacity(10_000.0, 0.5);
        offer.lower();
        assert_eq!(offer.users, 3_500);
        assert!(offer.describe().starts_with("; 35 % of the 10k/s"), "{}", offer.describe());
        (0..99).for_each(|_| offer.lower());
        assert_eq!(offer.users, 1);
        assert!(!offer.may_be_lowered());
        assert!(!Offer { users: 500, capacity: None }.may_be_lowered(), "it was asked for");
    }

    #[test]
    fn a_trial_is_a_scenario() {
        for users in [1, 100_000] {
            Scenario::parse(&scenario(users, TRIAL_SECONDS), "trial").unwrap();
        }
    }
}
