//! All limits of a machine that connections may reach, each in one row: constant, name, errno, the
//! metrics that move, and what is missing at the limit.
//!
//! The preflight checks them before a run; rules, the watch and error texts name them after it. A
//! finding gets its command from [`Limit::raise`], with the wanted value; the same method with the
//! old value undoes it.

use std::fmt;

use crate::Metric;

/// A limit of a process, of a network namespace or of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    name: &'static str,
    errno: Option<&'static str>,
    metrics: &'static [Metric],
    lack: &'static str,
}

impl Limit {
    /// Returns the name as the system writes it: that of a sysctl, or of a limit of the process.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Returns the symbol of the error with which calls fail at the limit, if they do.
    pub const fn errno(self) -> Option<&'static str> {
        self.errno
    }

    /// Returns the metrics that grow at the limit.
    pub const fn metrics(self) -> &'static [Metric] {
        self.metrics
    }

    /// Returns what is missing at the limit, such as `an fd table was full`.
    pub const fn lack(self) -> &'static str {
        self.lack
    }

    /// Returns the file of a sysctl below `/proc/sys`: `net/core/somaxconn`.
    pub fn path(self) -> String {
        self.name.replace('.', "/")
    }

    /// Returns the command that sets the limit, for the shell or for the whole machine.
    pub fn raise(self, value: impl fmt::Display) -> String {
        match self {
            Self::FDS => format!("ulimit -n {value}"),
            _ => set_sysctl(self.name, &value.to_string()),
        }
    }

    /// Returns all limits.
    pub fn all() -> impl Iterator<Item = Self> {
        LIMITS.iter().copied()
    }

    /// Returns the sysctls among them.
    pub fn sysctls() -> impl Iterator<Item = Self> {
        Self::all().filter(|limit| limit.name.contains('.'))
    }

    /// Returns the limit at which calls fail with this error.
    pub fn of_errno(symbol: &str) -> Option<Self> {
        Self::all().find(|limit| limit.errno == Some(symbol))
    }

    /// Returns the limits at which a metric grows.
    pub fn of_metric(metric: Metric) -> impl Iterator<Item = Self> {
        Self::all().filter(move |limit| limit.metrics.contains(&metric))
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Returns the command that sets a sysctl.
pub fn set_sysctl(name: &str, value: &str) -> String {
    if value.contains([' ', '\t', ',']) || value.is_empty() {
        format!("sysctl -w {name}=\"{value}\"")
    } else {
        format!("sysctl -w {name}={value}")
    }
}

/// Declares limits, and the list of them.
macro_rules! limits {
    ($($(#[$meta:meta])+ $constant:ident: $name:literal $(fails $errno:literal)?
        [$($metric:ident),*], $lack:literal;)+) => {
        impl Limit {
            $($(#[$meta])+ pub const $constant: Self = Self {
                name: $name,
                errno: limits!(@ $($errno)?),
                metrics: &[$(Metric::$metric),*],
                lack: $lack,
            };)+
        }
        const LIMITS: &[Limit] = &[$(Limit::$constant),+];
    };
    (@ $errno:literal) => { Some($errno) };
    (@) => { None };
}

limits! {
    /// Fds in one fd table of a process.
    FDS: "RLIMIT_NOFILE" fails "EMFILE" [], "an fd table was full";
    /// Largest size of an fd table, whatever the process's own limit is.
    FDS_CEILING: "fs.nr_open" [], "no fd table may be larger";
    /// Open files of the whole machine, sockets included.
    FILES: "fs.file-max" fails "ENFILE" [], "the system had no file left";
    /// Threads of the whole machine.
    THREADS: "kernel.threads-max" [], "no thread could start";
    /// Watches of all epoll instances of one user.
    EPOLL_WATCHES: "fs.epoll.max_user_watches" fails "ENOSPC" [], "no epoll watches were left";
    /// Source ports that the kernel may choose.
    PORTS: "net.ipv4.ip_local_port_range" fails "EADDRNOTAVAIL" [], "no port was left";
    /// Ports that the kernel may not choose.
    RESERVED_PORTS: "net.ipv4.ip_local_reserved_ports" [], "the port was not kept free";
    /// Largest backlog of a listener.
    SOMAXCONN: "net.core.somaxconn" [TCPEXT_LISTEN_OVERFLOWS], "an accept queue was full";
    /// Half-open connections of a listener, without SYN cookies.
    SYN_BACKLOG: "net.ipv4.tcp_max_syn_backlog" [TCPEXT_TCP_REQ_Q_FULL_DROP],
        "a SYN queue was full";
    /// Whether the kernel answers SYNs with cookies when a SYN queue is full.
    SYNCOOKIES: "net.ipv4.tcp_syncookies" [TCPEXT_TCP_REQ_Q_FULL_DROP], "a SYN queue was full";
    /// Memory in TCP's buffers, in pages: free of pressure, under pressure, most.
    TCP_MEMORY: "net.ipv4.tcp_mem" fails "ENOMEM"
        [TCPEXT_TCP_ABORT_ON_MEMORY, TCPEXT_TCP_MEMORY_PRESSURES], "TCP had no memory left";
    /// Closed sockets with bytes to send.
    ORPHANS: "net.ipv4.tcp_max_orphans" [TCPEXT_TCP_ABORT_ON_MEMORY],
        "too many sockets were orphans";
    /// Connections in TIME-WAIT.
    TIME_WAIT: "net.ipv4.tcp_max_tw_buckets" [TCPEXT_TCP_TIME_WAIT_OVERFLOW],
        "too many connections were in TIME-WAIT";
    /// Buckets of the table of TCP connections; the kernel sets it at boot, or for a new namespace.
    TCP_HASH: "net.ipv4.tcp_ehash_entries" [], "the table of connections was crowded";
    /// Entries of connection tracking.
    CONNTRACK: "net.netfilter.nf_conntrack_max" [CONNTRACK_DROPPED, CONNTRACK_INSERT_FAILED],
        "the connection tracking table was full";
    /// Received packets that wait for a CPU.
    PACKET_BACKLOG: "net.core.netdev_max_backlog" [SOFTNET_DROPPED],
        "too many packets waited for a CPU";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_sets_the_limit_and_another_value_undoes_it() {
        assert_eq!(Limit::FDS.raise(2_000), "ulimit -n 2000");
        assert_eq!(Limit::SOMAXCONN.raise(4_096), "sysctl -w net.core.somaxconn=4096");
        assert_eq!(
            Limit::PORTS.raise("1024 65535"),
            "sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\""
        );
        assert_eq!(Limit::SOMAXCONN.path(), "net/core/somaxconn");
    }

    #[test]
    fn a_limit_is_found_by_what_shows_it() {
        assert_eq!(Limit::of_errno("ENOSPC"), Some(Limit::EPOLL_WATCHES));
        assert_eq!(Limit::of_errno("ECONNRESET"), None);
        let of: Vec<_> = Limit::of_metric(Metric::TCPEXT_TCP_REQ_Q_FULL_DROP).collect();
        assert_eq!(of, [Limit::SYN_BACKLOG, Limit::SYNCOOKIES]);
    }
}
