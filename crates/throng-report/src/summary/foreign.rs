//! The costs of a server that is not throng's, as its machine's kernel counts them.

use serde::{Deserialize, Serialize};
use throng_measure::{Interval, Operation, ProcessMetric, ProcessUse};

use super::growth::of_server;
use super::memory::MemoryFold;
use super::rates::{IntervalGrowth, cores_used, cost};

/// The resources that a server used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerCosts {
    /// CPU per connection, in microseconds.
    pub cpu_us_per_connection: Option<f64>,
    /// CPU per message, in microseconds.
    pub cpu_us_per_message: Option<f64>,
    /// Resident memory per open connection.
    pub rss_bytes_per_connection: Option<f64>,
    /// CPUs that it kept busy on average.
    pub cpu_cores_used: Option<f64>,
}

/// The server's process so far; it may have restarted in between.
#[derive(Debug, Default)]
pub(super) struct ForeignFold {
    /// Whether any interval had its CPU time.
    is_known: bool,
    rss_bytes_at_start: u64,
    memory: MemoryFold,
}

impl ForeignFold {
    /// Adds an interval, in which users had so many connections.
    pub(super) fn add(&mut self, interval: &Interval, connected: u64) {
        let rss_bytes = of_server(interval, ProcessMetric::RSS_BYTES).unwrap_or(0);
        if self.rss_bytes_at_start == 0 {
            self.rss_bytes_at_start = rss_bytes;
        }
        let rss_bytes_at_start = self.rss_bytes_at_start;
        let process = ProcessUse { rss_bytes, rss_bytes_at_start, ..ProcessUse::default() };
        self.memory.add(connected, &process);
        self.is_known |= of_server(interval, ProcessMetric::CPU_US).is_some();
    }

    /// Returns the costs, or `None` if nothing of the process is known.
    pub(super) fn costs(
        &self,
        growths: &[IntervalGrowth],
        messages: impl Fn(&IntervalGrowth) -> u64,
    ) -> Option<ServerCosts> {
        let cpu = |growth: &IntervalGrowth| growth.foreign_cpu;
        self.is_known.then(|| ServerCosts {
            cpu_us_per_connection: cost(growths, |growth| growth.ok[Operation::Connect], cpu),
            cpu_us_per_message: cost(growths, messages, cpu),
            rss_bytes_per_connection: self.memory.bytes_each(),
            cpu_cores_used: cores_used(growths, cpu),
        })
    }
}
