//! What a lab ends in: tables, a verdict, and the same as JSON.

use std::fmt;

use serde::Serialize;
use serde_json::Value;
use throng_report::render::{Align, Table, findings};
use throng_report::{Diagnosis, Grade, Severity};

/// The result of a lab; `Display` shows it as text.
#[derive(Clone, Debug, Serialize)]
pub struct LabReport {
    /// `throng.lab/1`.
    pub schema: &'static str,
    /// What stopped each load, in the order in which they were run, a calibration included.
    pub diagnoses: Vec<RowDiagnosis>,
    /// Which lab.
    pub lab: &'static str,
    /// The article that it redoes.
    pub article: &'static str,
    /// What was run, in a sentence: users, seconds, where.
    pub setup: String,
    /// What was measured, beside what the article says.
    pub tables: Vec<LabTable>,
    /// What it means, a sentence or two each.
    pub verdict: Vec<String>,
    /// What a reader should know before believing it.
    pub notes: Vec<String>,
    /// How far its numbers can be trusted: the grade of its worst row.
    pub grade: Grade,
    /// Whether it was ended early.
    pub interrupted: bool,
    /// The rows as numbers.
    pub rows: Value,
}

/// What stopped one of a lab's loads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowDiagnosis {
    /// The name of its row.
    pub row: String,
    /// The conclusion.
    #[serde(flatten)]
    pub diagnosis: Diagnosis,
}

impl RowDiagnosis {
    fn severity(&self) -> Option<Severity> {
        self.diagnosis.findings.first().map(|finding| finding.severity)
    }
}

/// A table of text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LabTable {
    /// What it shows.
    pub title: String,
    /// The names of the columns.
    pub head: Vec<String>,
    /// The rows, as long as the head.
    pub rows: Vec<Vec<String>>,
}

impl LabTable {
    /// A table with no row yet.
    pub fn new<const N: usize>(title: impl Into<String>, head: [&str; N]) -> Self {
        let head = head.map(str::to_owned).to_vec();
        Self { title: title.into(), head, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.head.len(), "a row is as long as the head");
        self.rows.push(cells.to_vec());
    }
}

/// The schema of [`LabReport`] in JSON.
pub(crate) const SCHEMA: &str = "throng.lab/1";

impl fmt::Display for LabReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first_line(f)?;
        writeln!(f, "{}: {}\n{}", self.lab, self.article, self.setup)?;
        for LabTable { title, head, rows } in &self.tables {
            // Words keep to the left: names, and what the articles say.
            let is_words = |(i, name): (usize, &String)| i == 0 || name.contains("article");
            let side = |words| if words { Align::Left } else { Align::Right };
            let align: Vec<_> = head.iter().enumerate().map(is_words).map(side).collect();
            let mut table = Table::with_head(head.clone()).aligned(&align);
            rows.iter().for_each(|row| table.row(row.clone()));
            write!(f, "\n{title}\n\n{table}")?;
        }
        if self.interrupted {
            writeln!(f, "\nIt was ended early: what follows is about the part that was run.")?;
        }
        writeln!(f)?;
        for sentence in &self.verdict {
            writeln!(f, "{sentence}")?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        match &self.diagnoses[..] {
            [] => Ok(()),
            [one] => f.write_str(&findings(&one.diagnosis)),
            rows => {
                writeln!(f, "\nwhat stopped each of them")?;
                rows.iter()
                    .try_for_each(|row| writeln!(f, "  {}: {}", row.row, row.diagnosis.verdict))
            }
        }
    }
}

impl LabReport {
    /// The verdict of the load that was stopped most gravely; the first of several.
    fn first_line(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(worst) = self.diagnoses.iter().rev().max_by_key(|row| row.severity()) else {
            return Ok(());
        };
        match self.diagnoses.len() {
            1 => writeln!(f, "{}\n", worst.diagnosis.verdict),
            _ => writeln!(f, "{}: {}\n", worst.row, worst.diagnosis.verdict),
        }
    }
}

#[cfg(test)]
mod tests {
    use throng_report::{Finding, Side};

    use super::*;

    #[test]
    fn a_report_reads_as_setup_tables_verdict_notes() {
        let mut table = LabTable::new("Rates", ["", "rate"]);
        table.row(["reuseport".into(), "9k/s".into()]);
        let report = LabReport {
            schema: SCHEMA,
            diagnoses: Vec::new(),
            lab: "x",
            article: "An article",
            setup: "10 users".into(),
            tables: vec![table],
            verdict: vec!["It holds.".into()],
            notes: vec!["one row is missing".into()],
            grade: Grade::Valid,
            interrupted: false,
            rows: Value::Null,
        };
        assert_eq!(
            report.to_string(),
            "x: An article\n10 users\n\nRates\n\n           rate\n---------  ----\nreuseport  9k/s\n\nIt holds.\nnote: one row is missing\n"
        );
    }

    #[test]
    fn the_verdict_of_the_worst_row_comes_first_and_that_of_each_last() {
        let row =
            |row: &str, verdict: &str, severity: Option<Severity>| RowDiagnosis {
                row: row.into(),
                diagnosis: Diagnosis {
                    verdict: verdict.into(),
                    findings: Vec::from_iter(severity.map(|severity| {
                        Finding::new("x", Side::Server, "X.").with_severity(severity)
                    })),
                    unseen: Vec::new(),
                },
            };
        let slowed = row("a", "Slowed down.", Some(Severity::Slowed));
        let stopped = row("b", "Stopped.", Some(Severity::Stopped));
        let report = LabReport {
            schema: SCHEMA,
            diagnoses: vec![row("calibration", "Nothing.", None), slowed, stopped],
            lab: "x",
            article: "An article",
            setup: "10 users".into(),
            tables: Vec::new(),
            verdict: Vec::new(),
            notes: Vec::new(),
            grade: Grade::Valid,
            interrupted: false,
            rows: Value::Null,
        };
        let text = report.to_string();
        assert_eq!(text.lines().next(), Some("b: Stopped."));
        assert!(
            text.ends_with("  calibration: Nothing.\n  a: Slowed down.\n  b: Stopped.\n"),
            "{text}"
        );
    }
}
