//! What a lab ends in: tables, a verdict, and the same as JSON.

use std::fmt;

use serde::Serialize;
use serde_json::Value;
use throng_report::Grade;
use throng_report::render::{Align, Table};

/// The result of a lab; `Display` shows it as text.
#[derive(Clone, Debug, Serialize)]
pub struct LabReport {
    /// `throng.lab/1`.
    pub schema: &'static str,
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
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_reads_as_setup_tables_verdict_notes() {
        let mut table = LabTable::new("Rates", ["", "rate"]);
        table.row(["reuseport".into(), "9k/s".into()]);
        let report = LabReport {
            schema: SCHEMA,
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
}
