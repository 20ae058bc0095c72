//! Values that do not change during a run, but are in every sample: the limits of its counters.
//!
//! A counter shows that something was dropped, a limit shows how much room there was. Rules see
//! intervals and nothing else, so each sample repeats what was read once.

use super::KernelSample;
use crate::fact::{Fact, Unknown};
use crate::meminfo;
use crate::ports::local_ports;
use crate::proc_root::ProcRoot;

/// Values that are read once and repeated in every sample.
#[derive(Clone, Debug, Default)]
pub(super) struct Constants {
    gauges: Vec<(String, u64)>,
    unknown: Vec<Unknown>,
}

impl Constants {
    /// Reads the values of this machine, and of the calling thread's network namespace.
    pub(super) fn read(root: &ProcRoot) -> Self {
        let mut constants = Self::default();
        for name in SYSCTLS {
            if let Some(value) = constants.take(root.sysctl(name)) {
                constants.set(&format!("sysctl.{name}"), value);
            }
        }
        if let Some([_, pressure, most]) = constants.take(root.sysctl_list::<3>("net.ipv4.tcp_mem"))
        {
            constants.set("sysctl.net.ipv4.tcp_mem_pressure_pages", pressure);
            constants.set("sysctl.net.ipv4.tcp_mem_max_pages", most);
        }
        if let Some(ports) = constants.take(local_ports(root)) {
            constants.set("sysctl.net.ipv4.local_ports", i64::from(ports.count()));
            constants.set("sysctl.net.ipv4.local_port_first", i64::from(ports.first));
            constants.set("sysctl.net.ipv4.local_port_last", i64::from(ports.last));
        }
        if let Some(memory) = constants.take(root.read(meminfo::PATH, meminfo::parse)) {
            constants.gauges.push(("memory.total_bytes".to_owned(), memory.total_bytes));
        }
        constants
    }

    /// Adds the values to a sample.
    pub(super) fn add_to(&self, out: &mut KernelSample) {
        self.gauges.iter().for_each(|(name, value)| out.set(name, *value));
        out.unknown.extend(self.unknown.iter().cloned());
    }

    /// Keeps a value. The kernel negates some sizes of shared tables, such as that of the TCP hash
    /// in a namespace without its own: the size is the shared table's.
    fn set(&mut self, name: &str, value: i64) {
        self.gauges.push((name.to_owned(), value.unsigned_abs()));
    }

    /// Returns a known value, or keeps the reason why it is unknown.
    fn take<T>(&mut self, fact: Fact<T>) -> Option<T> {
        fact.into_result().map_err(|why| self.unknown.push(why)).ok()
    }
}

/// The sysctls with a single number.
const SYSCTLS: &[&str] = &[
    "fs.epoll.max_user_watches",
    "net.core.netdev_max_backlog",
    "net.core.somaxconn",
    "net.ipv4.tcp_abort_on_overflow",
    "net.ipv4.tcp_ehash_entries",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_tw_reuse",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded_root;

    #[test]
    fn limits_of_a_recorded_machine_are_in_every_sample() {
        let constants = Constants::read(&recorded_root("linux-6.18"));
        let mut sample = KernelSample::default();
        constants.add_to(&mut sample);
        assert_eq!(sample.unknown, []);
        let value = |name: &str| sample.counters[name];
        assert_eq!(value("sysctl.net.core.somaxconn"), 4096);
        assert_eq!(value("sysctl.net.ipv4.tcp_mem_pressure_pages"), 383_779);
        assert_eq!(value("sysctl.net.ipv4.tcp_mem_max_pages"), 575_664);
        assert_eq!(value("sysctl.net.ipv4.local_ports"), 60_999 - 32_768 + 1);
        assert_eq!(value("sysctl.net.ipv4.local_port_last"), 60_999);
        assert_eq!(value("sysctl.fs.epoll.max_user_watches"), 5_490_265);
        assert!(value("memory.total_bytes") > 1 << 30);
    }

    #[test]
    fn a_limit_that_cannot_be_read_is_absent_and_reported() {
        let constants = Constants::read(&recorded_root("linux-4.19"));
        let mut sample = KernelSample::default();
        constants.add_to(&mut sample);
        assert!(!sample.counters.contains_key("sysctl.net.core.somaxconn"));
        assert_eq!(sample.counters["sysctl.net.ipv4.local_port_first"], 1_024);
        let source = |why: &Unknown| why.source == "proc/sys/net/core/somaxconn";
        assert!(sample.unknown.iter().any(source), "{:?}", sample.unknown);
    }
}
