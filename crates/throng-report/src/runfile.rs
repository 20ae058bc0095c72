//! The run file: a run as lines of JSON, written from its first second.
//!
//! The first line is the [`Header`], each further line an [`Interval`], and the last one the [`End`]
//! as `{"end": …}`. [`RunFileWriter`] writes it and [`read`] reads it, whole or cut short by a crash.

mod reader;
mod writer;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use reader::{LINE_BYTES_MAX, ReadError, RunFile, RunFileReader, read};
pub use writer::{AppendOutcome, RunFileWriter, Truncate};

use crate::{Interval, Validity};

/// The schema that this version writes, and the only one that it reads.
pub const SCHEMA: &str = "throng.run/1";

/// Whether a file that begins with `head` is a run file, of whatever version, or the beginning of one.
/// [`HEAD_BYTES`] tell.
pub fn is_run_file(head: &[u8]) -> bool {
    head.starts_with(MARK) || MARK.starts_with(head)
}

/// As every version writes its first line.
const MARK: &[u8] = b"{\"schema\":\"throng.run/";

/// Bytes that [`is_run_file`] looks at.
pub const HEAD_BYTES: usize = MARK.len();

/// What was to be run, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunHeader {
    /// [`SCHEMA`].
    pub schema: String,
    /// When the run began, RFC 3339.
    pub started: String,
    /// The version of throng that ran.
    pub throng_version: String,
    /// The command line.
    pub command: Vec<String>,
    /// The scenario, in full.
    pub scenario: ScenarioSource,
    /// What was loaded, `tcp://127.0.0.1:5555`.
    pub target: String,
    /// The most users that the scenario asks for at a time.
    pub users_planned: u64,
    /// The length of all phases of the load, in milliseconds, when it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_ms: Option<u64>,
    /// The most connections that the generator can hold on this machine, when it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// Whether the target is an address of the generator's own machine, so that both ends share its CPUs and memory. Files
    /// that do not say are of such runs.
    pub target_is_here: bool,
    /// What the generator can do at most on this machine, when it was measured before the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
    /// Facts about the machine by name: `kernel`, `cpu_model`, `memory_bytes`, `net.ipv4.…`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub machine: BTreeMap<String, String>,
}

impl Default for RunHeader {
    fn default() -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            started: String::new(),
            throng_version: String::new(),
            command: Vec::new(),
            scenario: ScenarioSource::default(),
            target: String::new(),
            users_planned: 0,
            planned_ms: None,
            capacity: None,
            target_is_here: true,
            ceiling: None,
            machine: BTreeMap::new(),
        }
    }
}

/// What a generator did at most against a peer that does nothing, on the machine and in the minute of the run. Where the target is on
/// another machine, what it would do if the peer took no CPU time beside it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ceiling {
    /// Connects a second, each closed again; those of Phoenix with a join.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connects_per_s: Option<f64>,
    /// Messages a second that were answered, or sent where the scenario waits for no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_per_s: Option<f64>,
    /// How late its timers are, 99 % of them at most, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_error_us_p99: Option<u64>,
    /// Resident memory of a connected user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_user: Option<f64>,
}

/// A scenario as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScenarioSource {
    /// Its path, or the name of a bundled one.
    pub path: String,
    /// Its text.
    pub source: String,
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunEnd {
    /// Why it ended.
    pub reason: RunEndReason,
    /// More about that, when there is more: an error, a signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Lines that could not be written.
    pub lines_lost: u64,
    /// The grade that the generator gave the run, before it could know of torn lines.
    pub validity: Validity,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEndReason {
    /// The scenario was over.
    #[default]
    Finished,
    /// Somebody asked for it: Ctrl-C, SIGTERM, `throng ctl`.
    Interrupted,
    /// The target was gone.
    TargetLost,
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
