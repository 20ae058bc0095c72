//! The files of `/proc` that are read each second, and the counters recorded from each.

use throng_report::MachineUse;

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
    pressure: [(&'static str, KeptFile); 3],
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
            pressure: ["cpu", "memory", "io"]
                .map(|name| (name, root.keep(format!("proc/pressure/{name}")))),
        }
    }

    /// Records the namespace's counters. Returns those that decide what else is read.
    pub(super) fn network(&mut self, out: &mut KernelSample) -> NetworkCounters {
        let mut network = NetworkCounters::default();
        if let Some(counters) = out.take(self.netstat.read(netstat::parse)) {
            network.listen_drops = counters.get("TcpExt", "ListenDrops");
            out.set_all(&counters, "TcpExt", TCP_EXT);
        }
        if let Some(counters) = out.take(self.snmp.read(netstat::parse)) {
            out.set_all(&counters, "Tcp", TCP);
        }
        if let Some(found) = out.take(self.sockstat.read(sockstat::parse)) {
            network.sockets = Some(found.tcp_in_use);
            out.set("sockstat.used", found.sockets_used);
            out.set("sockstat.tcp.inuse", found.tcp_in_use);
            out.set("sockstat.tcp.orphan", found.tcp_orphan);
            out.set("sockstat.tcp.tw", found.tcp_time_wait);
            out.set("sockstat.tcp.alloc", found.tcp_alloc);
            out.set("sockstat.tcp.mem_pages", found.tcp_mem_pages);
        }
        if let Some(in_use) = out.take(self.sockstat6.read(sockstat::parse6)) {
            out.set("sockstat.tcp6.inuse", in_use);
        }
        if let Some(devices) = out.take(self.dev.read(netdev::parse)) {
            out.set_sum("dev.rx_packets", devices.iter().map(|device| device.received.packets));
            out.set_sum("dev.tx_packets", devices.iter().map(|device| device.sent.packets));
            out.set_sum("dev.rx_dropped", devices.iter().map(|device| device.received.dropped));
            out.set_sum("dev.tx_dropped", devices.iter().map(|device| device.sent.dropped));
            out.set_sum("dev.rx_errors", devices.iter().map(|device| device.received.errors));
            out.set_sum("dev.tx_errors", devices.iter().map(|device| device.sent.errors));
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
            out.set("cpu.softirq_us", softirq_us);
            each
        });
        if let Some(queues) = out.take(self.softnet.read(softnet::parse)) {
            out.set_sum("softnet.processed", queues.iter().map(|queue| queue.processed));
            out.set_sum("softnet.dropped", queues.iter().map(|queue| queue.dropped));
            out.set_sum("softnet.time_squeeze", queues.iter().map(|queue| queue.time_squeeze));
        }
        if let Some(memory) = out.take(self.meminfo.read(meminfo::parse)) {
            out.set_some("memory.available_bytes", memory.available_bytes);
            out.set("memory.slab_bytes", memory.slab_bytes);
            out.set("memory.used_bytes", memory.used_bytes);
        }
        if let Some(found) = out.take(self.file_nr.read(files::parse_file_nr)) {
            out.set("files.open", found.open);
            out.set("files.max", found.max);
        }
        for (name, file) in &mut self.pressure {
            if let Some(found) = out.take(file.read(pressure::parse)) {
                out.set(&format!("pressure.{name}.some_us"), found.some.total_us);
                let full = found.full.map(|stall| stall.total_us);
                out.set_some(&format!("pressure.{name}.full_us"), full);
            }
        }
        cpus
    }

    /// Records the connections that netfilter tracks.
    pub(super) fn conntrack(&mut self, out: &mut KernelSample) {
        let count = out.take(self.conntrack_count.read(conntrack::parse_count));
        out.set_some("conntrack.count", count);
        let max = out.take(self.conntrack_max.read(conntrack::parse_count));
        out.set_some("conntrack.max", max);
        if let Some(found) = out.take(self.conntrack_stat.read(conntrack::parse_stat)) {
            out.set("conntrack.dropped", found.dropped);
            out.set("conntrack.early_dropped", found.early_dropped);
            out.set("conntrack.insert_failed", found.insert_failed);
        }
    }
}

/// The counters of `Tcp` that are recorded.
const TCP: &[&str] = &[
    "ActiveOpens",
    "AttemptFails",
    "CurrEstab",
    "EstabResets",
    "InErrs",
    "InSegs",
    "OutRsts",
    "OutSegs",
    "PassiveOpens",
    "RetransSegs",
];

/// The counters of `TcpExt` that are recorded: every loss of a connection or segment that a rule
/// names.
const TCP_EXT: &[&str] = &[
    "EmbryonicRsts",
    "ListenDrops",
    "ListenOverflows",
    "OfoPruned",
    "PruneCalled",
    "RcvPruned",
    "SyncookiesFailed",
    "SyncookiesRecv",
    "SyncookiesSent",
    "TCPAbortFailed",
    "TCPAbortOnClose",
    "TCPAbortOnData",
    "TCPAbortOnLinger",
    "TCPAbortOnMemory",
    "TCPAbortOnTimeout",
    "TCPBacklogDrop",
    "TCPDeferAcceptDrop",
    "TCPLostRetransmit",
    "TCPMemoryPressures",
    "TCPMemoryPressuresChrono",
    "TCPMigrateReqFailure",
    "TCPMinTTLDrop",
    "TCPOFODrop",
    "TCPRcvCollapsed",
    "TCPRcvQDrop",
    "TCPReqQFullDoCookies",
    "TCPReqQFullDrop",
    "TCPRetransFail",
    "TCPSpuriousRtxHostQueues",
    "TCPSynRetrans",
    "TCPTimeWaitOverflow",
    "TCPTimeouts",
    "TCPToZeroWindowAdv",
    "TCPWantZeroWindowAdv",
    "TCPWqueueTooBig",
    "TCPZeroWindowDrop",
    "TW",
    "TWKilled",
    "TWRecycled",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded_root;

    #[test]
    fn every_counter_of_the_lists_exists_in_a_recorded_kernel() {
        // A typing error would show here.
        let mut out = KernelSample::default();
        ProcFiles::new(&recorded_root("linux-6.18")).network(&mut out);
        for (group, names) in [("Tcp", TCP), ("TcpExt", TCP_EXT)] {
            for name in names {
                assert!(out.counters.contains_key(&format!("{group}.{name}")), "{group}.{name}");
            }
        }
    }
}
