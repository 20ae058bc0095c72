//! The stream of a watch: a server's machine as lines of JSON, for a generator on another machine.
//!
//! The first line is the [`WatchHeader`], each further line a [`WatchLine`]. The stream has no last
//! line and goes one way: the reader sends nothing. Fields may be added; a reader ignores unknown
//! fields and refuses another schema.

use serde::{Deserialize, Serialize};

use crate::{
    EndpointFacts, Finding, KernelCounters, MachineUse, ProcessUse, ProgramUse, ServerSnapshot,
};

/// The schema that this version writes, and the only schema that it reads.
pub const WATCH_SCHEMA: &str = "throng.watch/1";

/// The length of the longest line in bytes, the line break included; a reader ends a stream with a
/// longer line. A line takes about 6 KB.
pub const WATCH_LINE_BYTES_MAX: usize = 1 << 20;

/// The identity of a watch: its version, its target and its machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchHeader {
    /// The schema of the stream, [`WATCH_SCHEMA`].
    pub schema: String,
    /// The version of throng that watches.
    pub throng_version: String,
    /// The ports of the server; empty for all.
    pub ports: Vec<u16>,
    /// The time between two lines, in milliseconds.
    pub interval_ms: u64,
    /// The id of the running kernel (`kernel.random.boot_id`). A reader on the same machine
    /// recognizes its own machine by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// The network namespace that is watched, `net:[4026531840]`; unique on one machine only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_namespace: Option<String>,
    /// Limits of the server's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<EndpointFacts>,
}

/// The server's machine at one moment. An unknown value is absent, never 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchLine {
    /// Milliseconds since the watch began.
    pub at_ms: u64,
    /// Milliseconds since the previous line; 0 in the first.
    pub span_ms: u64,
    /// CPU time of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineUse>,
    /// Counters and gauges of the kernel by name, as in the run file.
    #[serde(skip_serializing_if = "KernelCounters::is_empty")]
    pub kernel: KernelCounters,
    /// The server's process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessUse>,
    /// The server's own counters, if it is a throng server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerSnapshot>,
    /// The other programs that used the most CPU time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramUse>,
    /// Sources that could not be read, with reasons, one sentence each; in every line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
}

/// The result of a watch, which `throng doctor --watch` prints at its end and does not send.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchEnd {
    /// The conclusion, in one sentence.
    pub verdict: String,
    /// The number of samples.
    pub looks: u64,
    /// Seconds between the first and the last sample.
    pub seconds: f64,
    /// Trouble counters that grew; they are flat on a healthy machine.
    pub moved: Vec<CounterDelta>,
    /// Findings of the rules that need no data from a generator.
    pub findings: Vec<Finding>,
}

/// A trouble counter that grew.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CounterDelta {
    /// The counter's name in the run file.
    pub counter: String,
    /// The meaning of the counter.
    pub means: String,
    /// The growth of the counter.
    pub by: u64,
    /// The start of the growth, in milliseconds since the watch began.
    pub began_ms: u64,
}

impl WatchHeader {
    /// Reads the first line of a stream.
    ///
    /// # Errors
    /// A sentence that says how the line differs from a header.
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
    use crate::Metric;

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
        let drops = Metric::TCPEXT_LISTEN_DROPS;
        let line = format!(r#"{{"at_ms":5,"weather":"fine","kernel":{{"{drops}":3}}}}"#);
        let read: WatchLine = serde_json::from_str(&line).unwrap();
        assert_eq!((read.at_ms, read.kernel[drops]), (5, 3));
        assert_eq!((read.machine, read.process), (None, None), "an absent value is not zero");
    }
}
