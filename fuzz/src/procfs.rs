//! Files of `/proc`, `/sys` and control groups, as the doctor reads them.

use throng_machine::{
    cgroup, conntrack, cpu, files, limits, meminfo, netdev, netstat, owner, ports, pressure,
    process, slabinfo, sockstat, softnet, status, sysctl,
};

/// Checks that no parser panics.
pub fn check(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        parse_with_all(text);
    }
}

/// Runs every parser on the text, because an emulation may have another file in its place.
pub fn parse_with_all(text: &str) {
    let _ = netstat::parse(text);
    let _ = sockstat::parse(text);
    let _ = sockstat::parse6(text);
    let _ = softnet::parse(text);
    let _ = netdev::parse(text);
    let _ = cpu::parse(text);
    let _ = cpu::parse_softirq_us(text);
    let _ = meminfo::parse(text);
    let _ = owner::parse_listeners(text);
    let _ = process::parse_stat(text);
    let _ = process::parse_schedstat(text);
    let _ = process::parse_smaps_rollup(text);
    let _ = process::parse_cpus_allowed(text);
    let _ = status::parse(text);
    let _ = limits::parse(text);
    let _ = sysctl::parse_list::<1>(text);
    let _ = sysctl::parse_list::<3>(text);
    let _ = ports::parse_range(text);
    let _ = ports::parse_ranges(text);
    let _ = files::parse_file_nr(text);
    let _ = throng_machine::machine_limits::parse_threads(text);
    let _ = slabinfo::parse(text);
    let _ = conntrack::parse_count(text);
    let _ = conntrack::parse_stat(text);
    let _ = pressure::parse(text);
    let _ = cgroup::parse_membership(text);
    let _ = cgroup::parse_mounts(text);
    let _ = cgroup::parse_cpu_stat(text);
    let _ = cgroup::parse_cpu_max(text);
    let _ = cgroup::parse_quota_v1(text);
    let _ = cgroup::parse_memory_limit(text);
    let _ = cgroup::parse_memory_events(text);
    let _ = cgroup::parse_pids_max(text);
}
