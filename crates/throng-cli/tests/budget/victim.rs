//! The server under attack.

use std::fs;

use serde_json::Value;

use crate::process::{Serving, TestDir, eventually};

/// A server, and its memory at the start.
pub(crate) struct Victim {
    place: TestDir,
    server: Serving,
    /// The resident memory before the attack.
    before: u64,
}

impl Victim {
    /// Starts `throng serve` with `args`.
    pub(crate) fn serve(args: &[&str]) -> Self {
        let place = TestDir::new();
        let server = place.serve(args);
        let mut victim = Self { place, server, before: 0 };
        victim.before = victim.status("VmRSS:");
        victim
    }

    pub(crate) fn addr(&self) -> &str {
        &self.server.addr
    }

    /// Runs this scenario to its end, and returns the summary.
    pub(crate) fn run(&self, scenario: &str) -> Value {
        self.place.write("users.yaml", scenario);
        let flags = ["run", "users.yaml", "--no-record", "--json", "users.json"];
        let finished = self.place.throng(&flags);
        assert!(finished.code.is_some_and(|code| code != 2), "{finished:#?}");
        self.place.json("users.json")
    }

    /// Returns the highest growth of resident memory since the server was started.
    pub(crate) fn grown_most(&self) -> u64 {
        self.status("VmHWM:").saturating_sub(self.before)
    }

    /// Returns the growth of resident memory.
    pub(crate) fn grown(&self) -> u64 {
        self.status("VmRSS:").saturating_sub(self.before)
    }

    /// Returns the counters of the server.
    pub(crate) fn snapshot(&self) -> Value {
        let pid = self.server.process.pid().to_string();
        self.place.throng(&["ctl", "snapshot", "--json", "--pid", &pid]).exits_with(0).json()
    }

    /// Returns one of its counters or gauges.
    pub(crate) fn count(&self, name: &str) -> u64 {
        let snapshot = self.snapshot();
        snapshot["counters"][name].as_u64().unwrap_or_else(|| panic!("no {name}: {snapshot}"))
    }

    /// Waits until a counter is at least so high.
    #[track_caller]
    pub(crate) fn wait_for(&self, name: &str, at_least: u64) {
        eventually(name, || self.count(name) >= at_least);
    }

    /// Returns a line of `/proc/PID/status`, in bytes.
    fn status(&self, name: &str) -> u64 {
        let path = format!("/proc/{}/status", self.server.process.pid());
        let status = fs::read_to_string(path).expect("the server lives");
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }
}

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;
