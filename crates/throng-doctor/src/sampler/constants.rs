//! Values that do not change during a run, but are in every sample: the limits of its counters.
//!
//! A counter shows that something was dropped, a limit shows how much room there was. Rules see
//! intervals and nothing else, so each sample repeats what was read once.

use throng_report::Limit;
use throng_report::metric::{self, Metric};

use super::KernelSample;
use crate::fact::{Fact, Unknown};
use crate::meminfo;
use crate::ports::local_ports;
use crate::proc_root::ProcRoot;

/// Values that are read once and repeated in every sample.
#[derive(Clone, Debug, Default)]
pub(super) struct Constants {
    gauges: Vec<(Metric, u64)>,
    unknown: Vec<Unknown>,
}

impl Constants {
    /// Reads the values of this machine, and of the calling thread's network namespace.
    pub(super) fn read(root: &ProcRoot) -> Self {
        let mut constants = Self::default();
        for metric in metric::SYSCTLS {
            let name = metric.name().trim_start_matches("sysctl.");
            if let Some(value) = constants.take(root.sysctl(name)) {
                constants.set(*metric, value);
            }
        }
        if let Some([_, pressure, most]) =
            constants.take(root.sysctl_list::<3>(Limit::TCP_MEMORY.name()))
        {
            constants.set(Metric::SYSCTL_NET_IPV4_TCP_MEM_PRESSURE_PAGES, pressure);
            constants.set(Metric::SYSCTL_NET_IPV4_TCP_MEM_MAX_PAGES, most);
        }
        if let Some(ports) = constants.take(local_ports(root)) {
            constants.set(Metric::SYSCTL_NET_IPV4_LOCAL_PORTS, i64::from(ports.count()));
            constants.set(Metric::SYSCTL_NET_IPV4_LOCAL_PORT_FIRST, i64::from(ports.first));
            constants.set(Metric::SYSCTL_NET_IPV4_LOCAL_PORT_LAST, i64::from(ports.last));
        }
        if let Some(memory) = constants.take(root.read(meminfo::PATH, meminfo::parse)) {
            constants.gauges.push((Metric::MEMORY_TOTAL_BYTES, memory.total_bytes));
        }
        constants
    }

    /// Adds the values to a sample.
    pub(super) fn add_to(&self, out: &mut KernelSample) {
        self.gauges.iter().for_each(|(metric, value)| out.set(*metric, *value));
        out.unknown.extend(self.unknown.iter().cloned());
    }

    /// Keeps a value. The kernel negates some sizes of shared tables, such as that of the TCP hash
    /// in a namespace without its own: the size is the shared table's.
    fn set(&mut self, metric: Metric, value: i64) {
        self.gauges.push((metric, value.unsigned_abs()));
    }

    /// Returns a known value, or keeps the reason why it is unknown.
    fn take<T>(&mut self, fact: Fact<T>) -> Option<T> {
        fact.into_result().map_err(|why| self.unknown.push(why)).ok()
    }
}

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
        let value = |metric| sample.counters[metric];
        assert_eq!(value(Metric::SYSCTL_NET_CORE_SOMAXCONN), 4096);
        assert_eq!(value(Metric::SYSCTL_NET_IPV4_TCP_MEM_PRESSURE_PAGES), 383_779);
        assert_eq!(value(Metric::SYSCTL_NET_IPV4_TCP_MEM_MAX_PAGES), 575_664);
        assert_eq!(value(Metric::SYSCTL_NET_IPV4_LOCAL_PORTS), 60_999 - 32_768 + 1);
        assert_eq!(value(Metric::SYSCTL_NET_IPV4_LOCAL_PORT_LAST), 60_999);
        assert_eq!(value(Metric::SYSCTL_FS_EPOLL_MAX_USER_WATCHES), 5_490_265);
        assert!(value(Metric::MEMORY_TOTAL_BYTES) > 1 << 30);
    }

    #[test]
    fn a_limit_that_cannot_be_read_is_absent_and_reported() {
        let constants = Constants::read(&recorded_root("linux-4.19"));
        let mut sample = KernelSample::default();
        constants.add_to(&mut sample);
        assert!(sample.counters.get(Metric::SYSCTL_NET_CORE_SOMAXCONN).is_none());
        assert_eq!(sample.counters[Metric::SYSCTL_NET_IPV4_LOCAL_PORT_FIRST], 1_024);
        let source = |why: &Unknown| why.source == "proc/sys/net/core/somaxconn";
        assert!(sample.unknown.iter().any(source), "{:?}", sample.unknown);
    }
}
