//! The limits of this machine, for plans about machines like it.

use throng_doctor::plan::{Costs, MeshLimit, Scope};
use throng_doctor::preflight::{self};
use throng_machine::MachineLimits;
use throng_machine::{ProcRoot, limits};
use throng_measure::Limit;

/// The known limits of this machine.
pub(super) struct ThisMachine {
    pub(super) machine: MachineLimits,
    /// The soft limit of fds with which this process started.
    fds_soft: Option<u64>,
}

impl ThisMachine {
    pub(super) fn read() -> Self {
        let root = ProcRoot::default();
        // The order matters: the machine's limits are read with the soft limit raised.
        let limits = limits::limits(&root, std::process::id());
        let fds_soft = limits.known().and_then(|limits| limits.open_files.soft);
        Self { machine: MachineLimits::read(&root, std::process::id()), fds_soft }
    }

    pub(super) fn memory_bytes(&self) -> Option<u64> {
        self.machine.memory.known().map(|memory| memory.total_bytes)
    }

    /// Returns the number of source ports.
    pub(super) fn ports(&self) -> Option<u64> {
        self.machine.local_ports.known().map(|ports| u64::from(ports.count()))
    }

    /// Returns the limits of the connections of a node, or of all nodes on this machine. A limit
    /// that cannot be read is left out.
    pub(super) fn limits(&self) -> Vec<MeshLimit> {
        let machine = &self.machine;
        let mut found = Vec::new();
        let mut add = |name, scope, allows: Option<u64>, note: &str| {
            if let Some(allows) = allows {
                found.push(MeshLimit { name, allows, scope, note: note.to_owned() });
            }
        };
        let hard = machine.fds_hard.known().copied().flatten();
        let soft_note = Limit::FDS.raise("{n}") + ", up to the hard limit";
        add("RLIMIT_NOFILE, soft", Scope::Node, self.fds_soft, &soft_note);
        add("RLIMIT_NOFILE, hard", Scope::Node, hard, "as root: ulimit -Hn {n}, or limits.conf");
        let nr_open = machine.nr_open.known().copied();
        let ceiling = Limit::FDS_CEILING;
        add(ceiling.name(), Scope::Node, nr_open, &ceiling.raise("{n}"));
        let ports_note = format!("{PORTS_NOTE}; {}", Limit::PORTS.raise("1024 65535"));
        add("ports", Scope::Machine, self.ports(), &ports_note);
        let files = machine.files.known().map(|files| files.max.saturating_sub(files.open));
        add(Limit::FILES.name(), Scope::Machine, files, &Limit::FILES.raise("N"));
        let watches = machine.epoll_watches_max.known().copied();
        let watches_note = format!("of one user; {}", Limit::EPOLL_WATCHES.raise("{n}"));
        add(Limit::EPOLL_WATCHES.name(), Scope::Machine, watches, &watches_note);
        let conntrack = machine.conntrack.known().copied().flatten();
        let conntrack = conntrack.map(|tracked| tracked.max.saturating_sub(tracked.count));
        let conntrack_note = Limit::CONNTRACK.raise("N") + ", or a rule that does not track";
        add("nf_conntrack_max", Scope::Machine, conntrack, &conntrack_note);
        let (memory, memory_note) = self.memory();
        add("memory", Scope::Machine, memory, &memory_note);
        found
    }

    /// Returns the number of connections for which memory is available now, if each takes as much
    /// of the process as in a small server.
    fn memory(&self) -> (Option<u64>, String) {
        let machine = &self.machine;
        let slabs = machine.slabs.known();
        let kernel = slabs.and_then(|slabs| preflight::kernel_bytes(slabs, machine.page_bytes));
        let kernel = kernel.unwrap_or(preflight::KERNEL_BYTES);
        let program = Costs::documented().server.bytes.value as u64;
        let memory = machine.memory.known();
        let free = memory.map(|memory| memory.available_bytes.unwrap_or(memory.total_bytes));
        let allows = free.map(|free| free / 10 * 8 / (kernel + program));
        (allows, format!("80 % of the free memory, at {kernel} + {program} B each"))
    }
}

const PORTS_NOTE: &str = "if each connection needs its own, as to one address and port";
