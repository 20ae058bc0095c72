//! The server under attack.

use std::fs;

use serde_json::Value;

use crate::process::{Place, Serving, eventually};

/// A server, and how much memory it had at first.
pub(crate) struct Victim {
    place: Place,
    server: Serving,
    /// Resident memory before the attack.
    before: u64,
}

impl Victim {
    /// Starts `throng serve` with `args`.
    pub(crate) fn serve(args: &[&str]) -> Self {
        let place = Place::new();
        let server = place.serve(args);
        let mut victim = Self { place, server, before: 0 };
        victim.before = victim.status("VmRSS:");
        victim
    }

    pub(crate) fn addr(&self) -> &str {
        &self.server.addr
    }

    /// What resident memory has grown by, at most, since the server was started.
    pub(crate) fn grown_most(&self) -> u64 {
        self.status("VmHWM:").saturating_sub(self.before)
    }

    /// What resident memory has grown by.
    pub(crate) fn grown(&self) -> u64 {
        self.status("VmRSS:").saturating_sub(self.before)
    }

    /// What it has counted.
    pub(crate) fn snapshot(&self) -> Value {
        let pid = self.server.process.pid().to_string();
        self.place.throng(&["ctl", "snapshot", "--json", "--pid", &pid]).exits(0).json()
    }

    /// One of its counters, or a gauge.
    pub(crate) fn count(&self, name: &str) -> u64 {
        let snapshot = self.snapshot();
        snapshot["counters"][name].as_u64().unwrap_or_else(|| panic!("no {name}: {snapshot}"))
    }

    /// Waits until a counter is at least so high.
    #[track_caller]
    pub(crate) fn wait_for(&self, name: &str, at_least: u64) {
        eventually(name, || self.count(name) >= at_least);
    }

    /// A line of `/proc/PID/status`, in bytes.
    fn status(&self, name: &str) -> u64 {
        let path = format!("/proc/{}/status", self.server.process.pid());
        let status = fs::read_to_string(path).expect("the server lives");
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }
}

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;
