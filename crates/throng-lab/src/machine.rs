//! The capacity of this machine with server and generator on it, from the doctor's preflight.

use throng_doctor::preflight::{MachineRole, Preflight, Requirements, cores_for, preflight};
use throng_driver::fdtable;
use throng_machine::{MachineLimits, ProcRoot};

/// The machine that a lab runs on.
#[derive(Clone, Debug)]
pub(crate) struct LabMachine {
    /// CPUs that this process may use.
    pub(crate) cpus: u64,
    /// Connections that fit into one fd table.
    pub(crate) fds_per_table: u64,
    limits: MachineLimits,
    /// True when server and generator have a namespace each.
    isolated: bool,
    /// The ends of the connections that are on this machine.
    role: MachineRole,
}

impl LabMachine {
    /// Reads the machine's limits. If `others_load`, only the server is here.
    pub(crate) fn read(isolated: bool, others_load: bool) -> Self {
        let role = if others_load { MachineRole::Server } else { MachineRole::Both };
        let limits = MachineLimits::read(&ProcRoot::default(), std::process::id());
        let cpus = limits.cpus;
        let fds_per_table = fdtable::usable(fdtable::raise_limit(), cpus as usize) as u64;
        Self { cpus, fds_per_table, limits, isolated, role }
    }

    /// Compares `pairs` of connections with every limit.
    pub(crate) fn preflight(&self, pairs: u64) -> Preflight {
        preflight(&self.requirements(pairs), &self.limits)
    }

    /// Returns the most pairs of connections that every limit allows.
    pub(crate) fn pairs_most(&self) -> u64 {
        self.preflight(1).holds().unwrap_or(u64::MAX)
    }

    /// Returns the buckets of the machine's TCP hash table; 0 where they are unknown.
    pub(crate) fn hash_buckets(&self) -> u64 {
        self.limits.hash_buckets.known().copied().unwrap_or(0)
    }

    /// Returns the cores of a process that holds `connections`: the CPUs, or as many as the fd
    /// tables need.
    pub(crate) fn cores_for(&self, connections: u64) -> u64 {
        // A tenth more, because connections do not spread evenly over the cores.
        cores_for(&self.requirements(connections), &self.limits, connections + connections / 10)
    }

    /// Returns the requirements without ports: a lab takes as many addresses as it needs.
    fn requirements(&self, pairs: u64) -> Requirements {
        Requirements { isolated: self.isolated, ..Requirements::new(pairs, self.role) }
    }
}

#[cfg(test)]
mod tests {
    use throng_machine::Fact;

    use super::*;

    fn machine(private_fds: bool) -> LabMachine {
        let nowhere = MachineLimits::read(&ProcRoot::new("/nowhere"), 1);
        let limits = MachineLimits {
            cpus: 2,
            fds_hard: Fact::Known(Some(20_000)),
            private_fds: Fact::Known(private_fds),
            epoll_watches_max: Fact::Known(1_001_024),
            ..nowhere
        };
        let role = MachineRole::Both;
        LabMachine { cpus: 2, fds_per_table: 19_900, limits, isolated: false, role }
    }

    #[test]
    fn the_most_pairs_fit() {
        let most = machine(true).pairs_most();
        assert_eq!(most, 500_000, "half of the watches that are left for connections");
        assert!(machine(true).preflight(most).fits() && !machine(true).preflight(most + 1).fits());
    }

    #[test]
    fn cores_are_as_many_as_the_tables_need() {
        assert_eq!(machine(true).cores_for(1_000), 2);
        assert_eq!(machine(true).cores_for(200_000), 12);
        assert_eq!(machine(false).cores_for(200_000), 2);
    }
}
