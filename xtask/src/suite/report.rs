//! The output of the suite: a live line while it runs, and at its end the times, the skipped tests
//! and the failures.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _, stderr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::job::JobResult;

/// The live line on a terminal. A pipe receives only the failures.
pub(super) struct ProgressLine {
    total: usize,
    is_shown: bool,
    state: Mutex<ProgressState>,
}

/// The state of the suite.
#[derive(Default)]
struct ProgressState {
    done: usize,
    /// The running steps and their start times.
    steps: Vec<(String, Instant)>,
}

impl ProgressLine {
    pub(super) fn new(of: usize) -> Self {
        Self { total: of, is_shown: stderr().is_terminal(), state: Mutex::default() }
    }

    pub(super) fn begin(&self, name: &str) {
        let mut now = self.state();
        now.steps.push((name.to_owned(), Instant::now()));
        self.show(&now);
    }

    pub(super) fn tick(&self) {
        self.show(&self.state());
    }

    /// Removes the step. A failure leaves a line.
    pub(super) fn end(&self, result: &JobResult) {
        let mut now = self.state();
        now.done += 1;
        now.steps.retain(|(name, _)| *name != result.name);
        if !result.is_passed() {
            self.clear();
            let _ = writeln!(stderr(), "FAILED: {}", result.name);
        }
        self.show(&now);
    }

    pub(super) fn clear(&self) {
        if self.is_shown {
            let _ = write!(stderr(), "\r\x1b[2K");
        }
    }

    fn show(&self, now: &ProgressState) {
        if !self.is_shown {
            return;
        }
        let steps = now.steps.iter();
        let steps = steps.map(|(name, began)| format!("{name} {} s", began.elapsed().as_secs()));
        let steps = steps.collect::<Vec<_>>().join(", ");
        let _ = write!(stderr(), "\r\x1b[2K{} of {} done; {steps}", now.done, self.total);
    }

    fn state(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The results of all steps.
#[derive(Default)]
pub(super) struct Report {
    steps: Vec<JobResult>,
}

impl Report {
    pub(super) fn add(&mut self, ran: JobResult) {
        self.steps.push(ran);
    }

    /// Adds the steps of another part of the run.
    pub(super) fn extend(&mut self, other: Self) {
        self.steps.extend(other.steps);
    }

    pub(super) fn steps(&self) -> &[JobResult] {
        &self.steps
    }

    /// Returns the output of the step that ended last.
    pub(super) fn last_output(&self) -> &str {
        self.steps.last().map_or("", |step| &step.output)
    }

    pub(super) fn is_passed(&self) -> bool {
        self.steps.iter().all(JobResult::is_passed)
    }

    /// Returns the times, the skipped tests, the failures and the total.
    pub(super) fn text(&self, took: Duration) -> String {
        let mut text = String::new();
        self.times(&mut text);
        self.judged(&mut text);
        self.skipped(&mut text);
        self.failures(&mut text);
        let passed: u64 = self.steps.iter().map(|step| step.outcome.passed).sum();
        let failed = self.steps.iter().filter(|step| !step.is_passed()).count();
        let (of, took) = (self.steps.len(), minutes(took));
        let steps = if of == 1 { "step" } else { "steps" };
        _ = match failed {
            0 => writeln!(text, "{passed} tests passed in {of} {steps}, {took}"),
            _ => writeln!(text, "{failed} of {of} {steps} failed, {passed} tests passed, {took}"),
        };
        text
    }

    /// Lists the times of the slowest steps and of those that failed, longest first. The others
    /// share one line.
    fn times(&self, text: &mut String) {
        let mut steps: Vec<_> = self.steps.iter().collect();
        steps.sort_by_key(|step| std::cmp::Reverse(step.elapsed));
        let slowest: Vec<_> = steps.iter().take(SLOWEST_SHOWN).map(|step| &step.name).collect();
        let (shown, others): (Vec<&JobResult>, Vec<&JobResult>) =
            steps.iter().partition(|step| slowest.contains(&&step.name) || !step.is_passed());
        let tests = |step: &JobResult| step.outcome.passed + step.outcome.failed;
        text.push_str("\n    time      CPU   memory  tests  step\n");
        for step in shown {
            let mark = if step.is_passed() { "" } else { "  FAILED" };
            let (seconds, cpu) = (step.elapsed.as_secs_f64(), step.cpu.as_secs_f64());
            let (memory, tests) = (step.memory_mib_max, tests(step));
            _ = writeln!(
                text,
                "{seconds:6.1} s {cpu:6.1} s {memory:4} MiB  {tests:5}  {}{mark}",
                step.name
            );
        }
        if !others.is_empty() {
            let seconds: f64 = others.iter().map(|step| step.elapsed.as_secs_f64()).sum();
            let cpu: f64 = others.iter().map(|step| step.cpu.as_secs_f64()).sum();
            let tests: u64 = others.iter().map(|step| tests(step)).sum();
            _ = writeln!(
                text,
                "{seconds:6.1} s {cpu:6.1} s           {tests:5}  {} others",
                others.len()
            );
        }
        text.push('\n');
    }

    /// Lists what the suites judged, and what they did not.
    fn judged(&self, text: &mut String) {
        for judged in self.steps.iter().flat_map(|step| &step.outcome.judged) {
            _ = writeln!(text, "{judged}");
        }
    }

    fn skipped(&self, text: &mut String) {
        for step in &self.steps {
            for skipped in &step.outcome.skipped {
                _ = writeln!(text, "skipped: {}: {skipped}", step.name);
            }
        }
    }

    fn failures(&self, text: &mut String) {
        for step in &self.steps {
            let Some(failure) = &step.failure else { continue };
            _ = writeln!(
                text,
                "\n---- {} ({failure}), full output in {}",
                step.name,
                step.log.display()
            );
            text.push_str(&last_lines(failure_output(&step.output), LINES_SHOWN));
        }
        let failed: Vec<_> = self.steps.iter().filter(|step| !step.is_passed()).collect();
        if !failed.is_empty() {
            text.push_str("\nfailed:\n");
        }
        for step in failed {
            _ = writeln!(text, "  {}: {}", step.name, step.failure.as_deref().unwrap_or_default());
            step.outcome.failures.iter().for_each(|name| _ = writeln!(text, "    {name}"));
        }
    }
}

/// Returns the part of the output that is about failed tests.
fn failure_output(said: &str) -> &str {
    said.find("\nfailures:\n").map_or(said, |at| &said[at + 1..])
}

fn last_lines(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let left_out = lines.len().saturating_sub(most);
    let mut shown = String::new();
    if left_out > 0 {
        _ = writeln!(shown, "... {left_out} earlier lines");
    }
    lines[left_out..].iter().for_each(|line| _ = writeln!(shown, "{line}"));
    shown
}

/// Formats a duration as `7 min 12 s`.
fn minutes(took: Duration) -> String {
    match (took.as_secs() / 60, took.as_secs() % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

const SLOWEST_SHOWN: usize = 10;
/// The most lines shown of each failed step. Its log has all.
const LINES_SHOWN: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_output_is_cut_at_its_beginning() {
        assert_eq!(last_lines("a\nb\nc", 2), "... 1 earlier lines\nb\nc\n");
        assert_eq!(last_lines("a\nb", 2), "a\nb\n");
    }

    #[test]
    fn minutes_are_shown_where_there_are_any() {
        assert_eq!(minutes(Duration::from_secs(59)), "59 s");
        assert_eq!(minutes(Duration::from_secs(432)), "7 min 12 s");
    }
}
