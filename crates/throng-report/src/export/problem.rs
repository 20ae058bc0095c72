//! What was wrong with a run, each with its place in the scenario, for programs that show problems
//! beside a file's lines.

use throng_measure::{Grade, Severity};

use super::run_export::RunExport;
use crate::RunExit;

/// A reason why a run is no success, or a finding that explains it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RunProblem {
    /// A stable name: `threshold`, `invalid`, the id of a finding.
    pub(super) id: String,
    pub(super) level: ProblemLevel,
    /// The line of the scenario, from 1.
    pub(super) line: usize,
    pub(super) text: String,
}

/// The weight of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProblemLevel {
    /// It decides the exit code.
    Error,
    /// It explains the others.
    Warning,
}

impl RunExport<'_> {
    /// Returns the problems of the run: none of the level [`ProblemLevel::Error`] exactly if its
    /// exit code is 0.
    pub(super) fn problems(&self) -> Vec<RunProblem> {
        let summary = self.summary;
        let exit = RunExit::of(summary, self.judgements);
        let mut problems = Vec::new();
        let mut error = |id: &str, line, text: String| {
            let (id, level) = (id.to_owned(), ProblemLevel::Error);
            problems.push(RunProblem { id, level, line, text });
        };
        if let Some(why) = &summary.run.incomplete {
            error("incomplete", 1, format!("the run is incomplete: {why}"));
        } else if summary.validity.grade == Grade::Invalid {
            let reasons = summary.validity.reasons.join("; ");
            error("invalid", 1, format!("the run measures the generator: {reasons}"));
        } else if exit == RunExit::Invalid {
            error("invalid", 1, "the generator failed".to_owned());
        }
        if summary.is_unreached() {
            error("unreached", 1, "no connection was ever established".to_owned());
        }
        if let Some(why) = summary.shortcoming() {
            error("unserved", 1, why);
        }
        if exit == RunExit::Unwritten {
            error("unwritten", 1, summary.unwritten().unwrap_or_default());
        }
        for judgement in self.judgements.iter().filter(|judgement| !judgement.met) {
            let (threshold, measured) = (&judgement.threshold, &judgement.measured);
            let text = format!("missed the threshold {threshold}: measured {measured}");
            error("threshold", self.line_of(threshold), text);
        }
        let matters = |severity| severity != Severity::Noted && exit != RunExit::Met;
        for finding in self.diagnosis.findings.iter().filter(|it| matters(it.severity)) {
            let level = ProblemLevel::Warning;
            let text = match finding.remedy.as_str() {
                "" => finding.text.clone(),
                remedy => format!("{} Do: {remedy}", finding.text),
            };
            problems.push(RunProblem { id: finding.id.clone(), level, line: 1, text });
        }
        problems
    }

    /// Returns the scenario's path, as a path inside of a repository is written.
    pub(super) fn path(&self) -> &str {
        relative(&self.summary.run.scenario)
    }

    /// Returns the line of the scenario that states a threshold; 1 if there is none.
    fn line_of(&self, threshold: &str) -> usize {
        let lines = || self.header.scenario.source.lines().zip(1..);
        let Some((_, section)) = lines().find(|(line, _)| line.starts_with("thresholds:")) else {
            return 1;
        };
        let stated = lines().skip(section - 1).find(|(line, _)| line.contains(threshold));
        stated.map_or(section, |(_, line)| line)
    }
}

/// Returns a path as one inside of a repository is written.
pub(super) fn relative(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}
