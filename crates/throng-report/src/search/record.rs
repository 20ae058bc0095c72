//! The file of a search: a line that says what is searched for, one for each run, and the result.
//!
//! The file is whole after each line. A search that was killed goes on after its last run.

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};

use super::{Search, SearchMove, SearchResult, SearchRules, SearchRun};
use crate::runfile::ScenarioSource;
use crate::{Grade, Judgement};

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
}

/// The last line.
#[derive(Serialize, Deserialize)]
struct EndLine {
    end: SearchResult,
}

impl SearchRecord {
    /// Returns a search without runs.
    pub fn new(header: SearchHeader) -> Self {
        Self { header, runs: Vec::new(), end: None, is_torn: false }
    }

    /// Reads the file of a search. A last line that is torn is left out.
    ///
    /// # Errors
    /// The file cannot be read, or its first line is not that of a search.
    pub fn read(input: impl BufRead) -> io::Result<Self> {
        let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        let text = io::read_to_string(input)?;
        let mut lines = text.lines();
        let first = lines.next().ok_or_else(|| wrong("the file is empty".to_owned()))?;
        let header: SearchHeader = serde_json::from_str(first)
            .map_err(|error| wrong(format!("line 1 is not that of a search: {error}")))?;
        if header.throng_find != SEARCH_VERSION {
            let version = header.throng_find;
            return Err(wrong(format!("this version cannot read searches of version {version}")));
        }
        let mut record = Self { is_torn: !text.ends_with('\n'), ..Self::new(header) };
        for line in lines {
            if let Ok(EndLine { end }) = serde_json::from_str(line) {
                record.end = Some(end);
            } else if let Ok(run) = serde_json::from_str(line) {
                record.runs.push(run);
            }
        }
        Ok(record)
    }

    /// Returns what to do next.
    pub fn next(&self) -> SearchMove {
        let runs = self.runs.iter().map(|run| run.run).collect();
        Search::new(self.header.rules, runs).next()
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

/// The version of the format.
pub const SEARCH_VERSION: u32 = 1;
