//! The server's part of a summary.

use serde::{Deserialize, Serialize};
use throng_measure::{Merge, ServerCounters, ServerSnapshot, Tally};

use super::memory::MemoryFold;
use super::rates::{IntervalGrowth, cores_used, cost};

/// The server's counters, and the resources that it used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerSummary {
    /// The accept topology.
    pub accept: String,
    /// The name of the handler.
    pub handler: String,
    /// The number of event loops.
    pub cores: u64,
    /// The counters of this run; gauges as of the end, maxima of the whole run.
    #[serde(flatten)]
    pub counters: ServerCounters,
    /// The most connections open at the end of an interval.
    pub open_most: u64,
    /// Failed accepts by errno.
    pub accept_errors: Tally,
    /// CPU per accepted connection, in microseconds.
    pub cpu_us_per_connection: Option<f64>,
    /// CPU per message received, in microseconds.
    pub cpu_us_per_message: Option<f64>,
    /// Resident memory per open connection.
    pub rss_bytes_per_connection: Option<f64>,
    /// CPUs that it kept busy on average.
    pub cpu_cores_used: Option<f64>,
}

/// The server's snapshots so far; it may have restarted in between.
#[derive(Debug)]
pub(super) struct ServerFold {
    /// The first snapshot of the current process.
    first: ServerSnapshot,
    last: ServerSnapshot,
    /// The counters of the previous processes in this run.
    before: ServerCounters,
    errors_before: Tally,
    memory: MemoryFold,
    registry_mailbox_most: u64,
}

impl ServerFold {
    pub(super) fn first(server: &ServerSnapshot) -> Self {
        let mut memory = MemoryFold::default();
        memory.add(server.counters.open, &server.process);
        Self {
            first: server.clone(),
            last: server.clone(),
            before: Default::default(),
            errors_before: Default::default(),
            memory,
            registry_mailbox_most: server.counters.registry_mailbox_most,
        }
    }

    pub(super) fn add(&mut self, server: &ServerSnapshot) {
        if server.process.pid != self.last.process.pid {
            self.before = self.counters();
            self.errors_before = self.accept_errors();
            // The counters of a process that starts within the run begin at zero.
            self.first = ServerSnapshot::default();
            self.last = ServerSnapshot::default();
        }
        self.memory.add(server.counters.open, &server.process);
        self.registry_mailbox_most =
            self.registry_mailbox_most.max(server.counters.registry_mailbox_most);
        self.last = server.clone();
    }

    fn counters(&self) -> ServerCounters {
        let mut counters = self.before.clone();
        counters.merge(&self.last.counters.since(&self.first.counters));
        counters.open = self.last.counters.open;
        counters.paused_cores = self.last.counters.paused_cores;
        counters.registry_mailbox_most = self.registry_mailbox_most;
        counters
    }

    fn accept_errors(&self) -> Tally {
        let mut errors = self.errors_before.clone();
        for (errno, n) in &self.last.accept_errors.0 {
            errors.add(errno, n.saturating_sub(self.first.accept_errors.get(errno)));
        }
        errors
    }

    pub(super) fn summary(&self, growths: &[IntervalGrowth]) -> ServerSummary {
        let cpu = |growth: &IntervalGrowth| growth.server_cpu;
        ServerSummary {
            accept: self.last.accept.clone(),
            handler: self.last.handler.clone(),
            cores: self.last.cores,
            counters: self.counters(),
            open_most: self.memory.count_most,
            accept_errors: self.accept_errors(),
            cpu_us_per_connection: cost(growths, |growth| growth.accepted, cpu),
            cpu_us_per_message: cost(growths, |growth| growth.received, cpu),
            rss_bytes_per_connection: self.memory.bytes_each(),
            cpu_cores_used: cores_used(growths, cpu),
        }
    }
}
