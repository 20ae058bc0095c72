//! The sides of a comparison, and their runs.

use serde::Serialize;
use throng_measure::Grade;
use throng_measure::runfile::RunHeader;

use super::sample::RunSample;
use crate::Summary;

/// A run that is compared.
#[derive(Clone, Debug)]
pub struct CompareRun {
    /// The name of its file, as it is shown.
    pub file: String,
    /// The first line of its file.
    pub header: RunHeader,
    /// Its summary.
    pub summary: Summary,
    /// Its intervals.
    pub sample: RunSample,
    /// The commands that changed its load while it ran, `start 100`.
    pub steered: Vec<String>,
    /// What the reader of its file warned of.
    pub warnings: Vec<String>,
}

/// A side of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct ComparisonSide {
    /// Its name: `A` for the baseline.
    pub name: String,
    /// Its runs.
    pub runs: Vec<RunOfSide>,
}

/// The identity and the grade of a run of a side.
#[derive(Clone, Debug, Serialize)]
pub struct RunOfSide {
    /// Its name: `A`, or `A2` for the second repeat.
    pub name: String,
    /// Its file.
    pub file: String,
    /// The start of the run, RFC 3339.
    pub started: String,
    /// The path or name of its scenario.
    pub scenario: String,
    /// Its target.
    pub target: String,
    /// Its grade.
    pub grade: Grade,
    /// The number of its intervals.
    pub intervals: u64,
}

impl ComparisonSide {
    pub(super) fn of(name: &str, runs: &[CompareRun]) -> Self {
        let repeats = runs.len() > 1;
        let run = |(at, run): (usize, &CompareRun)| RunOfSide {
            name: if repeats { format!("{name}{}", at + 1) } else { name.to_owned() },
            file: run.file.clone(),
            started: run.summary.run.started.clone(),
            scenario: run.summary.run.scenario.clone(),
            target: run.summary.run.target.clone(),
            grade: run.summary.validity.grade,
            intervals: run.sample.intervals(),
        };
        Self { name: name.to_owned(), runs: runs.iter().enumerate().map(run).collect() }
    }
}

/// Returns `A` for 0, and `AA` after `Z`.
pub(super) fn side_name(mut at: usize) -> String {
    let mut name = String::new();
    loop {
        name.insert(0, char::from(b'A' + (at % 26) as u8));
        if at < 26 {
            return name;
        }
        at = at / 26 - 1;
    }
}
