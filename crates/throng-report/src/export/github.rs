//! The summary of a step of GitHub Actions: Markdown, with parts that GitHub folds and colours.

use std::fmt::Write as _;

use throng_measure::Grade;

use super::run_export::RunExport;
use crate::render::{escaped, render_details};

impl RunExport<'_> {
    /// Returns the report for `$GITHUB_STEP_SUMMARY`, at most [`STEP_SUMMARY_BYTES_MAX`] long.
    pub fn github(&self) -> String {
        let mut text = format!("## {} throng: {}\n\n", self.sign(), self.title());
        let alert = match (self.sign(), self.summary.validity.grade) {
            ("✅", _) => "NOTE",
            (_, Grade::Invalid) => "CAUTION",
            ("❌", _) => "CAUTION",
            _ => "WARNING",
        };
        _ = writeln!(text, "> [!{alert}]\n> {}\n", escaped(&self.headline()));
        text += &self.body();
        if !self.diagnosis.findings.is_empty() {
            let findings = self.diagnosis.findings.len();
            text += &folded(&format!("Findings ({findings})"), &self.findings());
        }
        let report = render_details(self.summary, self.judgements, Some(self.diagnosis));
        let end = format!("\n{}\n", self.origin());
        let whole = folded("The report as text", &fenced(&report));
        if text.len() + whole.len() + end.len() <= STEP_SUMMARY_BYTES_MAX {
            text += &whole;
        }
        cut(text, STEP_SUMMARY_BYTES_MAX - end.len().min(STEP_SUMMARY_BYTES_MAX)) + &end
    }
}

/// Returns a part that is closed until a reader opens it.
fn folded(title: &str, content: &str) -> String {
    format!("\n<details><summary>{title}</summary>\n\n{content}\n</details>\n")
}

/// Returns text in a fence that nothing in it can close.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}\n{fence}\n", text.trim_end())
}

/// Cuts text at the end of a line, at most `bytes_max` long.
fn cut(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        let end = text.as_bytes()[..bytes_max].iter().rposition(|byte| *byte == b'\n');
        text.truncate(end.map_or(0, |end| end + 1));
    }
    text
}

/// The most bytes of a step's summary; GitHub takes 1 MiB for one step, and another step may write
/// beside this one.
pub const STEP_SUMMARY_BYTES_MAX: usize = 512 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_closes_its_fence() {
        assert!(fenced("a\n````\nb").starts_with("`````text\n"));
        assert!(fenced("a").starts_with("```text\n"));
    }

    #[test]
    fn a_text_that_is_too_long_ends_with_a_line() {
        assert_eq!(cut("one\ntwo\nthree".to_owned(), 9), "one\ntwo\n");
        assert_eq!(cut("one".to_owned(), 9), "one");
    }
}
