//! What a lab ends in: tables, a verdict, and the same as JSON.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;
use throng_report::render::{Align, Table, findings, wrap};
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
    /// Where the run files were kept; none where nobody asked for them.
    pub kept: Option<PathBuf>,
    /// What to type next.
    pub next: Vec<NextCommand>,
}

/// A command, and what it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NextCommand {
    /// As it is typed after the program's name: `doctor --for 1M`.
    pub args: &'static str,
    /// What it does, in a few words.
    pub does: &'static str,
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
        f.write_str(&self.text("throng"))
    }
}

impl LabReport {
    /// Whether its numbers count: where it offers more to try, only when nothing is wrong with them.
    pub fn is_trustworthy(&self) -> bool {
        match self.next.is_empty() {
            true => self.grade < Grade::Invalid,
            false => self.grade == Grade::Valid && !self.interrupted,
        }
    }

    /// The report as text of [`WIDTH`] columns; `program` is how the reader calls this one.
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

    /// The verdict of what stopped it, where something is to be said of that, what was run, and how.
    fn head(&self) -> String {
        let first = if self.has_next_steps() { String::new() } else { self.first_line() };
        format!("{first}{}: {}\n{}\n", self.lab, self.article, self.setup)
    }

    /// What it means, and what to know before believing it.
    fn conclusions(&self) -> String {
        let mut text = String::new();
        if self.interrupted {
            text += "\nIt was ended early: what follows is about the part that was run.\n";
        }
        text += "\n";
        self.verdict.iter().for_each(|sentence| text += &format!("{sentence}\n"));
        self.notes.iter().for_each(|note| text += &format!("note: {note}\n"));
        match &self.diagnoses[..] {
            _ if self.has_next_steps() => {}
            [] => {}
            [one] => text += &findings(&one.diagnosis),
            rows => {
                text += "\nwhat stopped each of them\n";
                for RowDiagnosis { row, diagnosis } in rows {
                    text += &format!("  {row}: {}\n", diagnosis.verdict);
                }
            }
        }
        text
    }

    /// The verdict of the load that was stopped most gravely; the first of several.
    fn first_line(&self) -> String {
        let Some(worst) = self.diagnoses.iter().rev().max_by_key(|row| row.severity()) else {
            return String::new();
        };
        match self.diagnoses.len() {
            1 => format!("{}\n\n", worst.diagnosis.verdict),
            _ => format!("{}: {}\n\n", worst.row, worst.diagnosis.verdict),
        }
    }

    /// Whether it ends in what to type next: a result that is to be believed then says no more of its rows.
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
        // Words keep to the left: names, and what the articles say.
        let is_words = |(i, name): (usize, &String)| i == 0 || name.contains("article");
        let side = |words| if words { Align::Left } else { Align::Right };
        let align: Vec<_> = self.head.iter().enumerate().map(is_words).map(side).collect();
        let mut table = Table::with_head(self.head.clone()).aligned(&align);
        self.rows.iter().for_each(|row| table.row(row.clone()));
        match self.title.is_empty() {
            true => write!(f, "{table}"),
            false => write!(f, "{}\n\n{table}", wrap(&self.title, WIDTH)),
        }
    }
}

/// Columns of a terminal as it opens.
pub(crate) const WIDTH: usize = 80;

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
            kept: None,
            next: Vec::new(),
        };
        assert_eq!(
            report.to_string(),
            "x: An article\n10 users\n\nRates\n\n           rate\n---------  ----\nreuseport  9k/s\n\nIt holds.\nnote: one row is missing\n"
        );
    }

    fn offering(grade: Grade) -> LabReport {
        let diagnosis =
            Diagnosis { verdict: "Slowed down.".into(), findings: Vec::new(), unseen: Vec::new() };
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
    fn what_to_type_next_comes_last_and_by_the_name_that_was_typed() {
        let text = offering(Grade::Valid).text("target/release/throng");
        let end =
            "\nrun files: target/demo\n\nnext\n  target/release/throng lab  the experiments\n";
        assert!(text.ends_with(end), "{text}");
        assert!(!text.contains("Slowed down"), "a good result is one screen: {text}");
        let text = offering(Grade::Degraded).to_string();
        assert!(text.starts_with("Slowed down.\n\n"), "{text}");
    }

    #[test]
    fn prose_is_as_wide_as_a_terminal() {
        let report = LabReport {
            setup: "a sentence that goes on and on ".repeat(9),
            verdict: vec!["and a verdict as well ".repeat(12)],
            ..offering(Grade::Valid)
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
