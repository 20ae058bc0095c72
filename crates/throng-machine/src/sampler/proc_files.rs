//! The files of `/proc` that are read each second, and the counters recorded from each.

use throng_measure::MachineUse;
use throng_measure::metric::{self, Metric};

use super::KernelSample;
use crate::cpu::OneCpu;
use crate::fact::Fact;
use crate::proc_root::{KeptFile, ProcRoot};
use crate::{conntrack, cpu, files, meminfo, netdev, netstat, pressure, sockstat, softnet};

/// The files, which stay open.
#[derive(Debug)]
pub(super) struct ProcFiles {
    netstat: KeptFile,
    snmp: KeptFile,
    sockstat: KeptFile,
    sockstat6: KeptFile,
    softnet: KeptFile,
    dev: KeptFile,
    stat: KeptFile,
    meminfo: KeptFile,
    file_nr: KeptFile,
    conntrack_count: KeptFile,
    conntrack_max: KeptFile,
    conntrack_stat: KeptFile,
    pressure: [(KeptFile, Metric, Metric); 3],
}

/// The network counters that decide what else is read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NetworkCounters {
    /// Dropped connects at listeners.
    pub(super) listen_drops: Option<u64>,
    /// TCP sockets.
    pub(super) sockets: Option<u64>,
}

impl ProcFiles {
    /// Opens the files that can be opened; each sample tries the others again.
    pub(super) fn new(root: &ProcRoot) -> Self {
        // `/proc/net` would be the namespace of the process's first thread.
        let net = |name| root.keep(format!("proc/thread-self/net/{name}"));
        Self {
            netstat: net("netstat"),
            snmp: net("snmp"),
            sockstat: net("sockstat"),
            sockstat6: net("sockstat6"),
            softnet: net("softnet_stat"),
            dev: net("dev"),
            stat: root.keep("proc/stat"),
            meminfo: root.keep(meminfo::PATH),
            file_nr: root.keep(files::FILE_NR_PATH),
            conntrack_count: root.keep(conntrack::COUNT_PATH),
            conntrack_max: root.keep(conntrack::MAX_PATH),
            conntrack_stat: root.keep(conntrack::STAT_PATH),
            pressure: [
                (
                    root.keep("proc/pressure/cpu"),
                    Metric::PRESSURE_CPU_SOME_US,
                    Metric::PRESSURE_CPU_FULL_US,
                ),
                (
                    root.keep("proc/pressure/memory"),
                    Metric::PRESSURE_MEMORY_SOME_US,
                    Metric::PRESSURE_MEMORY_FULL_US,
                ),
                (
                    root.keep("proc/pressure/io"),
                    Metric::PRESSURE_IO_SOME_US,
                    Metric::PRESSURE_IO_FULL_US,
                ),
            ],
        }
    }

    /// Records the namespace's counters. Returns those that decide what else is read.
    pub(super) fn network(&mut self, out: &mut KernelSample) -> NetworkCounters {
        let mut network = NetworkCounters::default();
        if let Some(counters) = out.take(self.netstat.read(netstat::parse)) {
            network.listen_drops = counters.get("TcpExt", "ListenDrops");
            out.set_all(&counters, metric::TCP_EXT);
        }
        if let Some(counters) = out.take(self.snmp.read(netstat::parse)) {
            out.set_all(&counters, metric::TCP);
        }
        if let Some(found) = out.take(self.sockstat.read(sockstat::parse)) {
            network.sockets = Some(found.tcp_in_use);
            out.set(Metric::SOCKSTAT_USED, found.sockets_used);
            out.set(Metric::SOCKSTAT_TCP_INUSE, found.tcp_in_use);
            out.set(Metric::SOCKSTAT_TCP_ORPHAN, found.tcp_orphan);
            out.set(Metric::SOCKSTAT_TCP_TW, found.tcp_time_wait);
            out.set(Metric::SOCKSTAT_TCP_ALLOC, found.tcp_alloc);
            out.set(Metric::SOCKSTAT_TCP_MEM_PAGES, found.tcp_mem_pages);
        }
        if let Some(in_use) = out.take(self.sockstat6.read(sockstat::parse6)) {
            out.set(Metric::SOCKSTAT_TCP6_INUSE, in_use);
        }
        if let Some(devices) = out.take(self.dev.read(netdev::parse)) {
            out.set_sum(
                Metric::DEV_RX_PACKETS,
                devices.iter().map(|device| device.received.packets),
            );
            out.set_sum(Metric::DEV_TX_PACKETS, devices.iter().map(|device| device.sent.packets));
            out.set_sum(
                Metric::DEV_RX_DROPPED,
                devices.iter().map(|device| device.received.dropped),
            );
            out.set_sum(Metric::DEV_TX_DROPPED, devices.iter().map(|device| device.sent.dropped));
            out.set_sum(Metric::DEV_RX_ERRORS, devices.iter().map(|device| device.received.errors));
            out.set_sum(Metric::DEV_TX_ERRORS, devices.iter().map(|device| device.sent.errors));
        }
        network
    }

    /// Records the counters of the whole machine. Returns each CPU, if they are known.
    pub(super) fn machine(&mut self, out: &mut KernelSample) -> Option<Vec<OneCpu>> {
        let stat: Fact<(MachineUse, u64, Vec<OneCpu>)> = self.stat.read(|text| {
            Ok((cpu::parse(text)?, cpu::parse_softirq_us(text)?, cpu::parse_each(text)?))
        });
        let cpus = out.take(stat).map(|(machine, softirq_us, each)| {
            out.machine = Some(machine);
            out.set(Metric::CPU_SOFTIRQ_US, softirq_us);
            each
        });
        if let Some(queues) = out.take(self.softnet.read(softnet::parse)) {
            out.set_sum(Metric::SOFTNET_PROCESSED, queues.iter().map(|queue| queue.processed));
            out.set_sum(Metric::SOFTNET_DROPPED, queues.iter().map(|queue| queue.dropped));
            out.set_sum(
                Metric::SOFTNET_TIME_SQUEEZE,
                queues.iter().map(|queue| queue.time_squeeze),
            );
        }
        if let Some(memory) = out.take(self.meminfo.read(meminfo::parse)) {
            out.set_some(Metric::MEMORY_AVAILABLE_BYTES, memory.available_bytes);
            out.set(Metric::MEMORY_SLAB_BYTES, memory.slab_bytes);
            out.set(Metric::MEMORY_USED_BYTES, memory.used_bytes);
        }
        if let Some(found) = out.take(self.file_nr.read(files::parse_file_nr)) {
            out.set(Metric::FILES_OPEN, found.open);
            out.set(Metric::FILES_MAX, found.max);
        }
        for (file, some_us, full_us) in &mut self.pressure {
            if let Some(found) = out.take(file.read(pressure::parse)) {
                out.set(*some_us, found.some.total_us);
                let full = found.full.map(|stall| stall.total_us);
                out.set_some(*full_us, full);
            }
        }
        cpus
    }

    /// Records the connections that netfilter tracks.
    pub(super) fn conntrack(&mut self, out: &mut KernelSample) {
        let count = out.take(self.conntrack_count.read(conntrack::parse_count));
        out.set_some(Metric::CONNTRACK_COUNT, count);
        let max = out.take(self.conntrack_max.read(conntrack::parse_count));
        out.set_some(Metric::CONNTRACK_MAX, max);
        if let Some(found) = out.take(self.conntrack_stat.read(conntrack::parse_stat)) {
            out.set(Metric::CONNTRACK_DROPPED, found.dropped);
            out.set(Metric::CONNTRACK_EARLY_DROPPED, found.early_dropped);
            out.set(Metric::CONNTRACK_INSERT_FAILED, found.insert_failed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded_root;

    #[test]
    fn every_counter_of_the_table_exists_in_a_recorded_kernel() {
        // A typing error would show here.
        let mut out = KernelSample::default();
        ProcFiles::new(&recorded_root("linux-6.18")).network(&mut out);
        for metric in metric::TCP.iter().chain(metric::TCP_EXT) {
            assert!(out.counters.get(*metric).is_some(), "{metric}");
        }
    }
}
