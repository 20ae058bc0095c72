//! All metrics of a machine that a run records, each in one row: constant, name in the run file,
//! kind, unit and meaning.
//!
//! The sampler reads what the table names, rules and labs query it, and `docs/run-file.md` lists
//! it. A constant is the name in capitals, with `_` between the words: `TcpExt.ListenDrops` is
//! [`Metric::TCPEXT_LISTEN_DROPS`].

use std::fmt;

use crate::Endpoint;

/// A counter or gauge of a machine, a network namespace or a control group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    name: &'static str,
    kind: MetricKind,
    unit: MetricUnit,
    doc: &'static str,
}

/// A metric of a program of the run: one for the server, one for the generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessMetric {
    /// The server's.
    pub server: Metric,
    /// The generator's.
    pub client: Metric,
}

/// The way in which a metric changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows, until the machine or the process starts again.
    Counter,
    /// Has a value at the moment of the sample.
    Gauge,
    /// The largest since the sample before.
    Maximum,
}

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricUnit {
    /// A plain number of what the metric counts.
    Number,
    /// Bytes.
    Bytes,
    /// Pages of memory.
    Pages,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Thousandths of the time since the sample before.
    Permille,
    /// Thousandths of a CPU.
    Millicpus,
}

impl Metric {
    /// Returns the name in the run file.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Returns the way in which it changes.
    pub const fn kind(self) -> MetricKind {
        self.kind
    }

    /// Returns the unit.
    pub const fn unit(self) -> MetricUnit {
        self.unit
    }

    /// Returns the meaning, in one line.
    pub fn doc(self) -> &'static str {
        self.doc.trim_start()
    }

    /// Returns the metric of a name in the run file, such as one that a lab's file gives.
    pub fn named(name: &str) -> Option<Self> {
        let programs = ProcessMetric::all().flat_map(|metric| [metric.server, metric.client]);
        Self::all().chain(programs).find(|metric| metric.name == name)
    }

    /// Returns all metrics but those of the two programs.
    pub fn all() -> impl Iterator<Item = Self> {
        [TCP, TCP_EXT, SYSCTLS, OTHERS].into_iter().flatten().copied()
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl ProcessMetric {
    /// Returns the metric of one program.
    pub const fn of(self, program: Endpoint) -> Metric {
        match program {
            Endpoint::Client => self.client,
            Endpoint::Server => self.server,
        }
    }

    /// Returns the metrics that each program has.
    pub fn all() -> impl Iterator<Item = Self> {
        PROCESS.iter().copied()
    }
}

/// Writes the word of `docs/run-file.md`.
impl fmt::Display for MetricKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Maximum => "maximum",
        })
    }
}

/// Writes the word of `docs/run-file.md`.
impl fmt::Display for MetricUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number => "",
            Self::Bytes => "bytes",
            Self::Pages => "pages",
            Self::Us => "µs",
            Self::Ms => "ms",
            Self::Permille => "thousandths of the time",
            Self::Millicpus => "thousandths of a CPU",
        })
    }
}

/// Declares metrics, and the list of them.
macro_rules! metrics {
    ($(#[$meta:meta])* $list:ident {
        $($(#[doc = $doc:literal])+ $constant:ident: $kind:ident, $name:literal, $unit:ident;)+
    }) => {
        impl Metric {
            $($(#[doc = $doc])+ pub const $constant: Self = Self {
                name: $name,
                kind: MetricKind::$kind,
                unit: MetricUnit::$unit,
                doc: concat!($($doc),+),
            };)+
        }
        $(#[$meta])*
        pub const $list: &[Metric] = &[$(Metric::$constant),+];
    };
}

/// Declares metrics of the two programs.
macro_rules! process_metrics {
    ($($(#[doc = $doc:literal])+ $constant:ident: $kind:ident, $name:literal, $unit:ident;)+) => {
        impl ProcessMetric {
            $($(#[doc = $doc])+ pub const $constant: Self = Self {
                server: process_metrics!(@ "server", $name, $kind, $unit, concat!($($doc),+)),
                client: process_metrics!(@ "client", $name, $kind, $unit, concat!($($doc),+)),
            };)+
        }
        const PROCESS: &[ProcessMetric] = &[$(ProcessMetric::$constant),+];
    };
    (@ $program:literal, $name:literal, $kind:ident, $unit:ident, $doc:expr) => {
        Metric {
            name: concat!("process.", $program, ".", $name),
            kind: MetricKind::$kind,
            unit: MetricUnit::$unit,
            doc: $doc,
        }
    };
}

metrics! {
    /// Counters of `Ip` and `Tcp` in `/proc/net/snmp` that are recorded.
    TCP {
        /// Packets of IPv4 that could not be sent: there is no route to their address.
        IP_OUT_NO_ROUTES: Counter, "Ip.OutNoRoutes", Number;
        /// Connects that began here.
        TCP_ACTIVE_OPENS: Counter, "Tcp.ActiveOpens", Number;
        /// Handshakes that failed, at either end.
        TCP_ATTEMPT_FAILS: Counter, "Tcp.AttemptFails", Number;
        /// Connections in ESTABLISHED or CLOSE-WAIT.
        TCP_CURR_ESTAB: Gauge, "Tcp.CurrEstab", Number;
        /// Established connections that a reset ended.
        TCP_ESTAB_RESETS: Counter, "Tcp.EstabResets", Number;
        /// Segments with an error, such as a bad checksum.
        TCP_IN_ERRS: Counter, "Tcp.InErrs", Number;
        /// Segments received.
        TCP_IN_SEGS: Counter, "Tcp.InSegs", Number;
        /// Resets sent.
        TCP_OUT_RSTS: Counter, "Tcp.OutRsts", Number;
        /// Segments sent, without those that only repeat bytes.
        TCP_OUT_SEGS: Counter, "Tcp.OutSegs", Number;
        /// Connections that a listener took part in.
        TCP_PASSIVE_OPENS: Counter, "Tcp.PassiveOpens", Number;
        /// Segments sent again: the network loses or delays them.
        TCP_RETRANS_SEGS: Counter, "Tcp.RetransSegs", Number;
    }
}

metrics! {
    /// Counters of `TcpExt` in `/proc/net/netstat` that are recorded: every loss of a connection or
    /// segment that a rule names.
    TCP_EXT {
        /// Resets received for half-open connections.
        TCPEXT_EMBRYONIC_RSTS: Counter, "TcpExt.EmbryonicRsts", Number;
        /// SYNs and final ACKs of handshakes that a listener dropped, for any reason.
        TCPEXT_LISTEN_DROPS: Counter, "TcpExt.ListenDrops", Number;
        /// Those of them that were dropped because an accept queue was full.
        TCPEXT_LISTEN_OVERFLOWS: Counter, "TcpExt.ListenOverflows", Number;
        /// Segments out of order that were discarded because a receive buffer was full.
        TCPEXT_OFO_PRUNED: Counter, "TcpExt.OfoPruned", Number;
        /// Times that a receive buffer was full and was made smaller.
        TCPEXT_PRUNE_CALLED: Counter, "TcpExt.PruneCalled", Number;
        /// Received segments that were discarded because a receive buffer was full.
        TCPEXT_RCV_PRUNED: Counter, "TcpExt.RcvPruned", Number;
        /// SYN cookies that came back wrong.
        TCPEXT_SYNCOOKIES_FAILED: Counter, "TcpExt.SyncookiesFailed", Number;
        /// SYN cookies that came back.
        TCPEXT_SYNCOOKIES_RECV: Counter, "TcpExt.SyncookiesRecv", Number;
        /// SYNs that were answered with a cookie.
        TCPEXT_SYNCOOKIES_SENT: Counter, "TcpExt.SyncookiesSent", Number;
        /// Resets that could not be sent for lack of memory.
        TCPEXT_TCP_ABORT_FAILED: Counter, "TcpExt.TCPAbortFailed", Number;
        /// Connections reset because they were closed with unread bytes.
        TCPEXT_TCP_ABORT_ON_CLOSE: Counter, "TcpExt.TCPAbortOnClose", Number;
        /// Connections reset because bytes arrived after they were closed.
        TCPEXT_TCP_ABORT_ON_DATA: Counter, "TcpExt.TCPAbortOnData", Number;
        /// Connections reset because they stayed too long in FIN-WAIT-2.
        TCPEXT_TCP_ABORT_ON_LINGER: Counter, "TcpExt.TCPAbortOnLinger", Number;
        /// Connections aborted because TCP had no memory, or too many orphans.
        TCPEXT_TCP_ABORT_ON_MEMORY: Counter, "TcpExt.TCPAbortOnMemory", Number;
        /// Connections given up after many retransmits.
        TCPEXT_TCP_ABORT_ON_TIMEOUT: Counter, "TcpExt.TCPAbortOnTimeout", Number;
        /// Segments dropped because a socket's backlog was full while its process used the socket.
        TCPEXT_TCP_BACKLOG_DROP: Counter, "TcpExt.TCPBacklogDrop", Number;
        /// Handshakes whose first bytes did not arrive in time (`TCP_DEFER_ACCEPT`).
        TCPEXT_TCP_DEFER_ACCEPT_DROP: Counter, "TcpExt.TCPDeferAcceptDrop", Number;
        /// Retransmits that were lost too.
        TCPEXT_TCP_LOST_RETRANSMIT: Counter, "TcpExt.TCPLostRetransmit", Number;
        /// Times that TCP came under memory pressure.
        TCPEXT_TCP_MEMORY_PRESSURES: Counter, "TcpExt.TCPMemoryPressures", Number;
        /// Time under memory pressure, added when the pressure ends.
        TCPEXT_TCP_MEMORY_PRESSURES_CHRONO: Counter, "TcpExt.TCPMemoryPressuresChrono", Ms;
        /// Handshakes that could not move to another listener when theirs was closed.
        TCPEXT_TCP_MIGRATE_REQ_FAILURE: Counter, "TcpExt.TCPMigrateReqFailure", Number;
        /// Segments dropped for a TTL below the socket's least.
        TCPEXT_TCP_MIN_TTL_DROP: Counter, "TcpExt.TCPMinTTLDrop", Number;
        /// Segments out of order that were dropped for lack of memory.
        TCPEXT_TCP_OFO_DROP: Counter, "TcpExt.TCPOFODrop", Number;
        /// Segments merged to save memory in a full receive buffer.
        TCPEXT_TCP_RCV_COLLAPSED: Counter, "TcpExt.TCPRcvCollapsed", Number;
        /// Segments in order that were dropped for lack of memory.
        TCPEXT_TCP_RCV_Q_DROP: Counter, "TcpExt.TCPRcvQDrop", Number;
        /// SYNs that found a SYN queue full and were answered with a cookie.
        TCPEXT_TCP_REQ_Q_FULL_DO_COOKIES: Counter, "TcpExt.TCPReqQFullDoCookies", Number;
        /// SYNs that were dropped because a SYN queue was full.
        TCPEXT_TCP_REQ_Q_FULL_DROP: Counter, "TcpExt.TCPReqQFullDrop", Number;
        /// Retransmits that could not be sent.
        TCPEXT_TCP_RETRANS_FAIL: Counter, "TcpExt.TCPRetransFail", Number;
        /// Retransmits not sent because the first copy was still in this machine's queues.
        TCPEXT_TCP_SPURIOUS_RTX_HOST_QUEUES: Counter, "TcpExt.TCPSpuriousRtxHostQueues", Number;
        /// SYNs and answers to SYNs that were sent again.
        TCPEXT_TCP_SYN_RETRANS: Counter, "TcpExt.TCPSynRetrans", Number;
        /// Connections that skipped TIME-WAIT because too many were in it.
        TCPEXT_TCP_TIME_WAIT_OVERFLOW: Counter, "TcpExt.TCPTimeWaitOverflow", Number;
        /// Retransmission timers that expired without an answer.
        TCPEXT_TCP_TIMEOUTS: Counter, "TcpExt.TCPTimeouts", Number;
        /// Times that a connection announced a window of zero.
        TCPEXT_TCP_TO_ZERO_WINDOW_ADV: Counter, "TcpExt.TCPToZeroWindowAdv", Number;
        /// Times that a connection wanted to announce a window of zero.
        TCPEXT_TCP_WANT_ZERO_WINDOW_ADV: Counter, "TcpExt.TCPWantZeroWindowAdv", Number;
        /// Sends refused because the unacknowledged bytes were too many.
        TCPEXT_TCP_WQUEUE_TOO_BIG: Counter, "TcpExt.TCPWqueueTooBig", Number;
        /// Segments dropped because the receive window was zero.
        TCPEXT_TCP_ZERO_WINDOW_DROP: Counter, "TcpExt.TCPZeroWindowDrop", Number;
        /// Connections that left TIME-WAIT by its timer.
        TCPEXT_TW: Counter, "TcpExt.TW", Number;
        /// Connections that left TIME-WAIT because a time stamp or a reset ended it.
        TCPEXT_TW_KILLED: Counter, "TcpExt.TWKilled", Number;
        /// Connections in TIME-WAIT whose ports a new connection took.
        TCPEXT_TW_RECYCLED: Counter, "TcpExt.TWRecycled", Number;
    }
}

metrics! {
    /// Sysctls of a single number: each is read from the file of its name, once, and repeated in
    /// every sample.
    SYSCTLS {
        /// Watches that all epoll instances of one user may have.
        SYSCTL_FS_EPOLL_MAX_USER_WATCHES: Gauge, "sysctl.fs.epoll.max_user_watches", Number;
        /// Packets that wait for one CPU at most.
        SYSCTL_NET_CORE_NETDEV_MAX_BACKLOG: Gauge, "sysctl.net.core.netdev_max_backlog", Number;
        /// Largest backlog of a listener.
        SYSCTL_NET_CORE_SOMAXCONN: Gauge, "sysctl.net.core.somaxconn", Number;
        /// Whether a full accept queue resets connections.
        SYSCTL_NET_IPV4_TCP_ABORT_ON_OVERFLOW:
            Gauge, "sysctl.net.ipv4.tcp_abort_on_overflow", Number;
        /// Buckets of the table of TCP connections.
        SYSCTL_NET_IPV4_TCP_EHASH_ENTRIES: Gauge, "sysctl.net.ipv4.tcp_ehash_entries", Number;
        /// Most TCP sockets that no process holds.
        SYSCTL_NET_IPV4_TCP_MAX_ORPHANS: Gauge, "sysctl.net.ipv4.tcp_max_orphans", Number;
        /// Half-open connections of one listener, without SYN cookies.
        SYSCTL_NET_IPV4_TCP_MAX_SYN_BACKLOG: Gauge, "sysctl.net.ipv4.tcp_max_syn_backlog", Number;
        /// Most connections in TIME-WAIT.
        SYSCTL_NET_IPV4_TCP_MAX_TW_BUCKETS: Gauge, "sysctl.net.ipv4.tcp_max_tw_buckets", Number;
        /// Whether SYN cookies are sent: 0 never, 1 when a SYN queue is full, 2 always.
        SYSCTL_NET_IPV4_TCP_SYNCOOKIES: Gauge, "sysctl.net.ipv4.tcp_syncookies", Number;
        /// Whether a connect may take the port of a connection in TIME-WAIT; 2 is for loopback.
        SYSCTL_NET_IPV4_TCP_TW_REUSE: Gauge, "sysctl.net.ipv4.tcp_tw_reuse", Number;
    }
}

metrics! {
    /// Metrics of every other source.
    OTHERS {
        /// Ports of the range that are not reserved.
        SYSCTL_NET_IPV4_LOCAL_PORTS: Gauge, "sysctl.net.ipv4.local_ports", Number;
        /// First port of the range from which the kernel chooses source ports.
        SYSCTL_NET_IPV4_LOCAL_PORT_FIRST: Gauge, "sysctl.net.ipv4.local_port_first", Number;
        /// Last port of that range.
        SYSCTL_NET_IPV4_LOCAL_PORT_LAST: Gauge, "sysctl.net.ipv4.local_port_last", Number;
        /// Memory of TCP above which it is under pressure: the second number of `tcp_mem`.
        SYSCTL_NET_IPV4_TCP_MEM_PRESSURE_PAGES:
            Gauge, "sysctl.net.ipv4.tcp_mem_pressure_pages", Pages;
        /// Most memory of TCP: the third number of `tcp_mem`.
        SYSCTL_NET_IPV4_TCP_MEM_MAX_PAGES: Gauge, "sysctl.net.ipv4.tcp_mem_max_pages", Pages;
        /// Listening sockets of the target's port.
        LISTENER_COUNT: Gauge, "listener.count", Number;
        /// Connections that wait to be accepted, over all of them.
        LISTENER_ACCEPT_QUEUE: Gauge, "listener.accept_queue", Number;
        /// Connections that wait at the fullest of them.
        LISTENER_ACCEPT_QUEUE_MOST: Gauge, "listener.accept_queue_most", Number;
        /// Those at which connections wait, while another of the same address has none.
        LISTENER_BEHIND: Gauge, "listener.behind", Number;
        /// Smallest backlog of them.
        LISTENER_BACKLOG: Gauge, "listener.backlog", Number;
        /// Those whose accept queue is full.
        LISTENER_FULL: Gauge, "listener.full", Number;
        /// SYNs and final ACKs of handshakes that they dropped, for any reason.
        LISTENER_DROPS: Counter, "listener.drops", Number;
        /// Their connections in SYN-RECV; sampled seldom, and not at all above 500,000 sockets.
        LISTENER_SYN_RECV: Gauge, "listener.syn_recv", Number;
        /// Accepted connections on their ports whose bytes the server has not begun to read since
        /// the count before; sampled seldom, and not at all above 500,000 sockets.
        LISTENER_UNREAD: Gauge, "listener.unread", Number;
        /// Accepted connections on their ports that the client has closed and the server has not
        /// (CLOSE_WAIT); sampled with `listener.unread`.
        LISTENER_CLOSE_WAIT: Gauge, "listener.close_wait", Number;
        /// Established connections on their ports; sampled seldom, and not at all above 500,000
        /// sockets; by `throng doctor --watch --port` alone.
        LISTENER_ESTABLISHED: Gauge, "listener.established", Number;
        /// Sockets of every kind that processes hold.
        SOCKSTAT_USED: Gauge, "sockstat.used", Number;
        /// TCP sockets of IPv4 that listen or are connected.
        SOCKSTAT_TCP_INUSE: Gauge, "sockstat.tcp.inuse", Number;
        /// TCP sockets that no process holds and that still have data to send.
        SOCKSTAT_TCP_ORPHAN: Gauge, "sockstat.tcp.orphan", Number;
        /// Connections in TIME-WAIT, with those of IPv6.
        SOCKSTAT_TCP_TW: Gauge, "sockstat.tcp.tw", Number;
        /// TCP sockets in any state.
        SOCKSTAT_TCP_ALLOC: Gauge, "sockstat.tcp.alloc", Number;
        /// Memory in TCP's buffers, which `tcp_mem` limits.
        SOCKSTAT_TCP_MEM_PAGES: Gauge, "sockstat.tcp.mem_pages", Pages;
        /// TCP sockets of IPv6 that listen or are connected.
        SOCKSTAT_TCP6_INUSE: Gauge, "sockstat.tcp6.inuse", Number;
        /// Packets that the CPUs received.
        SOFTNET_PROCESSED: Counter, "softnet.processed", Number;
        /// Packets dropped because a CPU's backlog was full.
        SOFTNET_DROPPED: Counter, "softnet.dropped", Number;
        /// Times that a CPU stopped to receive with packets left.
        SOFTNET_TIME_SQUEEZE: Counter, "softnet.time_squeeze", Number;
        /// Packets that the interfaces received, loopback included.
        DEV_RX_PACKETS: Counter, "dev.rx_packets", Number;
        /// Packets that the interfaces sent.
        DEV_TX_PACKETS: Counter, "dev.tx_packets", Number;
        /// Received packets that the interfaces dropped.
        DEV_RX_DROPPED: Counter, "dev.rx_dropped", Number;
        /// Packets to send that the interfaces dropped.
        DEV_TX_DROPPED: Counter, "dev.tx_dropped", Number;
        /// Errors of the interfaces while they received.
        DEV_RX_ERRORS: Counter, "dev.rx_errors", Number;
        /// Errors of the interfaces while they sent.
        DEV_TX_ERRORS: Counter, "dev.tx_errors", Number;
        /// Connections that netfilter tracks.
        CONNTRACK_COUNT: Gauge, "conntrack.count", Number;
        /// Most connections that it can track.
        CONNTRACK_MAX: Gauge, "conntrack.max", Number;
        /// Packets dropped because its table was full.
        CONNTRACK_DROPPED: Counter, "conntrack.dropped", Number;
        /// Entries removed early to make room.
        CONNTRACK_EARLY_DROPPED: Counter, "conntrack.early_dropped", Number;
        /// New connections that could not be added.
        CONNTRACK_INSERT_FAILED: Counter, "conntrack.insert_failed", Number;
        /// Open files of all processes, sockets included.
        FILES_OPEN: Gauge, "files.open", Number;
        /// Most open files (`fs.file-max`).
        FILES_MAX: Gauge, "files.max", Number;
        /// Memory of the machine.
        MEMORY_TOTAL_BYTES: Gauge, "memory.total_bytes", Bytes;
        /// Memory that programs can still use without swapping.
        MEMORY_AVAILABLE_BYTES: Gauge, "memory.available_bytes", Bytes;
        /// Memory in the kernel's object caches.
        MEMORY_SLAB_BYTES: Gauge, "memory.slab_bytes", Bytes;
        /// Memory in use: all but free memory and copies of files.
        MEMORY_USED_BYTES: Gauge, "memory.used_bytes", Bytes;
        /// Time in which a task waited for a CPU.
        PRESSURE_CPU_SOME_US: Counter, "pressure.cpu.some_us", Us;
        /// Time in which all tasks waited for a CPU.
        PRESSURE_CPU_FULL_US: Counter, "pressure.cpu.full_us", Us;
        /// Time in which a task waited for memory.
        PRESSURE_MEMORY_SOME_US: Counter, "pressure.memory.some_us", Us;
        /// Time in which all tasks waited for memory.
        PRESSURE_MEMORY_FULL_US: Counter, "pressure.memory.full_us", Us;
        /// Time in which a task waited for a disk.
        PRESSURE_IO_SOME_US: Counter, "pressure.io.some_us", Us;
        /// Time in which all tasks waited for a disk.
        PRESSURE_IO_FULL_US: Counter, "pressure.io.full_us", Us;
        /// Time in soft interrupts, where packets are received, over all CPUs; the part that
        /// interrupted a thread is in that thread's time too.
        CPU_SOFTIRQ_US: Counter, "cpu.softirq_us", Us;
        /// Tightest CPU quota of the control groups.
        CGROUP_CPU_LIMIT_MILLICPUS: Gauge, "cgroup.cpu.limit_millicpus", Millicpus;
        /// Times that a quota was used up before its period ended.
        CGROUP_CPU_THROTTLED: Counter, "cgroup.cpu.throttled", Number;
        /// Time that threads waited for a quota.
        CGROUP_CPU_THROTTLED_US: Counter, "cgroup.cpu.throttled_us", Us;
        /// Tightest memory limit of the control groups.
        CGROUP_MEMORY_LIMIT_BYTES: Gauge, "cgroup.memory.limit_bytes", Bytes;
        /// Memory of the process's own group, with the kernel's memory for its sockets.
        CGROUP_MEMORY_USED_BYTES: Gauge, "cgroup.memory.used_bytes", Bytes;
        /// Times that a memory limit was hit.
        CGROUP_MEMORY_LIMIT_HITS: Counter, "cgroup.memory.limit_hits", Number;
        /// Processes killed at a memory limit.
        CGROUP_MEMORY_OOM_KILLS: Counter, "cgroup.memory.oom_kills", Number;
        /// Cost of this sample.
        DOCTOR_SAMPLE_US: Gauge, "doctor.sample_us", Us;
        /// Cost of counting half-open connections; absent where they were not counted.
        DOCTOR_SYN_RECV_US: Gauge, "doctor.syn_recv_us", Us;
    }
}

process_metrics! {
    /// Processes of the program: workers that share its listener, and the children of all of them,
    /// at most 64.
    PROCESSES: Gauge, "processes", Number;
    /// Processes that have ended while the first one ran on.
    PROCESSES_ENDED: Counter, "processes_ended", Number;
    /// Workers: the process that uses the most CPU time, and those that do the same. They run the
    /// same program, and hold the listener as it does, or have the same parent. Known while it uses
    /// more than 0.8 CPUs.
    WORKERS: Gauge, "workers", Number;
    /// Workers that use less than 0.1 CPUs; known where `workers` is.
    WORKERS_IDLE: Gauge, "workers_idle", Number;
    /// Processes that a signal or a debugger has stopped (state T).
    STOPPED: Gauge, "stopped", Number;
    /// Processes that wait in the kernel for a disk, or are frozen (state D).
    UNINTERRUPTIBLE: Gauge, "uninterruptible", Number;
    /// CPU time of all processes, in steps of 10 ms.
    CPU_US: Counter, "cpu_us", Us;
    /// Resident memory of all processes; shared memory counts more than once.
    RSS_BYTES: Gauge, "rss_bytes", Bytes;
    /// CPU time that all processes used in the `answer_gap` of this interval; absent where there is
    /// none.
    GAP_CPU_US: Gauge, "gap_cpu_us", Us;
    /// Longest time in which it had a CPU nearly all the time; sampled every 20 ms.
    BUSY_MS_MOST: Maximum, "busy_ms_most", Ms;
    /// Longest time in which it had no CPU; sampled every 20 ms.
    IDLE_MS_MOST: Maximum, "idle_ms_most", Ms;
    /// Threads of the program.
    THREADS: Gauge, "threads", Number;
    /// Time of its present threads on a CPU.
    RUN_US: Counter, "run_us", Us;
    /// Time for which its present threads waited for a CPU.
    RUN_DELAY_US: Counter, "run_delay_us", Us;
    /// Run time of its busiest thread.
    BUSIEST_THREAD_PERMILLE: Gauge, "busiest_thread_permille", Permille;
    /// Time in which its most delayed thread was ready to run and had no CPU.
    MOST_DELAYED_THREAD_PERMILLE: Gauge, "most_delayed_thread_permille", Permille;
    /// Threads that ran for more than 800 thousandths of the time.
    THREADS_BUSY: Gauge, "threads_busy", Number;
    /// Run time of its threads that collect garbage, by their names, of all together.
    COLLECTOR_PERMILLE: Gauge, "collector_permille", Permille;
    /// CPUs that it may run on (`taskset`, cpusets).
    CPUS_ALLOWED: Gauge, "cpus_allowed", Number;
    /// Time for which those CPUs were busy with any program; absent where they are all CPUs of the
    /// machine.
    CPUS_BUSY_US: Counter, "cpus_busy_us", Us;
    /// Time for which those CPUs were idle; absent where they are all CPUs of the machine.
    CPUS_IDLE_US: Counter, "cpus_idle_us", Us;
    /// Time for which the quota of its control groups throttled it.
    THROTTLED_US: Counter, "throttled_us", Us;
    /// Tightest CPU quota of its control groups.
    CPU_LIMIT_MILLICPUS: Gauge, "cpu_limit_millicpus", Millicpus;
    /// Open fds in the table of the first thread, of the process that has the most.
    FDS: Gauge, "fds", Number;
    /// Fds that one of its tables may hold (soft `RLIMIT_NOFILE`).
    FDS_MAX: Gauge, "fds_max", Number;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_there_once() {
        let programs = ProcessMetric::all().flat_map(|metric| [metric.server, metric.client]);
        let mut names: Vec<_> = Metric::all().chain(programs).map(Metric::name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(Metric::named("process.client.cpu_us"), Some(ProcessMetric::CPU_US.client));
        assert_eq!(Metric::named("process.cpu_us"), None);
    }
}
