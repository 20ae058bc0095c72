//! Annotations of GitHub Actions: a workflow command a problem, which GitHub shows beside the line
//! of the scenario.

use super::problem::{ProblemLevel, RunProblem, relative};
use super::run_export::RunExport;
use crate::render::escape;

impl RunExport<'_> {
    /// Returns workflow commands, one a line: errors that decide the exit code, the findings as
    /// warnings, and the verdict.
    pub fn annotations(&self) -> String {
        let file = self.path();
        let line = |problem: &RunProblem| {
            let level = match problem.level {
                ProblemLevel::Error => "error",
                ProblemLevel::Warning => "warning",
            };
            let title = format!("throng {}", problem.id);
            command(level, file, problem.line, &title, &problem.text)
        };
        let end = command("notice", file, 1, "throng", &self.headline());
        self.problems().iter().map(line).chain([end]).collect()
    }
}

/// Returns the workflow command that shows a mistake beside a line of a scenario.
pub fn annotation(scenario: &str, line: usize, mistake: &str) -> String {
    command("error", relative(scenario), line, "throng scenario", mistake)
}

/// Returns the workflow command that shows a warning beside a line of a scenario.
pub fn warning_annotation(scenario: &str, line: usize, warning: &str) -> String {
    command("warning", relative(scenario), line, "throng scenario", warning)
}

fn command(level: &str, file: &str, line: usize, title: &str, text: &str) -> String {
    let [file, title] = [file, title].map(property);
    format!("::{level} file={file},line={line},title={title}::{}\n", data(text))
}

/// Returns text for the message of a workflow command. What follows a line break would be a command
/// of its own.
fn data(text: &str) -> String {
    let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    escape(&text)
}

/// Returns text for a property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
