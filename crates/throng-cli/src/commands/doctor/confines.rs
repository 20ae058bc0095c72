//! The restrictions of a process other than limits and sysctls: its capabilities, its system call
//! filter, its control groups, and the TCP hash table that it shares.

use throng_machine::cgroup::{self, CgroupCpu, CgroupMemory, CgroupPids, CgroupReader};
use throng_machine::status::{Capability, Status};
use throng_machine::tcp_hash::{TcpHash, tcp_hash};
use throng_machine::{Fact, MachineFacts, ProcRoot};
use throng_report::render::bytes;

/// Returns a row for each restriction.
pub(super) fn rows(root: &ProcRoot, pid: u32, facts: &MachineFacts) -> Vec<(String, Fact<String>)> {
    let status = || facts.status.clone();
    let mut groups = CgroupReader::locate(root, pid);
    let rows = [
        ("user", status().map(|status| status.uid.to_string())),
        ("capabilities", status().map(|status| capabilities(&status))),
        ("filter of system calls", status().map(|status| filter(&status))),
        ("CPUs of the control group", groups.cpu().map(|cpu| cpus(&cpu))),
        ("memory of the control group", groups.memory().map(|memory| show_memory(&memory))),
        ("threads of the control group", cgroup::pids(root, pid).map(show_pids)),
        ("TCP hash", tcp_hash(root).map(|hash| show_hash(&hash))),
    ];
    rows.into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect()
}

/// Lists the capabilities that matter for connections, by name.
fn capabilities(status: &Status) -> String {
    let (has, lacks): (Vec<_>, Vec<_>) =
        Capability::ALL.into_iter().partition(|capability| status.has(*capability));
    let list = |capabilities: Vec<Capability>| {
        let names: Vec<_> = capabilities.into_iter().map(Capability::name).collect();
        names.join(" ")
    };
    match (has.is_empty(), lacks.is_empty()) {
        (_, true) => list(has),
        (true, _) => format!("none of {}", list(lacks)),
        _ => format!("{}; not {}", list(has), list(lacks)),
    }
}

fn filter(status: &Status) -> String {
    status.seccomp.map_or_else(|| "this kernel has none".to_owned(), |seccomp| seccomp.to_string())
}

fn cpus(cpu: &CgroupCpu) -> String {
    let limit = cpu.limit_millicpus.map_or_else(
        || "no limit".to_owned(),
        |millicpus| format!("{:.2}", millicpus as f64 / 1000.0),
    );
    match cpu.throttled {
        0 => limit,
        times => format!("{limit}; throttled {times} times"),
    }
}

fn show_memory(memory: &CgroupMemory) -> String {
    let used = bytes(memory.used_bytes as f64);
    match memory.limit_bytes {
        None => format!("{used} used, no limit"),
        Some(limit) => format!("{used} used of {}", bytes(limit as f64)),
    }
}

fn show_pids(pids: Option<CgroupPids>) -> String {
    pids.map_or_else(|| "no limit".to_owned(), |pids| format!("{} of {}", pids.used, pids.limit))
}

/// Describes the TCP hash table: `262144 buckets, sockets in them: 1204 (0.00 each)`.
fn show_hash(hash: &TcpHash) -> String {
    let shared = if hash.is_shared { ", shared with other network namespaces" } else { "" };
    format!(
        "{} buckets, sockets in them: {} ({:.2} each){shared}",
        hash.buckets,
        hash.sockets,
        hash.load()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_listed_by_name_with_those_that_are_missing() {
        let text = "Uid:\t0\t0\nCapEff:\t0000000000201000\nCapBnd:\t0\nThreads:\t1\nSeccomp:\t2\n";
        let status = throng_machine::status::parse(text).unwrap();
        assert_eq!(
            capabilities(&status),
            "CAP_NET_ADMIN CAP_SYS_ADMIN; not CAP_NET_BIND_SERVICE CAP_NET_RAW CAP_SYS_PTRACE \
             CAP_SYS_RESOURCE"
        );
        assert!(filter(&status).contains("seccomp"));
        assert!(capabilities(&Status { capabilities: 0, ..status }).starts_with("none of CAP_"));
    }

    #[test]
    fn what_cannot_be_read_stays_unknown_and_says_why() {
        let root = ProcRoot::new("/nonexistent");
        let rows = rows(&root, 1, &MachineFacts::read(&root, 1));
        assert_eq!(rows.len(), 7);
        assert!(rows.iter().all(|(_, fact)| fact.to_string().starts_with("unknown (")), "{rows:?}");
    }
}
