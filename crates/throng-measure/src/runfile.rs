//! The run file: a run as lines of JSON, written from its first second.
//!
//! The first line is the [`RunHeader`], each further line an [`Interval`], and the last line the
//! [`RunEnd`] as `{"end": …}`. [`RunFileWriter`] writes the file and [`read`] reads it, whole or
//! cut short by a crash.

mod number;
mod reader;
mod writer;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use crate::ceiling::Ceiling;
pub use reader::{LINE_BYTES_MAX, ReadError, RunFile, RunFileReader, read, resumable_bytes};
pub use writer::{AppendOutcome, RunFileWriter, Truncate};

use crate::{EndpointFacts, Interval, LatencyStats, RunMachine, Validity};

/// The schema that this version writes, and the only schema that it reads.
pub const SCHEMA: &str = "throng.run/1";

/// Reports whether a file that begins with `head` is a run file of any version, or the beginning of
/// one. [`HEAD_BYTES`] bytes are enough.
pub fn is_run_file(head: &[u8]) -> bool {
    head.starts_with(MARK) || MARK.starts_with(head)
}

/// The beginning of the first line in every version.
const MARK: &[u8] = b"{\"schema\":\"throng.run/";

/// Bytes that [`is_run_file`] compares.
pub const HEAD_BYTES: usize = MARK.len();

/// The first line: the plan of the run, and its machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunHeader {
    /// The schema of the file, [`SCHEMA`].
    pub schema: String,
    /// The id of the run, by which `throng run --resume` takes it over; none if one machine makes
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The start of the run, RFC 3339.
    pub started: String,
    /// The version of throng that ran or imported the run.
    pub throng_version: String,
    /// The command line.
    pub command: Vec<String>,
    /// The full scenario.
    pub scenario: ScenarioSource,
    /// The target, `tcp://127.0.0.1:5555`.
    pub target: String,
    /// The most users that the scenario starts at a time.
    pub users_planned: u64,
    /// The length of all phases of the load, in milliseconds, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_ms: Option<u64>,
    /// The most connections that the generator can hold on this machine, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// Whether the target is an address of the generator's own machine, so that server and
    /// generator share its CPUs and memory. True for files without this field.
    pub target_is_here: bool,
    /// Whether the server whose counters the run has is one of several that the load reaches: it
    /// does not listen at each target.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub server_is_part: bool,
    /// Whether the connections were over TLS and the server's certificate was not verified.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tls_unverified: bool,
    /// The share of the connects over TLS that offer to resume a session, if there is one; absent
    /// where the connections are plain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_resume: Option<f64>,
    /// The maximum load of the generator on this machine, if it was measured before the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
    /// Facts about the machine by name: `kernel`, `cpu_model`, `memory_bytes`, `net.ipv4.…`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub machine: BTreeMap<String, String>,
    /// Limits of the generator's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_facts: Option<EndpointFacts>,
    /// Limits of the server's end, if it was known when the run began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_facts: Option<EndpointFacts>,
    /// The log of another tool that the run was imported from; absent if throng ran it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedFrom>,
    /// The machines that make the run together; none if one machine makes it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<RunMachine>,
}

/// The origin of a run that throng did not run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportedFrom {
    /// The tool that ran the load: `tsung`.
    pub tool: String,
    /// The tool's version, if its log says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The kind of its log: `tsung.log`.
    pub format: String,
    /// The name of the file.
    pub file: String,
    /// Statistics of latencies over the whole run, where the log has them: percentiles of intervals
    /// cannot be joined.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub latency_stats: BTreeMap<String, LatencyStats>,
}

impl ImportedFrom {
    /// Names the log and its tool: `tsung.log of tsung 1.7.0`.
    pub fn describe(&self) -> String {
        match &self.version {
            Some(version) => format!("{} of {} {version}", self.format, self.tool),
            None if self.format.starts_with(&self.tool) => self.format.clone(),
            None => format!("{} of {}", self.format, self.tool),
        }
    }
}

impl Default for RunHeader {
    fn default() -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            id: None,
            started: String::new(),
            throng_version: String::new(),
            command: Vec::new(),
            scenario: ScenarioSource::default(),
            target: String::new(),
            users_planned: 0,
            planned_ms: None,
            capacity: None,
            target_is_here: true,
            server_is_part: false,
            tls_unverified: false,
            tls_resume: None,
            ceiling: None,
            machine: BTreeMap::new(),
            client_facts: None,
            server_facts: None,
            imported: None,
            machines: Vec::new(),
        }
    }
}

/// A scenario and its source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScenarioSource {
    /// The scenario's path, or the name of a bundled scenario.
    pub path: String,
    /// The scenario's text.
    pub source: String,
}

/// The last line: the end of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunEnd {
    /// The reason why the run ended.
    pub reason: RunEndReason,
    /// Details, if there are any: an error, a signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Lines that could not be written.
    pub lines_lost: u64,
    /// The grade that the generator gave the run, before it could know of torn lines.
    pub validity: Validity,
}

/// The reasons why a run ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEndReason {
    /// The scenario was over.
    #[default]
    Finished,
    /// A request to end it: Ctrl-C, SIGTERM, `throng ctl`.
    Interrupted,
    /// The target was gone.
    TargetLost,
    /// Every connect was refused for some time, and none had ever succeeded.
    Unreached,
    /// The generator could not go on.
    Failed,
    /// A reason of a newer version.
    #[serde(other)]
    Unknown,
}

/// Any line, for writing.
#[derive(Serialize)]
#[serde(untagged)]
enum Line<'a> {
    Header(&'a RunHeader),
    Interval(&'a Interval),
    End { end: &'a RunEnd },
}

/// The last line, for reading.
#[derive(Deserialize)]
struct EndLine {
    end: RunEnd,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_file_is_known_by_its_first_bytes_however_early_it_was_cut() {
        let written =
            RunFileWriter::create(Vec::new(), &RunHeader::default()).unwrap().into_inner();
        for cut in 0..written.len() {
            assert!(is_run_file(&written[..cut]), "cut at {cut}");
        }
        assert!(is_run_file(b"{\"schema\":\"throng.run/2\""));
        for other in [&b"{}"[..], b"precious", b"\n", b"{\"schema\":\"throng.watch/1\"}"] {
            assert!(!is_run_file(other), "{}", String::from_utf8_lossy(other));
        }
    }
}
