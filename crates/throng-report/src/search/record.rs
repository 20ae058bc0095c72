//! The file of a search: a line that says what is searched for, one for each run, and the result.
//!
//! The file is whole after each line. A search that was killed goes on after its last run.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};
use throng_base::input_file::{SEARCH_BYTES_MAX, read_all};
use throng_measure::Grade;
use throng_measure::runfile::ScenarioSource;

use super::{Search, SearchBracket, SearchMove, SearchResult, SearchRules, SearchRun};
use crate::{Judgement, Summary, threshold};

/// Reports whether a file that begins with `head` is that of a search, of this or another version.
/// [`SEARCH_HEAD_BYTES`] bytes are enough.
pub fn is_search_file(head: &[u8]) -> bool {
    head.starts_with(MARK)
}

/// What is searched for: the first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchHeader {
    /// Version of the format: [`SEARCH_VERSION`].
    pub throng_find: u32,
    /// The scenario.
    pub scenario: ScenarioSource,
    /// The knob: `users`, `arrivals`, or a parameter of the scenario.
    pub knob: String,
    /// Unit of the knob's values: nothing, `/s` or `s`.
    pub unit: String,
    /// The conditions that a run must meet.
    pub slo: Vec<String>,
    /// What the search keeps to.
    pub rules: SearchRules,
    /// Further flags of each run.
    pub flags: Vec<String>,
}

/// One run: a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedRun {
    /// The value and the outcome.
    #[serde(flatten)]
    pub run: SearchRun,
    /// The grade of the run; `None` if it could not run.
    pub grade: Option<Grade>,
    /// The measured value of each condition.
    pub judgements: Vec<Judgement>,
    /// The load that the run reached, by the names of thresholds: [`RecordedRun::reached_by`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reached: BTreeMap<String, f64>,
    /// The verdict of the run, or why it could not run.
    pub verdict: String,
    /// Its run file.
    pub run_file: String,
}

/// A search: what it looks for, its runs, and the result if it has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchRecord {
    /// The first line.
    pub header: SearchHeader,
    /// The runs in their order.
    pub runs: Vec<RecordedRun>,
    /// The result.
    pub end: Option<SearchResult>,
    /// Whether the last line of the file has no end, because the search was killed.
    #[serde(skip)]
    pub is_torn: bool,
    /// Lines that are neither a run nor the result.
    #[serde(skip)]
    pub lines_torn: u64,
    /// Void runs since the last one that counts. They are not in the file, so the search goes on
    /// after them.
    #[serde(skip)]
    voids: usize,
}

/// The beginning of the first line in every version.
#[derive(Deserialize)]
struct VersionLine {
    throng_find: u32,
}

/// The last line.
#[derive(Serialize, Deserialize)]
struct EndLine {
    end: SearchResult,
}

impl RecordedRun {
    /// Returns the load that a run reached: connections, and rates of what it did.
    pub fn reached_by(summary: &Summary) -> BTreeMap<String, f64> {
        let value = |name: &&str| threshold::value(name, summary).flatten();
        let known = REACHED.iter().filter_map(|name| Some(((*name).to_owned(), value(name)?)));
        known.filter(|(_, value)| *value > 0.0).collect()
    }
}

impl SearchRecord {
    /// Returns a search without runs.
    pub fn new(header: SearchHeader) -> Self {
        Self { header, runs: Vec::new(), end: None, is_torn: false, lines_torn: 0, voids: 0 }
    }

    /// Reads the file of a search. Lines that are torn are left out and counted.
    ///
    /// # Errors
    /// The file cannot be read, or its first line is not that of a search.
    pub fn read(input: impl BufRead) -> io::Result<Self> {
        let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        let bytes = read_all(input, SEARCH_BYTES_MAX)?;
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.lines();
        let first = lines.next().ok_or_else(|| wrong("the file is empty".to_owned()))?;
        let other = |error| wrong(format!("line 1 is not that of a search: {error}"));
        let VersionLine { throng_find: version } = serde_json::from_str(first).map_err(other)?;
        if version != SEARCH_VERSION {
            return Err(wrong(format!(
                "it is a search of version {version}; this version of throng reads version \
                 {SEARCH_VERSION}"
            )));
        }
        let header: SearchHeader = serde_json::from_str(first).map_err(other)?;
        let mut record = Self { is_torn: !text.ends_with('\n'), ..Self::new(header) };
        for line in lines {
            if let Ok(EndLine { end }) = serde_json::from_str(line) {
                record.end = Some(end);
            } else if let Ok(run) = serde_json::from_str(line) {
                record.runs.push(run);
            } else {
                record.lines_torn += 1;
            }
        }
        Ok(record)
    }

    /// Returns what to do next.
    pub fn next(&self) -> SearchMove {
        self.search().next()
    }

    /// Returns the values that the limit is between: those of the result, or what is known so far.
    pub fn bracket(&self) -> SearchBracket {
        match self.end {
            Some(SearchResult { found, bound, .. }) => SearchBracket { found, bound },
            None => self.search().bracket(),
        }
    }

    /// Notes a run that is void: [`super::JudgedRun::is_void`]. Reports whether its value may be
    /// tried again.
    pub fn may_repeat_void(&mut self) -> bool {
        self.voids += 1;
        self.voids < VOIDS_MAX
    }

    /// Adds a run.
    pub fn push(&mut self, run: RecordedRun) {
        self.voids = 0;
        self.runs.push(run);
    }

    fn search(&self) -> Search {
        let runs = self.runs.iter().map(|run| run.run).collect();
        Search::new(self.header.rules, runs)
    }

    /// Writes the first line.
    pub fn write_header(&self, out: &mut impl Write) -> io::Result<()> {
        write_line(out, &self.header)
    }

    /// Writes the line of a run.
    pub fn write_run(run: &RecordedRun, out: &mut impl Write) -> io::Result<()> {
        write_line(out, run)
    }

    /// Writes the last line.
    pub fn write_end(end: SearchResult, out: &mut impl Write) -> io::Result<()> {
        write_line(out, &EndLine { end })
    }
}

/// Writes one line at once, so that a torn line can only be the last one.
fn write_line(out: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Runs in a row that never reached the server, after which a search waits for no more.
const VOIDS_MAX: usize = 2;

/// The version of the format.
pub const SEARCH_VERSION: u32 = 1;

/// The beginning of the first line in every version.
const MARK: &[u8] = b"{\"throng_find\":";

/// Bytes that [`is_search_file`] compares.
pub const SEARCH_HEAD_BYTES: usize = MARK.len();

/// What a run reached, as thresholds name it.
const REACHED: &[&str] = &[
    "connected_most",
    "connect.rate_mean",
    "message.rate_mean",
    "push.rate_mean",
    "http.rate_mean",
];
