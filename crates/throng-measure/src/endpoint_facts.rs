//! Facts of one end that do not change during a run.

use serde::{Deserialize, Serialize};

use crate::{Metric, ProcessMetric};

/// Declares the facts that are numbers, each with its metric in the intervals.
macro_rules! endpoint_facts {
    (
        kernel { $($(#[doc = $doc:literal])* $field:ident = $metric:ident,)* }
        process { $($(#[doc = $of_doc:literal])* $of_field:ident = $of_metric:ident,)* }
    ) => {
        /// Limits of one end's kernel, network namespace and process. An unknown fact is `None`.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct EndpointFacts {
            $(
                $(#[doc = $doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $field: Option<i64>,
            )*
            $(
                $(#[doc = $of_doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $of_field: Option<i64>,
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
            /// Fills in the unknown numbers of a kernel by their metrics.
            pub fn complete_kernel(&mut self, mut value: impl FnMut(Metric) -> Option<i64>) {
                $(self.$field = self.$field.or_else(|| value(Metric::$metric));)*
            }

            /// Fills in the unknown numbers of a process by their metrics.
            pub fn complete_process(&mut self, value: impl Fn(ProcessMetric) -> Option<i64>) {
                $(self.$of_field = self.$of_field.or_else(|| value(ProcessMetric::$of_metric));)*
            }

            /// Returns the known numbers of the kernel with their metrics.
            pub fn of_kernel(&self) -> impl Iterator<Item = (Metric, i64)> + use<> {
                let all = [$((Metric::$metric, self.$field)),*];
                all.into_iter().filter_map(|(metric, value)| Some((metric, value?)))
            }
        }
    };
}

endpoint_facts! {
    kernel {
        /// `net.core.somaxconn`.
        somaxconn = SYSCTL_NET_CORE_SOMAXCONN,
        /// `net.core.netdev_max_backlog`.
        netdev_max_backlog = SYSCTL_NET_CORE_NETDEV_MAX_BACKLOG,
        /// `net.ipv4.tcp_abort_on_overflow`.
        tcp_abort_on_overflow = SYSCTL_NET_IPV4_TCP_ABORT_ON_OVERFLOW,
        /// `net.ipv4.tcp_ehash_entries`: the buckets of the table of sockets.
        tcp_ehash_entries = SYSCTL_NET_IPV4_TCP_EHASH_ENTRIES,
        /// `net.ipv4.tcp_max_orphans`.
        tcp_max_orphans = SYSCTL_NET_IPV4_TCP_MAX_ORPHANS,
        /// `net.ipv4.tcp_max_syn_backlog`.
        tcp_max_syn_backlog = SYSCTL_NET_IPV4_TCP_MAX_SYN_BACKLOG,
        /// `net.ipv4.tcp_max_tw_buckets`.
        tcp_max_tw_buckets = SYSCTL_NET_IPV4_TCP_MAX_TW_BUCKETS,
        /// The second number of `net.ipv4.tcp_mem`, in pages.
        tcp_mem_pressure_pages = SYSCTL_NET_IPV4_TCP_MEM_PRESSURE_PAGES,
        /// The third number of `net.ipv4.tcp_mem`, in pages.
        tcp_mem_max_pages = SYSCTL_NET_IPV4_TCP_MEM_MAX_PAGES,
        /// `net.ipv4.tcp_syncookies`.
        tcp_syncookies = SYSCTL_NET_IPV4_TCP_SYNCOOKIES,
        /// `net.ipv4.tcp_tw_reuse`.
        tcp_tw_reuse = SYSCTL_NET_IPV4_TCP_TW_REUSE,
        /// The number of ports that the kernel may choose, without the reserved ones.
        local_ports = SYSCTL_NET_IPV4_LOCAL_PORTS,
        /// The first port of `net.ipv4.ip_local_port_range`.
        local_port_first = SYSCTL_NET_IPV4_LOCAL_PORT_FIRST,
        /// The last port of `net.ipv4.ip_local_port_range`.
        local_port_last = SYSCTL_NET_IPV4_LOCAL_PORT_LAST,
        /// The most entries of connection tracking.
        conntrack_max = CONNTRACK_MAX,
        /// `fs.epoll.max_user_watches`.
        epoll_watches_max = SYSCTL_FS_EPOLL_MAX_USER_WATCHES,
        /// `fs.file-max`.
        files_max = FILES_MAX,
        /// The memory of the machine.
        memory_bytes = MEMORY_TOTAL_BYTES,
        /// The smallest backlog of the server's listeners, as the kernel allowed it.
        backlog = LISTENER_BACKLOG,
    }
    process {
        /// The soft `RLIMIT_NOFILE` of the process.
        fds_max = FDS_MAX,
        /// The CPU quota of the process's control group, in thousandths of a CPU.
        cpu_limit_millicpus = CPU_LIMIT_MILLICPUS,
    }
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
    fn only_unknown_numbers_are_filled_in() {
        let mut facts = EndpointFacts { somaxconn: Some(128), ..EndpointFacts::default() };
        facts.complete_kernel(|metric| (metric != Metric::CONNTRACK_MAX).then_some(7));
        facts.complete_process(|_| Some(7));
        assert_eq!(
            (facts.somaxconn, facts.fds_max, facts.conntrack_max),
            (Some(128), Some(7), None)
        );
        let mut again = EndpointFacts::default();
        again.complete_kernel(|metric| Some(facts.of_kernel().find(|(of, _)| *of == metric)?.1));
        again.complete_process(|_| Some(7));
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
