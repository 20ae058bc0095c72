//! The run file: a run as lines of JSON, written from its first second.
//!
//! The first line is the [`Header`], each further line an [`Interval`], and the last one the [`End`]
//! as `{"end": …}`. [`RunFileWriter`] writes it and [`read`] reads it, whole or cut short by a crash.

mod reader;
mod writer;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use reader::{ReadError, RunFile, RunFileReader, read};
pub use writer::{Appended, RunFileWriter, Truncate};

use crate::{Interval, Validity};

/// The schema that this version writes, and the only one that it reads.
pub const SCHEMA: &str = "throng.run/1";

/// What was to be run, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
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
    /// The most connections that the generator can hold on this machine, when it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// Facts about the machine by name: `kernel`, `cpu_model`, `memory_bytes`, `net.ipv4.…`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub machine: BTreeMap<String, String>,
}

impl Default for Header {
    fn default() -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            started: String::new(),
            throng_version: String::new(),
            command: Vec::new(),
            scenario: ScenarioSource::default(),
            target: String::new(),
            users_planned: 0,
            capacity: None,
            machine: BTreeMap::new(),
        }
    }
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
pub struct End {
    /// Why it ended.
    pub reason: EndReason,
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
pub enum EndReason {
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
    Header(&'a Header),
    Interval(&'a Interval),
    End { end: &'a End },
}

/// The last line, for reading.
#[derive(Deserialize)]
struct EndLine {
    end: End,
}
