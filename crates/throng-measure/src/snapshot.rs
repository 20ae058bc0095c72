//! The state of a server and of a machine at one moment.
//!
//! Counters only grow, from the start of the process. Gauges are as of the moment of the snapshot.
//! Histograms cover one interval and are merged, never averaged.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::counters::{CoreCounters, Merge, ServerCounters};

/// Occurrences by name: an errno's (`ECONNREFUSED`) or an error kind's (`expect_timeout`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tally(pub BTreeMap<String, u64>);

impl Tally {
    /// Counts `n` more of `name`.
    pub fn add(&mut self, name: impl AsRef<str>, n: u64) {
        if n > 0 {
            let count = self.0.entry(name.as_ref().to_owned()).or_default();
            *count = count.saturating_add(n);
        }
    }

    /// Reports whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the count of `name`.
    pub fn get(&self, name: impl AsRef<str>) -> u64 {
        self.0.get(name.as_ref()).copied().unwrap_or(0)
    }

    /// Returns the count of `name` and of all names below it: `http_status` has `http_status.429`.
    pub fn family(&self, name: &str) -> u64 {
        let family = self.0.iter().filter(|(one, _)| is_of_family(one, name));
        family.fold(0, |sum, (_, n)| sum.saturating_add(*n))
    }

    /// Returns the counts, the largest first.
    pub fn by_count(&self) -> Vec<(&str, u64)> {
        let mut entries: Vec<_> = self.0.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        entries.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        entries
    }

    /// Returns the sum of all counts.
    pub fn total(&self) -> u64 {
        self.0.values().fold(0, |sum: u64, n| sum.saturating_add(*n))
    }
}

/// Reports whether a tally counts `name` in this family: it is `family` itself, or stands below it.
pub fn is_of_family(name: &str, family: &str) -> bool {
    name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl Merge for Tally {
    fn merge(&mut self, other: &Self) {
        for (name, n) in &other.0 {
            self.add(name, *n);
        }
    }
}

/// The counters of a server at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerSnapshot {
    /// The listening address, `127.0.0.1:5555`.
    pub listen: String,
    /// The accept topology: `reuseport`, `shared` or `dispatch`.
    pub accept: String,
    /// The name of the handler: `ok`, `echo`, ….
    pub handler: String,
    /// Cores that run.
    pub cores: u64,
    /// Cores that did not answer in time, for example because a handler stalls: their counters are
    /// as of their last answer.
    pub cores_silent: u64,
    /// The limit of connections over all cores.
    pub connections_max: u64,
    /// The accept queue length that each listener requested; the kernel may allow less. 0 if
    /// unknown.
    pub backlog: u64,
    /// Counters of the cores' apps, summed.
    pub counters: ServerCounters,
    /// Counters of the event loops, summed.
    pub core: CoreCounters,
    /// Failures of `accept4` by errno.
    pub accept_errors: Tally,
    /// Connections closed because TLS failed, by the name of the failure.
    #[serde(skip_serializing_if = "Tally::is_empty")]
    pub tls_errors: Tally,
    /// Open connections of each core.
    pub open_per_core: Vec<u64>,
    /// CPU time of each core's thread since it began, in microseconds; empty if unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpu_us_per_core: Vec<u64>,
    /// Messages that wait in the mailbox of each core; empty if unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mailbox_per_core: Vec<u64>,
    /// The CPU time and memory of the server's process.
    pub process: ProcessUse,
}

/// Microseconds of CPU and bytes of memory of one process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessUse {
    /// Process id; 0 when unknown, and of the processes of several machines together.
    pub pid: u32,
    /// CPU time in user mode since the process began, in microseconds.
    pub cpu_user_us: u64,
    /// CPU time in the kernel since the process began, in microseconds.
    pub cpu_system_us: u64,
    /// Resident memory now, in bytes.
    pub rss_bytes: u64,
    /// Resident memory before the first connection, in bytes; growth per connection counts from
    /// here.
    pub rss_bytes_at_start: u64,
}

/// The CPU time of one program, and its identity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramUse {
    /// Process id.
    pub pid: u32,
    /// The program's name, at most 15 bytes of it.
    pub program: String,
    /// CPU time in thousandths of one CPU, on average since the previous sample; 1,500 is one and a
    /// half CPUs.
    pub millicpus: u64,
}

/// CPU time of the whole machine since it booted, in microseconds, from the first line of
/// `/proc/stat`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineUse {
    /// CPUs online.
    pub cpus: u64,
    /// Time that was not idle and not stolen, over all CPUs.
    pub cpu_busy_us: u64,
    /// Time that was idle or waited for a disk.
    pub cpu_idle_us: u64,
    /// Time that the hypervisor gave to others.
    pub cpu_stolen_us: u64,
}

impl ProcessUse {
    /// Reports whether it was measured: that of one process, or of several of a fleet together.
    pub fn is_known(&self) -> bool {
        self.pid != 0 || self.cpu_us() > 0 || self.rss_bytes > 0
    }

    /// Returns the CPU time in user mode and in the kernel, in microseconds.
    pub fn cpu_us(&self) -> u64 {
        self.cpu_user_us + self.cpu_system_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_is_a_plain_object() {
        let mut tally = Tally::default();
        tally.add("ECONNREFUSED", 2);
        tally.add("EMFILE", 0);
        assert_eq!(serde_json::to_string(&tally).unwrap(), r#"{"ECONNREFUSED":2}"#);
    }
}
