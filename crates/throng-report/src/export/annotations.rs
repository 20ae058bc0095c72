//! Annotations of GitHub Actions: a workflow command a problem, which GitHub shows beside the line
//! of the scenario.

use super::problem::{ProblemLevel, RunProblem};
use super::run_export::RunExport;

impl RunExport<'_> {
    /// Returns workflow commands, one a line: errors that decide the exit code, the findings as
    /// warnings, and the verdict.
    pub fn annotations(&self) -> String {
        let file = property(self.path());
        let line = |problem: &RunProblem| {
            let level = match problem.level {
                ProblemLevel::Error => "error",
                ProblemLevel::Warning => "warning",
            };
            let (title, line, text) = (property(&problem.id), problem.line, data(&problem.text));
            format!("::{level} file={file},line={line},title=throng {title}::{text}\n")
        };
        let verdict = data(&self.headline());
        let end = format!("::notice file={file},line=1,title=throng::{verdict}\n");
        self.problems().iter().map(line).chain([end]).collect()
    }
}

/// Returns text for the message of a workflow command. What follows a line break would be a command
/// of its own.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Returns text for a property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
