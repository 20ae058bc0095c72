//! What a suite found.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// The verdicts of a suite.
#[derive(Default)]
pub(super) struct Report {
    /// The verdict of each case that ran.
    pub verdicts: BTreeMap<String, String>,
    /// What is said of the cases that failed.
    pub failures: Vec<String>,
    /// Cases that did not run, by the reason.
    pub not_run: BTreeMap<String, usize>,
}

impl Report {
    pub(super) fn has_passed(&self) -> bool {
        self.failures.is_empty() && !self.verdicts.is_empty()
    }

    /// Returns the counts, and every case that failed.
    pub(super) fn summary(&self, elapsed: Duration) -> String {
        let mut text = format!(
            "{} cases in {:.0} s, {} failed; {} did not run",
            self.verdicts.len(),
            elapsed.as_secs_f64(),
            self.failures.len(),
            self.not_run.values().sum::<usize>()
        );
        let mut reasons: Vec<_> = self.not_run.iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (reason, count) in reasons {
            let _ = write!(text, "\n  {count:5} not run: {reason}");
        }
        for failure in &self.failures {
            let _ = write!(text, "\n  FAILED: {failure}");
        }
        text
    }

    /// Returns a line for each case that ran.
    pub(super) fn lines(&self) -> String {
        let lines = self.verdicts.iter().map(|(case, verdict)| format!("{case} {verdict}\n"));
        lines.collect()
    }
}
