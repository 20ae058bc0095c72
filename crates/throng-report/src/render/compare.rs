//! A comparison as text and as Markdown.

use std::fmt::Write as _;

use super::escape::escape_lines;
use super::markdown::escaped;
use super::table::{Align, Table};
use super::wrap;
use crate::compare::{Comparison, Conclusion, FigureRow, RegressionResult, RunOfSide};

/// Returns a comparison as text of 80 columns. Control characters of files are made visible.
pub fn compare_text(comparison: &Comparison) -> String {
    let mut text = String::new();
    for run in comparison.sides.iter().flat_map(|side| &side.runs) {
        let line = wrap(&format!("    {}", escape_lines(&described(run))), WIDTH);
        let _ = writeln!(text, "{:<3} {}", run.name, line.trim_start());
    }
    if !comparison.mismatches.is_empty() {
        let _ = writeln!(text, "\nBefore you compare:");
        for mismatch in &comparison.mismatches {
            text += &item(&mismatch.text);
        }
    }
    for (at, conclusion) in comparison.conclusions.iter().enumerate() {
        let _ = writeln!(text, "\n{} against A:", conclusion.side);
        sentences_of(conclusion).iter().for_each(|sentence| text += &item(sentence));
        let head = ["", "A", &conclusion.side, "change", "95 % interval", ""];
        let mut table = Table::with_head(head).aligned(&ALIGNMENT);
        for row in &comparison.figures {
            table.row(cells(row, at));
        }
        let _ = write!(text, "\n{table}");
    }
    let _ = write!(text, "\n{}", wrap(&comparison.method.note, WIDTH));
    if !comparison.regressions.is_empty() {
        text += "\n\n";
        for result in &comparison.regressions {
            text += &wrap(&regression(result), WIDTH);
            text.push('\n');
        }
    }
    escape_lines(text.trim_end())
}

/// Returns a comparison as Markdown, for a comment of a pull request.
pub fn compare_markdown(comparison: &Comparison) -> String {
    let mut text = String::new();
    for run in comparison.sides.iter().flat_map(|side| &side.runs) {
        let _ = writeln!(text, "- **{}** {}", run.name, escaped(&described(run)));
    }
    if !comparison.mismatches.is_empty() {
        let _ = writeln!(text, "\n**Before you compare:**\n");
        for mismatch in &comparison.mismatches {
            let _ = writeln!(text, "- {}", escaped(&mismatch.text));
        }
    }
    for (at, conclusion) in comparison.conclusions.iter().enumerate() {
        let side = &conclusion.side;
        let _ = writeln!(text, "\n**{side} against A:**\n");
        for sentence in sentences_of(conclusion) {
            let _ = writeln!(text, "- {}", escaped(&sentence));
        }
        let _ = writeln!(text, "\n| | A | {side} | change | 95 % interval | |");
        let _ = writeln!(text, "|---|--:|--:|--:|--:|---|");
        for row in &comparison.figures {
            let cells = cells(row, at).map(|cell| escaped(&cell));
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
    }
    if !comparison.regressions.is_empty() {
        text += "\n| regression | side | | |\n|---|---|---|---|\n";
        for result in &comparison.regressions {
            let verdict = if result.beyond { "**beyond**" } else { "within" };
            let [of, what] = [&result.regression, &result.text].map(|text| escaped(text));
            let _ = writeln!(text, "| {of} | {} | {verdict} | {what} |", result.side);
        }
    }
    let _ = write!(text, "\n{}", escaped(&comparison.method.note));
    text
}

/// Describes a run in one line.
fn described(run: &RunOfSide) -> String {
    let parts = [&run.file, &run.scenario, &run.target, &run.started].map(String::as_str);
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{}, {}", parts.join(", "), run.grade).replace('\n', " ")
}

fn sentences_of(conclusion: &Conclusion) -> Vec<String> {
    let mut sentences = conclusion.sentences.clone();
    if conclusion.more > 0 {
        sentences.push(format!("and {} more: see the table", conclusion.more));
    }
    sentences
}

fn cells(row: &FigureRow, at: usize) -> [String; 6] {
    let change = &row.changes[at];
    [
        row.label.to_owned(),
        row.shown[0].clone(),
        row.shown[at + 1].clone(),
        change.shown.clone(),
        change.interval_shown.clone(),
        change.direction.unwrap_or_default().to_owned(),
    ]
}

fn regression(result: &RegressionResult) -> String {
    let verdict = if result.beyond { "beyond" } else { "within" };
    format!("{verdict}  {} in {}: {}", result.regression, result.side, result.text)
}

/// Returns a sentence as an item of a list, its further lines below its text.
fn item(sentence: &str) -> String {
    let sentence = escape_lines(&sentence.replace('\n', " "));
    let lines = wrap(&format!("  {sentence}"), WIDTH - 2);
    format!("  - {}\n", lines.trim_start().replace("\n  ", "\n    "))
}

const ALIGNMENT: [Align; 6] =
    [Align::Left, Align::Right, Align::Right, Align::Right, Align::Right, Align::Left];
/// The columns of the smallest usual terminal.
const WIDTH: usize = 80;
