//! The limits of a machine, read once.

use throng_driver::fdtable;
use throng_driver::netlink::ListenerState;
use throng_measure::Limit;

use crate::cgroup;
use crate::conntrack;
use crate::fact::{Fact, ParseFailure, Reason, Unknown};
use crate::files::{FILE_NR_PATH, FileUse, parse_file_nr};
use crate::limits;
use crate::listeners::ListenerReader;
use crate::meminfo::{self, MachineMemory};
use crate::ports::{LocalPorts, local_ports};
use crate::proc_root::ProcRoot;
use crate::slabinfo::{self, SlabCaches};
use crate::sockstat;
use crate::status::{self, Capability, Status};
use crate::text::number;

/// The limits that connections may reach. Those of the network belong to the calling thread's
/// network namespace.
#[derive(Clone, Debug)]
pub struct MachineLimits {
    /// CPUs that the process may use.
    pub cpus: u64,
    /// Hard limit of fds of the process, to which throng raises its soft limit; for another
    /// program, its soft limit. `None` is unlimited.
    pub fds_hard: Fact<Option<u64>>,
    /// Largest size of an fd table.
    pub nr_open: Fact<u64>,
    /// True if each core can have an fd table of its own.
    pub private_fds: Fact<bool>,
    /// Capabilities of the process.
    pub status: Fact<Status>,
    /// Open files of the machine.
    pub files: Fact<FileUse>,
    /// Threads that can still be created, and the name of the limit.
    pub threads: Fact<(u64, &'static str)>,
    /// Memory of the machine.
    pub memory: Fact<MachineMemory>,
    /// Memory left in the tightest control group; `None` is unlimited.
    pub cgroup_memory: Fact<Option<cgroup::MemoryRoom>>,
    /// Sizes of the kernel's objects.
    pub slabs: Fact<SlabCaches>,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// [`Limit::TCP_MEMORY`], in pages.
    pub tcp_mem: Fact<[u64; 3]>,
    /// Pages that TCP's buffers use now.
    pub tcp_mem_used_pages: Fact<u64>,
    /// Watches of all epoll instances of one user.
    pub epoll_watches_max: Fact<u64>,
    /// Connection tracking, or `None` where connections are not tracked.
    pub conntrack: Fact<Option<Conntrack>>,
    /// [`Limit::SOMAXCONN`].
    pub backlog_max: Fact<u64>,
    /// [`Limit::SYN_BACKLOG`].
    pub syn_backlog_max: Fact<u64>,
    /// [`Limit::SYNCOOKIES`].
    pub syncookies: Fact<u64>,
    /// [`Limit::TCP_HASH`], in buckets.
    pub hash_buckets: Fact<u64>,
    /// [`Limit::TIME_WAIT`].
    pub time_wait_max: Fact<u64>,
    /// Ports that the kernel may choose.
    pub local_ports: Fact<LocalPorts>,
    /// Listeners.
    pub listeners: Fact<Vec<ListenerState>>,
}

/// Connection tracking of a namespace that tracks connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conntrack {
    /// Entries of this network namespace.
    pub count: u64,
    /// Most entries of each namespace.
    pub max: u64,
}

impl MachineLimits {
    /// Reads the limits for the process `pid`. If `root` is the running machine, it also raises
    /// this process's soft limit of fds to the hard one, as every throng program does, and tries
    /// what cannot be read: whether a thread can have its own fd table, and whether connections are
    /// tracked.
    pub fn read(root: &ProcRoot, pid: u32) -> Self {
        let sysctl = |limit: Limit| positive(root.sysctl(limit.name()), limit.name());
        let status = status::status(root, pid);
        Self {
            cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64),
            fds_hard: fds_hard(root, pid),
            nr_open: sysctl(Limit::FDS_CEILING),
            private_fds: if_live(root, "unshare(CLONE_FILES)", || {
                Fact::Known(is_throng(root, pid) && fdtable::can_be_private().is_ok())
            }),
            threads: threads(root, pid, &status),
            status,
            files: root.read(FILE_NR_PATH, parse_file_nr),
            memory: root.read(meminfo::PATH, meminfo::parse),
            cgroup_memory: cgroup::memory_room(root, pid),
            slabs: root.read(slabinfo::PATH, slabinfo::parse),
            page_bytes: meminfo::PAGE_BYTES,
            tcp_mem: root
                .sysctl_list::<3>(Limit::TCP_MEMORY.name())
                .map(|pages| pages.map(|pages| u64::try_from(pages).unwrap_or(0))),
            tcp_mem_used_pages: root
                .read("proc/thread-self/net/sockstat", sockstat::parse)
                .map(|stat| stat.tcp_mem_pages),
            epoll_watches_max: sysctl(Limit::EPOLL_WATCHES),
            conntrack: tracked(root),
            backlog_max: sysctl(Limit::SOMAXCONN),
            syn_backlog_max: sysctl(Limit::SYN_BACKLOG),
            syncookies: sysctl(Limit::SYNCOOKIES),
            // A namespace that uses the first namespace's table reports a negative number.
            hash_buckets: root.sysctl(Limit::TCP_HASH.name()).map(i64::unsigned_abs),
            time_wait_max: sysctl(Limit::TIME_WAIT),
            local_ports: local_ports(root),
            listeners: if_live(root, "sock_diag", || ListenerReader::default().listeners()),
        }
    }

    /// Reports whether the process has `capability`; false if that is not known.
    pub fn may(&self, capability: Capability) -> bool {
        self.status.known().is_some_and(|status| status.has(capability))
    }
}

/// Reports whether a process is throng. Other programs have one fd table, and keep the limit that
/// they started with.
fn is_throng(root: &ProcRoot, pid: u32) -> bool {
    let is_named = |name: &String| name.trim_end() == "throng";
    pid == std::process::id()
        || root.text(&format!("proc/{pid}/comm")).known().is_some_and(is_named)
}

/// Returns the limit of fds. The kernel answers `getrlimit` even if `/proc` is hidden.
fn fds_hard(root: &ProcRoot, pid: u32) -> Fact<Option<u64>> {
    let own = root.is_live() && pid == std::process::id();
    let raised = own.then(fdtable::raise_limit);
    match (limits::limits(root, pid), raised) {
        (Fact::Known(limits), _) if root.is_live() && !is_throng(root, pid) => {
            Fact::Known(limits.open_files.soft)
        }
        (Fact::Known(limits), _) => Fact::Known(limits.open_files.hard),
        (Fact::Unknown(_), Some(usize::MAX)) => Fact::Known(None),
        (Fact::Unknown(_), Some(limit)) => Fact::Known(Some(limit as u64)),
        (Fact::Unknown(why), None) => Fact::Unknown(why),
    }
}

/// Returns the smallest number that the user, the machine and the control groups allow. Unreadable
/// limits do not count, unless all are unreadable.
fn threads(root: &ProcRoot, pid: u32, status: &Fact<Status>) -> Fact<(u64, &'static str)> {
    let mut free = Vec::new();
    let running = root.read("proc/loadavg", parse_threads);
    let name = Limit::THREADS.name();
    let machine = positive(root.sysctl(name), name);
    let unread = machine.why().or(running.why()).cloned();
    if let (Some(max), Some(running)) = (machine.known(), running.known()) {
        free.push((max.saturating_sub(*running), name));
    }
    let exempt = status.known().is_some_and(|s| {
        s.uid == 0 || s.has(Capability::SysResource) || s.has(Capability::SysAdmin)
    });
    let user = limits::limits(root, pid).map(|limits| limits.processes.soft);
    if let (Some(Some(max)), false) = (user.known(), exempt) {
        let running = status.known().map_or(0, |status| threads_of(root, status.uid));
        free.push((max.saturating_sub(running), "RLIMIT_NPROC"));
    }
    if let Some(Some(pids)) = cgroup::pids(root, pid).known() {
        free.push((pids.left(), "the control group's pids.max"));
    }
    match (free.into_iter().min(), unread) {
        (Some(least), _) => Fact::Known(least),
        (None, Some(why)) => Fact::Unknown(why),
        (None, None) => Fact::Unknown(Unknown::new(name, Reason::Missing)),
    }
}

/// Returns the threads of a user, as far as they are visible here.
fn threads_of(root: &ProcRoot, uid: u64) -> u64 {
    let names = root.names("proc").into_result().unwrap_or_default();
    let pids = names.iter().filter_map(|name| name.parse().ok());
    let all = pids.filter_map(|pid| status::status(root, pid).known().cloned());
    all.filter(|status| status.uid == uid).map(|status| status.threads).sum()
}

/// Returns the state of connection tracking. No file says whether this namespace tracks
/// connections: the module may be loaded without a rule here. An entry proves it; without entries,
/// a datagram on this machine's own loopback creates one.
fn tracked(root: &ProcRoot) -> Fact<Option<Conntrack>> {
    let count = || root.read(conntrack::COUNT_PATH, conntrack::parse_count);
    let now = match count() {
        Fact::Known(0) if root.is_live() => {
            let _ = send_to_self();
            count()
        }
        now => now,
    };
    match now {
        Fact::Known(0) => Fact::Known(None),
        Fact::Known(count) => root
            .read(conntrack::MAX_PATH, conntrack::parse_count)
            .map(|max| Some(Conntrack { count, max })),
        Fact::Unknown(Unknown { reason: Reason::Missing, .. }) if procfs_is_there(root) => {
            Fact::Known(None)
        }
        Fact::Unknown(why) => Fact::Unknown(why),
    }
}

/// Sends one datagram from this machine to itself.
fn send_to_self() -> std::io::Result<()> {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
    socket.send_to(&[0], socket.local_addr()?).map(drop)
}

/// Reports whether `/proc/sys` is visible: only then does a module's missing file mean that the
/// module is not loaded.
fn procfs_is_there(root: &ProcRoot) -> bool {
    root.sysctl(Limit::SOMAXCONN.name()).known().is_some()
}

/// Runs `probe` if `root` is the running machine.
fn if_live<T>(root: &ProcRoot, source: &str, probe: impl FnOnce() -> Fact<T>) -> Fact<T> {
    if root.is_live() {
        probe()
    } else {
        let why = "not possible for a recorded machine".to_owned();
        Fact::Unknown(Unknown::new(source, Reason::Failed(why)))
    }
}

/// Returns the fact as a number from 0.
fn positive(fact: Fact<i64>, name: &str) -> Fact<u64> {
    match fact.map(u64::try_from) {
        Fact::Known(Ok(value)) => Fact::Known(value),
        Fact::Known(Err(_)) => Fact::Unknown(Unknown::new(name, ParseFailure("a number from 0"))),
        Fact::Unknown(why) => Fact::Unknown(why),
    }
}

/// Parses the threads of the machine from `/proc/loadavg`, such as `0.50 0.61 0.40 2/317 4242`.
pub fn parse_threads(text: &str) -> Result<u64, ParseFailure> {
    let word = text.split_ascii_whitespace().nth(3).and_then(|word| word.split_once('/'));
    number(word.ok_or(ParseFailure("running and existing threads"))?.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded_root;

    #[test]
    fn a_recorded_machine_is_read_but_for_live_probes() {
        let found = MachineLimits::read(&recorded_root("linux-6.18"), 4242);
        assert_eq!(found.fds_hard, Fact::Known(Some(20_000)));
        assert_eq!(found.tcp_mem, Fact::Known([287_832, 383_779, 575_664]));
        assert_eq!(found.cgroup_memory, Fact::Known(None));
        assert_eq!(found.conntrack, Fact::Known(None), "the module is loaded and has no entry");
        assert!(found.private_fds.known().is_none() && found.listeners.known().is_none());
    }

    #[test]
    fn threads_and_their_limits_are_read() {
        assert_eq!(parse_threads("0.5 0.6 0.4 2/317 4242\n"), Ok(317));
        assert!(parse_threads("0.5 0.6\n").is_err());
        assert_eq!(threads_of(&recorded_root("linux-6.18"), 0), 2);
        assert_eq!(threads_of(&recorded_root("linux-6.18"), 10_001), 0);
    }
}
