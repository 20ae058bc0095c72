//! Facts of one end that do not change during a run.

use serde::{Deserialize, Serialize};

/// Declares the facts that are numbers, each with its name in the intervals. There, the names of a
/// process have its side in the middle: `process.server.fds_max`.
macro_rules! endpoint_facts {
    ($($(#[doc = $doc:literal])* $field:ident = $name:literal,)*) => {
        /// Limits of one end's kernel, network namespace and process. An unknown fact is `None`.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct EndpointFacts {
            $(
                $(#[doc = $doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $field: Option<i64>,
            )*
            /// `net.ipv4.ip_local_reserved_ports`: first and last port of each range.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub reserved_ports: Option<Vec<(u16, u16)>>,
            /// The addresses of the server's listeners.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub listen: Vec<String>,
            /// The backlog that a throng server requested.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub backlog_asked: Option<i64>,
        }

        impl EndpointFacts {
            /// Fills in the unknown numbers by their names in an interval.
            pub fn complete(&mut self, value: impl Fn(&str) -> Option<i64>) {
                $(self.$field = self.$field.or_else(|| value($name));)*
            }

            /// Returns the known numbers with their names in an interval.
            pub fn numbers(&self) -> impl Iterator<Item = (&'static str, i64)> + use<> {
                let all = [$(($name, self.$field)),*];
                all.into_iter().filter_map(|(name, value)| Some((name, value?)))
            }
        }
    };
}

endpoint_facts! {
    /// `net.core.somaxconn`.
    somaxconn = "sysctl.net.core.somaxconn",
    /// `net.core.netdev_max_backlog`.
    netdev_max_backlog = "sysctl.net.core.netdev_max_backlog",
    /// `net.ipv4.tcp_abort_on_overflow`.
    tcp_abort_on_overflow = "sysctl.net.ipv4.tcp_abort_on_overflow",
    /// `net.ipv4.tcp_ehash_entries`: the buckets of the table of sockets.
    tcp_ehash_entries = "sysctl.net.ipv4.tcp_ehash_entries",
    /// `net.ipv4.tcp_max_orphans`.
    tcp_max_orphans = "sysctl.net.ipv4.tcp_max_orphans",
    /// `net.ipv4.tcp_max_syn_backlog`.
    tcp_max_syn_backlog = "sysctl.net.ipv4.tcp_max_syn_backlog",
    /// `net.ipv4.tcp_max_tw_buckets`.
    tcp_max_tw_buckets = "sysctl.net.ipv4.tcp_max_tw_buckets",
    /// The second number of `net.ipv4.tcp_mem`, in pages.
    tcp_mem_pressure_pages = "sysctl.net.ipv4.tcp_mem_pressure_pages",
    /// The third number of `net.ipv4.tcp_mem`, in pages.
    tcp_mem_max_pages = "sysctl.net.ipv4.tcp_mem_max_pages",
    /// `net.ipv4.tcp_syncookies`.
    tcp_syncookies = "sysctl.net.ipv4.tcp_syncookies",
    /// `net.ipv4.tcp_tw_reuse`.
    tcp_tw_reuse = "sysctl.net.ipv4.tcp_tw_reuse",
    /// The number of ports that the kernel may choose, without the reserved ones.
    local_ports = "sysctl.net.ipv4.local_ports",
    /// The first port of `net.ipv4.ip_local_port_range`.
    local_port_first = "sysctl.net.ipv4.local_port_first",
    /// The last port of `net.ipv4.ip_local_port_range`.
    local_port_last = "sysctl.net.ipv4.local_port_last",
    /// The most entries of connection tracking.
    conntrack_max = "conntrack.max",
    /// `fs.epoll.max_user_watches`.
    epoll_watches_max = "sysctl.fs.epoll.max_user_watches",
    /// `fs.file-max`.
    files_max = "files.max",
    /// The memory of the machine.
    memory_bytes = "memory.total_bytes",
    /// The smallest backlog of the server's listeners, as the kernel allowed it.
    backlog = "listener.backlog",
    /// The soft `RLIMIT_NOFILE` of the process.
    fds_max = "process.fds_max",
    /// The CPU quota of the process's control group, in thousandths of a CPU.
    cpu_limit_millicpus = "process.cpu_limit_millicpus",
}

impl EndpointFacts {
    /// Reports whether the kernel may choose `port` for a connection, or `None` if the range is
    /// unknown.
    pub fn may_choose(&self, port: u16) -> Option<bool> {
        let range = self.local_port_first?..=self.local_port_last?;
        let mut reserved = self.reserved_ports.iter().flatten();
        let is_reserved = reserved.any(|(first, last)| (*first..=*last).contains(&port));
        Some(range.contains(&i64::from(port)) && !is_reserved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_names_of_an_interval_and_only_unknown_ones_are_filled_in() {
        let mut facts = EndpointFacts { somaxconn: Some(128), ..EndpointFacts::default() };
        facts.complete(|name| (name != "conntrack.max").then_some(7));
        assert_eq!(
            (facts.somaxconn, facts.fds_max, facts.conntrack_max),
            (Some(128), Some(7), None)
        );
        let mut again = EndpointFacts::default();
        again.complete(|name| Some(facts.numbers().find(|(known, _)| *known == name)?.1));
        assert_eq!(again, facts);
    }

    #[test]
    fn reserved_ports_are_not_chosen() {
        let mut facts = EndpointFacts { local_port_first: Some(1_024), ..Default::default() };
        assert_eq!(facts.may_choose(5_555), None);
        facts.local_port_last = Some(65_535);
        assert_eq!([80, 5_555].map(|port| facts.may_choose(port)), [Some(false), Some(true)]);
        facts.reserved_ports = Some(vec![(5_000, 6_000)]);
        assert_eq!(facts.may_choose(5_555), Some(false));
    }
}
