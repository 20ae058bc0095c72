//! The stream of a watch: a server's machine as lines of JSON, for whoever loads it from elsewhere.
//!
//! The first line is the [`WatchHeader`], each further one a [`WatchLine`]. The stream has no end of its own and goes one
//! way: a reader says nothing. Fields may be added; a reader passes over those that it does not know, and refuses another schema.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Finding, MachineUse, ProcessUse, ProgramUse, ServerSnapshot};

/// The schema that this version writes, and the only one that it reads.
pub const WATCH_SCHEMA: &str = "throng.watch/1";

/// No line is longer, the line break included; a reader ends a stream whose line is. A line takes about 6 KB.
pub const WATCH_LINE_BYTES_MAX: usize = 1 << 20;

/// Who watches what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchHeader {
    /// [`WATCH_SCHEMA`].
    pub schema: String,
    /// The version of throng that watches.
    pub throng_version: String,
    /// The ports of the server; empty for all.
    pub ports: Vec<u16>,
    /// The time between two lines, in milliseconds.
    pub interval_ms: u64,
    /// The running kernel's own id (`kernel.random.boot_id`), by which a reader on the same machine knows that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// The network namespace that is watched, `net:[4026531840]`; it tells two apart on one machine only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_namespace: Option<String>,
}

/// The server's machine at one moment. What is not known is absent, never 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchLine {
    /// Milliseconds since the watch began.
    pub at_ms: u64,
    /// Milliseconds since the line before; 0 in the first.
    pub span_ms: u64,
    /// CPU time of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineUse>,
    /// Counters and gauges of the kernel by name, as in the run file.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kernel: BTreeMap<String, i64>,
    /// The process that serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessUse>,
    /// What it says itself, when it is a throng server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerSnapshot>,
    /// Other programs that took the most CPU time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramUse>,
    /// What could not be read, and why, a sentence each: in every line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
}

/// What a watch came to, which it prints at its end and sends to nobody.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchEnd {
    /// In a sentence.
    pub verdict: String,
    /// How many looks there were.
    pub looks: u64,
    /// Seconds between the first and the last.
    pub seconds: f64,
    /// Counters that stand still on a machine that has no trouble, and moved.
    pub moved: Vec<CounterDelta>,
    /// What the rules say that need to know nothing of a load.
    pub findings: Vec<Finding>,
}

/// A counter of trouble that moved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CounterDelta {
    /// Its name in the run file.
    pub counter: String,
    /// What it means.
    pub means: String,
    /// By how much it grew.
    pub by: u64,
    /// When that began, in milliseconds since the watch did.
    pub began_ms: u64,
}

impl WatchHeader {
    /// Reads the first line of a stream.
    ///
    /// # Errors
    /// A sentence about what it is instead.
    pub fn parse(line: &str) -> Result<Self, String> {
        match serde_json::from_str::<Self>(line) {
            Ok(header) if header.schema == WATCH_SCHEMA => Ok(header),
            Ok(header) if !header.schema.is_empty() => Err(format!(
                "its schema is {}, and this version reads {WATCH_SCHEMA}",
                header.schema
            )),
            _ => Err(format!("its first line is not that of a watch ({WATCH_SCHEMA})")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_of_another_schema_or_of_something_else_is_refused() {
        let header = WatchHeader { schema: WATCH_SCHEMA.into(), ..Default::default() };
        let line = serde_json::to_string(&header).unwrap();
        assert_eq!(WatchHeader::parse(&line), Ok(header));
        let refused = |line: &str| WatchHeader::parse(line).unwrap_err();
        assert!(refused(r#"{"schema":"throng.watch/2"}"#).contains("throng.watch/2"));
        for line in ["", "{}", "SSH-2.0-OpenSSH_9.2", "[]", "7", "null"] {
            assert!(refused(line).contains("first line"), "{line}");
        }
    }

    #[test]
    fn a_line_of_a_newer_version_is_read_as_far_as_it_is_known() {
        let line = r#"{"at_ms":5,"weather":"fine","kernel":{"TcpExt.ListenDrops":3}}"#;
        let read: WatchLine = serde_json::from_str(line).unwrap();
        assert_eq!((read.at_ms, read.kernel["TcpExt.ListenDrops"]), (5, 3));
        assert_eq!((read.machine, read.process), (None, None), "what is not said is not zero");
    }
}
