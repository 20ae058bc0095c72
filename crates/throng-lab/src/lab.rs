//! The context in which a lab runs.

use std::cell::Cell;

use crate::error::LabError;
use crate::machine::LabMachine;
use crate::options::LabOptions;
use crate::progress::LabProgress;
use crate::test_bed::TestBed;

/// A running lab's options, machine and test bed.
pub(crate) struct Lab<'a> {
    pub(crate) options: &'a LabOptions,
    pub(crate) machine: LabMachine,
    pub(crate) test_bed: &'a TestBed,
    /// True when a calibration was the first row.
    pub(crate) is_calibrated: Cell<bool>,
}

impl Lab<'_> {
    /// Returns the users of the options, or else `wanted` up to the number that fits.
    pub(crate) fn users_or(&self, wanted: u64) -> u64 {
        self.options.users.unwrap_or_else(|| wanted.min(self.machine.pairs_most()).max(1))
    }

    /// Reports that the lab's only row begins, after the calibration if there was one.
    pub(crate) fn begin_row(
        &self,
        name: &str,
        seconds: u64,
        progress: &mut dyn FnMut(LabProgress<'_>),
    ) {
        let of = 1 + usize::from(self.is_calibrated.get());
        progress(LabProgress::Row { name, number: of, of, seconds });
    }

    /// Checks that `connections` fit, unless the options force them. Takes a namespace with a
    /// larger connection table where the machine's own would be crowded.
    ///
    /// # Errors
    /// [`LabError::TooBig`] when they do not fit.
    pub(crate) fn check_fits(&self, connections: u64) -> Result<(), LabError> {
        let preflight = self.machine.preflight(connections);
        if !preflight.fits() && !self.options.force {
            return Err(LabError::TooBig(Box::new(preflight)));
        }
        let sockets = connections.saturating_mul(2);
        let buckets = self.machine.hash_buckets();
        self.test_bed.use_larger_table(sockets, buckets, !self.options.no_namespace);
        Ok(())
    }
}

/// Asserts that two scenarios do the same. The labs scale the articles' scenarios; at the articles'
/// own sizes a scaled scenario must equal the file under `labs`.
#[cfg(test)]
#[track_caller]
pub(crate) fn assert_same_scenario(ours: &str, bundled: &str) {
    use throng_load::{program::Program, scenario::Scenario};
    let parse = |text, name| Scenario::parse(text, name).unwrap();
    let (ours, bundled) = (parse(ours, "ours"), parse(bundled, "bundled"));
    let program = |scenario| format!("{:#?}", Program::compile(scenario));
    assert_eq!(program(&ours), program(&bundled));
    assert_eq!((ours.target, ours.load), (bundled.target, bundled.load));
    assert_eq!(ours.probe, bundled.probe);
}
