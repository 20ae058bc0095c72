//! Reads the facts of one end that do not change during a run.
//!
//! A counter shows that something was dropped, a limit shows how much room there was. The header of
//! the run file has these facts; each sample repeats those of the kernel, for readers of intervals.

use throng_measure::{EndpointFacts, Limit, metric};

use crate::cgroup::CgroupReader;
use crate::conntrack;
use crate::fact::{Fact, Unknown};
use crate::files::{FILE_NR_PATH, parse_file_nr};
use crate::limits::limits;
use crate::listener_scope::ListenerScope;
use crate::listeners::{ListenerReader, ListenerSummary};
use crate::meminfo;
use crate::ports::local_ports;
use crate::proc_root::ProcRoot;

/// Returns the facts of this machine, of the calling thread's network namespace, of its listeners
/// in `scope`, if one is given, and of the process if it is known. What cannot be read is `None`.
pub fn endpoint_facts(
    root: &ProcRoot,
    pid: Option<u32>,
    scope: Option<&ListenerScope>,
) -> EndpointFacts {
    let (mut facts, _) = kernel_facts(root);
    let number = |value: Option<u64>| i64::try_from(value?).ok();
    facts.conntrack_max =
        number(root.read(conntrack::MAX_PATH, conntrack::parse_count).into_result().ok());
    facts.files_max = number(root.read(FILE_NR_PATH, parse_file_nr).known().map(|files| files.max));
    if let Some(pid) = pid {
        let limits = limits(root, pid).into_result().ok();
        facts.fds_max = number(limits.and_then(|limits| limits.open_files.soft));
        let group = CgroupReader::locate(root, pid).cpu().into_result().ok();
        facts.cpu_limit_millicpus = number(group.and_then(|group| group.limit_millicpus));
    }
    if root.is_live()
        && let Some(scope) = scope
        && let Fact::Known(all) = ListenerReader::default().listeners()
    {
        let listeners = scope.select(&all);
        facts.listen = listeners.iter().map(|listener| listener.addr.to_string()).collect();
        // A server may have a listener for each of its cores.
        facts.listen.dedup();
        let backlog = ListenerSummary::of(&listeners).backlog;
        facts.backlog = number(Some(backlog)).filter(|_| !listeners.is_empty());
    }
    facts
}

/// Returns the facts of this machine and of the calling thread's network namespace that each sample
/// repeats, and the reasons why others are unknown.
pub(crate) fn kernel_facts(root: &ProcRoot) -> (EndpointFacts, Vec<Unknown>) {
    let mut unknown = Vec::new();
    let mut facts = EndpointFacts::default();
    facts.complete_kernel(|metric| {
        let name = metric.name().strip_prefix("sysctl.");
        let name = name.filter(|_| metric::SYSCTLS.contains(&metric))?;
        // The kernel negates some sizes of shared tables, such as that of the TCP hash in a
        // namespace without its own: the size is the shared table's.
        Some(known(root.sysctl(name), &mut unknown)?.saturating_abs())
    });
    if let Some([_, pressure, most]) =
        known(root.sysctl_list::<3>(Limit::TCP_MEMORY.name()), &mut unknown)
    {
        facts.tcp_mem_pressure_pages = Some(pressure);
        facts.tcp_mem_max_pages = Some(most);
    }
    if let Some(ports) = known(local_ports(root), &mut unknown) {
        facts.local_ports = Some(i64::from(ports.count()));
        facts.local_port_first = Some(i64::from(ports.first));
        facts.local_port_last = Some(i64::from(ports.last));
        facts.reserved_ports = Some(ports.reserved);
    }
    let memory = known(root.read(meminfo::PATH, meminfo::parse), &mut unknown);
    facts.memory_bytes = memory.and_then(|memory| i64::try_from(memory.total_bytes).ok());
    (facts, unknown)
}

/// Returns a known value, or keeps the reason why it is unknown.
fn known<T>(fact: Fact<T>, unknown: &mut Vec<Unknown>) -> Option<T> {
    fact.into_result().map_err(|why| unknown.push(why)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded_root;

    #[test]
    fn limits_of_a_recorded_machine_are_read() {
        let root = recorded_root("linux-6.18");
        let (kernel, unknown) = kernel_facts(&root);
        assert_eq!(unknown, []);
        assert_eq!(kernel.somaxconn, Some(4_096));
        assert_eq!(kernel.tcp_mem_pressure_pages, Some(383_779));
        assert_eq!(kernel.tcp_mem_max_pages, Some(575_664));
        assert_eq!(kernel.local_ports, Some(60_999 - 32_768 + 1));
        assert_eq!(kernel.local_port_last, Some(60_999));
        assert_eq!(kernel.epoll_watches_max, Some(5_490_265));
        assert!(kernel.memory_bytes > Some(1 << 30));
        assert_eq!(kernel.conntrack_max, None, "each sample reads it anew");
        let facts = endpoint_facts(&root, Some(4_242), Some(&ListenerScope::Ports(vec![5_555])));
        assert_eq!(facts.conntrack_max, Some(262_144));
        assert!(facts.fds_max.is_some() && facts.files_max.is_some());
        assert_eq!((facts.backlog, facts.listen), (None, Vec::new()), "it has no sockets");
    }

    #[test]
    fn a_limit_that_cannot_be_read_is_absent_and_reported() {
        let (facts, unknown) = kernel_facts(&recorded_root("linux-4.19"));
        assert_eq!((facts.somaxconn, facts.local_port_first), (None, Some(1_024)));
        assert_eq!(facts.reserved_ports.unwrap()[0], (5_555, 5_555));
        let source = |why: &Unknown| why.source == "proc/sys/net/core/somaxconn";
        assert!(unknown.iter().any(source), "{unknown:?}");
    }

    #[test]
    fn listeners_of_this_machine_are_read_with_their_addresses() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let scope = ListenerScope::Targets(vec![addr]);
        let facts = endpoint_facts(&ProcRoot::default(), Some(std::process::id()), Some(&scope));
        assert_eq!(facts.listen, [addr.to_string()]);
        assert!(facts.backlog.is_some() && facts.somaxconn.is_some());
    }
}
