//! Facts that do not change during a run, read once at its beginning.

use std::collections::BTreeMap;

use throng_measure::Limit;

use crate::conntrack;
use crate::fact::Fact;
use crate::files::{FILE_NR_PATH, FileUse, parse_file_nr};
use crate::limits::{self, ProcessLimits};
use crate::meminfo::{self, MachineMemory};
use crate::ports::{LocalPorts, local_ports};
use crate::proc_root::ProcRoot;
use crate::status::{self, Status};

/// The machine's limits for one process. Those of the network belong to the calling thread's
/// network namespace.
#[derive(Clone, Debug)]
pub struct MachineFacts {
    /// Kernel version, such as `6.18.44`.
    pub kernel: Fact<String>,
    /// Memory of the machine.
    pub memory: Fact<MachineMemory>,
    /// Limits of the process.
    pub limits: Fact<ProcessLimits>,
    /// Capabilities of the process.
    pub status: Fact<Status>,
    /// Open files of the machine.
    pub files: Fact<FileUse>,
    /// Ports that the kernel may choose.
    pub local_ports: Fact<LocalPorts>,
    /// Most entries of connection tracking.
    pub conntrack_max: Fact<u64>,
    /// Values of the sysctls that decide how many connections the machine holds, and how fast it
    /// opens them, as text.
    pub sysctls: BTreeMap<&'static str, Fact<String>>,
}

impl MachineFacts {
    /// Reads all facts.
    pub fn read(root: &ProcRoot, pid: u32) -> Self {
        Self {
            kernel: root.sysctl_text("kernel.osrelease"),
            memory: root.read(meminfo::PATH, meminfo::parse),
            limits: limits::limits(root, pid),
            status: status::status(root, pid),
            files: root.read(FILE_NR_PATH, parse_file_nr),
            local_ports: local_ports(root),
            conntrack_max: root.read(conntrack::MAX_PATH, conntrack::parse_count),
            sysctls: Limit::sysctls()
                .map(Limit::name)
                .chain(SYSCTLS.iter().copied())
                .map(|name| (name, root.sysctl_text(name)))
                .collect(),
        }
    }
}

/// The sysctls that, beside the limits, decide how many connections a machine holds and how fast it
/// opens them.
const SYSCTLS: &[&str] = &[
    "kernel.io_uring_disabled",
    "kernel.pid_max",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_abort_on_overflow",
    "net.ipv4.tcp_child_ehash_entries",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_migrate_req",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_wmem",
    "vm.max_map_count",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Reason;
    use crate::recorded_root;

    #[test]
    fn a_recorded_machine_is_fully_known() {
        let facts = MachineFacts::read(&recorded_root("linux-6.18"), 4242);
        assert_eq!(facts.kernel.known().map(String::as_str), Some("6.18.44"));
        assert_eq!(facts.conntrack_max, Fact::Known(262_144));
        for (name, value) in &facts.sysctls {
            assert!(value.known().is_some(), "{name}: {value}");
        }
    }

    #[test]
    fn where_nothing_can_be_read_every_fact_has_a_reason() {
        let facts = MachineFacts::read(&recorded_root("empty"), 1);
        assert_eq!(facts.kernel.why().unwrap().reason, Reason::Missing);
        assert!(facts.memory.known().is_none() && facts.limits.known().is_none());
        assert!(facts.status.known().is_none() && facts.files.known().is_none());
        assert!(facts.local_ports.known().is_none() && facts.conntrack_max.known().is_none());
        assert!(facts.sysctls.values().all(|fact| fact.known().is_none()));
    }
}
