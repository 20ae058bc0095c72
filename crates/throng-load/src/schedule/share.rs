//! The share of one machine in a run that several machines make together.

use serde::{Deserialize, Serialize};

/// The cores of one machine among the cores of all machines of a run.
///
/// The schedule deals users, arrivals, turns of limits and rows of data to cores. It does not know
/// on which machine a core is. So several machines start the same users at the same moments as one
/// machine that has all their cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedShare")]
pub struct MachineShare {
    /// Number of the machine's first core among all.
    first: usize,
    /// Number of the machine's cores.
    cores: usize,
    /// Number of the cores of all machines.
    of: usize,
}

/// A share as another machine writes it.
#[derive(Deserialize)]
struct UncheckedShare {
    first: usize,
    cores: usize,
    of: usize,
}

impl TryFrom<UncheckedShare> for MachineShare {
    type Error = String;

    fn try_from(share: UncheckedShare) -> Result<Self, String> {
        let UncheckedShare { first, cores, of } = share;
        if of > RUN_CORES_MAX {
            return Err(format!("a run of {of} cores: {RUN_CORES_MAX} at most"));
        }
        if cores == 0 || first.checked_add(cores).is_none_or(|end| end > of) {
            return Err(format!("{cores} cores from core {first} on are no share of {of}"));
        }
        Ok(Self { first, cores, of })
    }
}

impl MachineShare {
    /// Returns the share of a machine that makes its run alone.
    pub fn whole(cores: usize) -> Self {
        Self { first: 0, cores, of: cores }
    }

    /// Deals the shares of machines with so many cores each.
    pub fn deal(cores: &[usize]) -> Vec<Self> {
        let of = cores.iter().sum();
        let mut first = 0;
        let share = |&cores: &usize| {
            let share = Self { first, cores, of };
            first += cores;
            share
        };
        cores.iter().map(share).collect()
    }

    /// Returns the number of this machine's cores.
    pub fn cores(self) -> usize {
        self.cores
    }

    /// Returns the number of the machine's core `core` among all cores, and the number of these.
    pub fn slot(self, core: usize) -> (usize, usize) {
        assert!(core < self.cores, "core {core} of {}", self.cores);
        (self.first + core, self.of)
    }

    /// Returns this machine's core with number `slot` among all cores; `None` if another machine
    /// has it.
    pub fn core_at(self, slot: usize) -> Option<usize> {
        slot.checked_sub(self.first).filter(|core| *core < self.cores)
    }

    /// Returns the number of the cores of all machines.
    pub fn of(self) -> usize {
        self.of
    }
}

/// The cores of all machines of a run at most.
pub const RUN_CORES_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_is_none_is_not_read() {
        let read = |first: usize, cores: usize, of: usize| {
            let json = serde_json::json!({"first": first, "cores": cores, "of": of});
            serde_json::from_value::<MachineShare>(json).map_err(|error| error.to_string())
        };
        assert_eq!(read(2, 1, 7), Ok(MachineShare::deal(&[2, 1, 4])[1]));
        for (first, cores, of, why) in [
            (0, 0, 1, "0 cores"),
            (1, 1, 1, "no share of 1"),
            (usize::MAX, 1, 4, "no share of 4"),
            (0, 1 << 40, 1 << 40, "65536 at most"),
        ] {
            let error = read(first, cores, of).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn the_machines_have_each_core_once() {
        let shares = MachineShare::deal(&[2, 1, 4]);
        let slots: Vec<_> = shares
            .iter()
            .flat_map(|share| (0..share.cores()).map(|core| share.slot(core)))
            .collect();
        assert_eq!(shares[2].core_at(3), Some(0));
        assert_eq!((shares[2].core_at(2), shares[1].core_at(3)), (None, None));
        assert_eq!(slots, (0..7).map(|slot| (slot, 7)).collect::<Vec<_>>());
        assert_eq!(MachineShare::deal(&[3]), [MachineShare::whole(3)]);
    }
}
