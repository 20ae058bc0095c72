//! GitLab's code quality report: what a merge request shows as new and as resolved.

use serde_json::{Value, json};

use super::problem::{ProblemLevel, RunProblem};
use super::run_export::RunExport;

impl RunExport<'_> {
    /// Returns the problems as an array of GitLab's subset of the Code Climate format.
    pub fn code_quality(&self) -> Value {
        let path = self.path();
        let issue = |problem: &RunProblem| {
            let RunProblem { id, line, text, .. } = problem;
            // GitLab compares two reports by fingerprints. Measured values are no part of one.
            let of = text.split(": measured ").next().unwrap_or_default();
            let of = if id == "threshold" { of } else { "" };
            let severity = match problem.level {
                ProblemLevel::Error => "critical",
                ProblemLevel::Warning => "minor",
            };
            json!({
                "description": text,
                "check_name": format!("throng/{id}"),
                "fingerprint": format!("{:016x}", fnv([path, id, of])),
                "severity": severity,
                "location": {"path": path, "lines": {"begin": line}},
            })
        };
        Value::Array(self.problems().iter().map(issue).collect())
    }
}

/// Returns the FNV-1a hash of some texts.
fn fnv(texts: [&str; 3]) -> u64 {
    let bytes = texts.into_iter().flat_map(|text| text.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}
