//! What each step took, and the order of the next run.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::job::{Job, JobResult};
use super::report::Report;
use super::table::{Suite, SuiteKind};

/// The times of all steps of a run: `target/tests/times.json`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Times {
    steps: Vec<StepTime>,
}

/// What a step took: a test binary, a build or a tool.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct StepTime {
    name: String,
    /// What its result says. Builds and tools state facts.
    kind: SuiteKind,
    seconds: f64,
    cpu_seconds: f64,
    /// The most memory of one of its processes.
    memory_mib_max: u64,
    tests: u64,
}

impl Times {
    /// Reads the times of the last run in this folder, or else those of the table in the tree.
    pub(super) fn read(folder: &Path) -> Self {
        let of_last_run = fs::read_to_string(folder.join(FILE)).ok();
        of_last_run
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_else(|| serde_json::from_str(DEFAULT).expect("a test reads it"))
    }

    pub(super) fn of(report: &Report) -> Self {
        let step = |result: &JobResult| StepTime {
            name: result.name.clone(),
            kind: Suite::of(&result.name).kind,
            seconds: hundredths(result.elapsed.as_secs_f64()),
            cpu_seconds: hundredths(result.cpu.as_secs_f64()),
            memory_mib_max: result.memory_mib_max,
            tests: result.outcome.passed + result.outcome.failed,
        };
        // What some tests of a binary took says nothing about all of them.
        let whole = report.steps().iter().filter(|result| !result.is_filtered);
        Self { steps: whole.map(step).collect() }
    }

    /// Writes the times. Steps of earlier runs that did not run this time keep theirs.
    pub(super) fn write(mut self, folder: &Path) -> Result<(), String> {
        let is_new = |step: &StepTime| !self.steps.iter().any(|own| own.name == step.name);
        let earlier: Vec<_> = Self::read(folder).steps.into_iter().filter(is_new).collect();
        self.steps.extend(earlier);
        self.steps.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let text = serde_json::to_string_pretty(&self).map_err(|error| error.to_string())?;
        let path = folder.join(FILE);
        fs::write(&path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Sorts the jobs: those of unknown length first, then the longest.
    pub(super) fn sort(&self, jobs: &mut [Job]) {
        let seconds = |job: &Job| {
            let step = self.steps.iter().find(|step| step.name == job.name);
            step.map_or(f64::INFINITY, |step| step.seconds)
        };
        jobs.sort_by(|a, b| seconds(b).total_cmp(&seconds(a)));
    }
}

fn hundredths(seconds: f64) -> f64 {
    (seconds * 100.0).round() / 100.0
}

const FILE: &str = "times.json";

/// The times of one run, for the order of the first run on a machine.
const DEFAULT: &str = include_str!("times.json");

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_longest_step_comes_first_and_an_unknown_one_before_it() {
        let step = |name: &str, seconds| StepTime {
            name: name.to_owned(),
            kind: SuiteKind::Facts,
            seconds,
            cpu_seconds: 0.0,
            memory_mib_max: 0,
            tests: 0,
        };
        let times = Times { steps: vec![step("short", 1.0), step("long", 9.0)] };
        let mut jobs: Vec<_> =
            ["short", "new", "long"].map(|name| Job::new(name, Command::new("true"))).into();
        times.sort(&mut jobs);
        let names: Vec<_> = jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["new", "long", "short"]);
    }

    #[test]
    fn the_times_in_the_tree_can_be_read() {
        assert!(Times::read(Path::new("/nonexistent")).steps.iter().any(|step| step.seconds > 0.0));
    }
}
