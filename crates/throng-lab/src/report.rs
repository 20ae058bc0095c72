//! The report of a lab, as text and as JSON.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;
use throng_measure::Grade;
use throng_report::render::{Align, Table, findings, wrap};
use throng_run::test_bed::RowDiagnosis;

use crate::options::LabInfo;

/// The result of a lab; `Display` shows it as text.
#[derive(Clone, Debug, Serialize)]
pub struct LabReport {
    /// The schema's name: `throng.lab/1`.
    pub schema: &'static str,
    /// The diagnosis of each load in the order of the runs, including a calibration.
    pub diagnoses: Vec<RowDiagnosis>,
    /// The lab's name.
    pub lab: &'static str,
    /// The article that the lab repeats.
    pub article: &'static str,
    /// The setup in a sentence: users, seconds, machine.
    pub setup: String,
    /// The measurements beside the article's figures.
    pub tables: Vec<LabTable>,
    /// The conclusions, a sentence or two each.
    pub verdict: Vec<String>,
    /// Reservations about the numbers.
    pub notes: Vec<String>,
    /// The validity of the numbers: the grade of the worst row.
    pub grade: Grade,
    /// True when the user ended the lab early.
    pub interrupted: bool,
    /// The rows as numbers.
    pub rows: Value,
    /// The folder of the run files; none where the lab did not keep them.
    pub kept: Option<PathBuf>,
    /// Commands to try next.
    pub next: Vec<NextCommand>,
}

/// A command to try next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NextCommand {
    /// The arguments after the program's name: `doctor --for 1M`.
    pub args: &'static str,
    /// The command's effect, in a few words.
    pub does: &'static str,
}

/// A table of text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LabTable {
    /// The table's title.
    pub title: String,
    /// The names of the columns.
    pub head: Vec<String>,
    /// The rows, as long as the head.
    pub rows: Vec<Vec<String>>,
}

impl LabTable {
    /// Returns a table without rows.
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
const SCHEMA: &str = "throng.lab/1";

impl fmt::Display for LabReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text("throng"))
    }
}

impl LabReport {
    /// Returns the empty report of a lab.
    pub(crate) fn of(info: &'static LabInfo) -> Self {
        Self {
            schema: SCHEMA,
            diagnoses: Vec::new(),
            lab: info.name,
            article: &info.article,
            setup: String::new(),
            tables: Vec::new(),
            verdict: Vec::new(),
            notes: Vec::new(),
            grade: Grade::Valid,
            interrupted: false,
            rows: Value::Null,
            kept: None,
            next: Vec::new(),
        }
    }

    /// Reports whether the numbers count. A report with commands to try next needs a valid result
    /// for that; for others a degraded one is enough.
    pub fn is_trustworthy(&self) -> bool {
        if self.next.is_empty() {
            self.grade < Grade::Invalid
        } else {
            self.grade == Grade::Valid && !self.interrupted
        }
    }

    /// Renders the report as text for a terminal. `program` is the name of this program, as
    /// the user typed it.
    pub fn text(&self, program: &str) -> String {
        let mut text = wrap(&self.head(), WIDTH);
        for table in &self.tables {
            text += &format!("\n{table}");
        }
        text += &wrap(&self.conclusions(), WIDTH);
        if let Some(folder) = &self.kept {
            text += &format!("\nrun files: {}\n", folder.display());
        }
        text += &self.next_steps(program);
        text
    }

    /// Renders the verdict of the worst diagnosis, the lab's name and article, and the setup.
    fn head(&self) -> String {
        let first = if self.has_next_steps() { String::new() } else { self.first_line() };
        format!("{first}{}: {}\n{}\n", self.lab, self.article, self.setup)
    }

    /// Renders the verdict, the notes and the diagnoses.
    fn conclusions(&self) -> String {
        let mut text = String::new();
        if self.interrupted {
            text += "\nThe lab was ended early: these conclusions are about the part that ran.\n";
        }
        text += "\n";
        self.verdict.iter().for_each(|sentence| text += &format!("{sentence}\n"));
        self.notes.iter().for_each(|note| text += &format!("note: {note}\n"));
        match &self.diagnoses[..] {
            _ if self.has_next_steps() => {}
            [] => {}
            [one] => text += &findings(&one.diagnosis),
            rows => {
                text += "\nwhat stopped each load\n";
                for RowDiagnosis { row, diagnosis } in rows {
                    text += &format!("  {row}: {}\n", diagnosis.verdict);
                }
            }
        }
        text
    }

    /// Returns the verdict of the diagnosis with the highest severity; the first of several.
    fn first_line(&self) -> String {
        let Some(worst) = self.diagnoses.iter().rev().max_by_key(|row| row.severity()) else {
            return String::new();
        };
        match self.diagnoses.len() {
            1 => format!("{}\n\n", worst.diagnosis.verdict),
            _ => format!("{}: {}\n\n", worst.row, worst.diagnosis.verdict),
        }
    }

    /// Reports whether the report ends with commands to try next. A valid one then leaves out the
    /// diagnoses of its rows.
    fn has_next_steps(&self) -> bool {
        !self.next.is_empty() && self.grade == Grade::Valid
    }

    fn next_steps(&self, program: &str) -> String {
        let mut table = Table::new().aligned(&[Align::Left, Align::Left]);
        for NextCommand { args, does } in &self.next {
            table.row([format!("  {program} {args}"), (*does).to_owned()]);
        }
        if table.is_empty() { String::new() } else { format!("\nnext\n{table}") }
    }
}

impl fmt::Display for LabTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Text is aligned to the left: names, and the articles' figures.
        let is_words = |(i, name): (usize, &String)| i == 0 || name.contains("article");
        let side = |words| if words { Align::Left } else { Align::Right };
        let align: Vec<_> = self.head.iter().enumerate().map(is_words).map(side).collect();
        let mut table = Table::with_head(self.head.clone()).aligned(&align);
        self.rows.iter().for_each(|row| table.row(row.clone()));
        if self.title.is_empty() {
            write!(f, "{table}")
        } else {
            write!(f, "{}\n\n{table}", wrap(&self.title, WIDTH))
        }
    }
}

/// The default columns of a terminal.
pub(crate) const WIDTH: usize = 80;

#[cfg(test)]
mod tests {
    use throng_measure::{Diagnosis, Finding, Severity, Side};

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
            kept: None,
            next: Vec::new(),
        };
        assert_eq!(
            report.to_string(),
            "x: An article\n10 users\n\nRates\n\n           rate\n---------  ----\n\
             reuseport  9k/s\n\nIt holds.\nnote: one row is missing\n"
        );
    }

    fn with_next_command(grade: Grade) -> LabReport {
        let diagnosis = Diagnosis { verdict: "Slowed down.".into(), ..Diagnosis::default() };
        LabReport {
            schema: SCHEMA,
            diagnoses: vec![RowDiagnosis { row: "a".into(), diagnosis }],
            lab: "demo",
            article: "An article",
            setup: "10 users".into(),
            tables: Vec::new(),
            verdict: vec!["It holds.".into()],
            notes: Vec::new(),
            grade,
            interrupted: false,
            rows: Value::Null,
            kept: Some("target/demo".into()),
            next: vec![NextCommand { args: "lab", does: "the experiments" }],
        }
    }

    #[test]
    fn the_commands_to_try_next_come_last_with_the_typed_name() {
        let text = with_next_command(Grade::Valid).text("target/release/throng");
        let end =
            "\nrun files: target/demo\n\nnext\n  target/release/throng lab  the experiments\n";
        assert!(text.ends_with(end), "{text}");
        assert!(!text.contains("Slowed down"), "a good result is one screen: {text}");
        let text = with_next_command(Grade::Degraded).to_string();
        assert!(text.starts_with("Slowed down.\n\n"), "{text}");
    }

    #[test]
    fn prose_is_as_wide_as_a_terminal() {
        let report = LabReport {
            setup: "a sentence that goes on and on ".repeat(9),
            verdict: vec!["and a verdict as well ".repeat(12)],
            ..with_next_command(Grade::Valid)
        };
        let text = report.to_string();
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
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
                    ..Diagnosis::default()
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
            kept: None,
            next: Vec::new(),
        };
        let text = report.to_string();
        assert_eq!(text.lines().next(), Some("b: Stopped."));
        assert!(
            text.ends_with("  calibration: Nothing.\n  a: Slowed down.\n  b: Stopped.\n"),
            "{text}"
        );
    }
}
