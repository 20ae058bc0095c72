//! The context in which a lab runs.

use std::cell::Cell;

use throng_load::scenario::{Params, Quantity};
use throng_run::test_bed::TestBed;

use crate::error::LabError;
use crate::machine::LabMachine;
use crate::options::LabOptions;
use crate::progress::LabProgress;

/// A running lab's options, machine and test bed.
pub(crate) struct Lab<'a> {
    pub(crate) options: &'a LabOptions,
    pub(crate) machine: LabMachine,
    /// The servers that share topics; 1 of most labs.
    pub(crate) nodes: u8,
    pub(crate) test_bed: &'a TestBed,
    /// True when a calibration was the first row.
    pub(crate) is_calibrated: Cell<bool>,
}

impl Lab<'_> {
    /// Returns the names that every lab's expressions may use: what the options ask for, and what
    /// this machine has room for. Without a calibration, its throughput is unknown.
    pub(crate) fn known(&self) -> Params {
        let asked =
            |n: Option<u64>, of: fn(f64) -> Quantity| n.map_or(Quantity::Unknown, |n| of(n as f64));
        let known = [
            ("cpus", Quantity::number(self.machine.cpus as f64)),
            ("fits", Quantity::number(self.machine.pairs_most() as f64)),
            ("asked.users", asked(self.options.users, Quantity::number)),
            ("asked.seconds", asked(self.options.seconds, Quantity::seconds)),
            ("asked.rate", asked(self.options.rate, Quantity::per_second)),
            ("connects", Quantity::Unknown),
            ("messages", Quantity::Unknown),
        ];
        known.map(|(name, value)| (name.to_owned(), value)).into()
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
        let ends = if self.options.agents.is_some() { 1 } else { 2 };
        let sockets = connections.saturating_mul(ends);
        let buckets = self.machine.hash_buckets();
        self.test_bed.use_larger_table(sockets, buckets, may_move(self.options, self.nodes));
        Ok(())
    }
}

/// Reports whether the lab's processes may be in a network namespace of their own. Agents reach no
/// server there, and nodes no bus. A bus alone, which the environment may name, is no obstacle.
fn may_move(options: &LabOptions, nodes: u8) -> bool {
    !options.no_namespace && options.agents.is_none() && nodes == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_run::test_bed::BusAccess;

    #[test]
    fn a_bus_that_the_lab_does_not_use_keeps_it_from_no_namespace() {
        let options = LabOptions { bus: Some(BusAccess::default()), ..LabOptions::default() };
        assert!(may_move(&options, 1) && !may_move(&options, 2));
        let agents = LabOptions { agents: Some("all".into()), ..options.clone() };
        assert!(!may_move(&agents, 1));
        assert!(!may_move(&LabOptions { no_namespace: true, ..options }, 1));
    }
}
