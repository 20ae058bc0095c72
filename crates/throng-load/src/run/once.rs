//! `setup` and `teardown`: one user goes through them, before the load and after it.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, SystemTime};

use super::plan::{LoadError, LoadOptions, LoadPlan};
use super::solo::{self, SoloEnd, SoloRun};
use crate::scenario::{Class, OnError, Scenario, Step};

/// Reason why `setup` or `teardown` did not take all its steps.
#[derive(Debug)]
pub enum OnceError {
    /// It could not start.
    Load(LoadError),
    /// It did not end well.
    Ended {
        /// Key of the steps.
        key: &'static str,
        /// The way in which it ended; not [`SoloEnd::Finished`].
        end: SoloEnd,
        /// What its user did and saw last.
        lines: LastLines,
    },
}

/// The last lines about a user, and the number of those before them.
#[derive(Debug, Default)]
pub struct LastLines {
    lines: VecDeque<String>,
    skipped: u64,
}

/// Takes the steps of `setup`, if there are any, and gives what they store to all users of the
/// scenario. `is_interrupted` is asked many times a second.
///
/// # Errors
/// When a step failed, or it did not come to its last step.
pub fn set_up(
    scenario: &mut Scenario,
    options: &LoadOptions,
    is_interrupted: impl FnMut() -> bool,
) -> Result<(), OnceError> {
    let Some(setup) = &scenario.setup else { return Ok(()) };
    let stored = take_steps("setup", scenario, &setup.steps, options, is_interrupted)?;
    scenario.fill_setup(&stored);
    Ok(())
}

/// Takes the steps of `teardown`, if there are any.
///
/// # Errors
/// When a step failed, or it did not come to its last step.
pub fn tear_down(
    scenario: &Scenario,
    options: &LoadOptions,
    is_interrupted: impl FnMut() -> bool,
) -> Result<(), OnceError> {
    let Some(steps) = &scenario.teardown else { return Ok(()) };
    take_steps("teardown", scenario, steps, options, is_interrupted).map(drop)
}

impl LoadPlan {
    /// Gives the users the values that `setup` has stored in `scenario`, from which this plan was
    /// made.
    pub fn take_setup(&mut self, scenario: &Scenario) {
        self.program.set_tables(scenario.tables.clone());
    }
}

/// Takes one user through these steps. Returns the values that it has stored.
fn take_steps(
    key: &'static str,
    scenario: &Scenario,
    steps: &[Step],
    options: &LoadOptions,
    is_interrupted: impl FnMut() -> bool,
) -> Result<Vec<Vec<u8>>, OnceError> {
    // What is random in them differs from run to run: what one run has left does not disturb the
    // next.
    let options = &LoadOptions { seed: Some(fresh_seed()), ..options.clone() };
    let (name, steps) = (key.to_owned(), steps.to_vec());
    let class = Class { name, weight: 1, steps, on_error: OnError::Stop };
    let plan = solo::plan(scenario, class, 0, SPAN_MAX, options)?;
    let solo = SoloRun::start(plan, 0, SPAN_MAX, false)?;
    let mut lines = LastLines::default();
    match solo.wait(|line| lines.push(line), is_interrupted) {
        (SoloEnd::Finished, stored) => Ok(stored),
        (end, _) => Err(OnceError::Ended { key, end, lines }),
    }
}

/// Returns another seed at each call.
fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_nanos() as u64
}

impl LastLines {
    fn push(&mut self, line: String) {
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
            self.skipped += 1;
        }
        self.lines.push_back(line);
    }
}

impl fmt::Display for LastLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.skipped > 0 {
            write!(f, "\n  ({} lines before these)", self.skipped)?;
        }
        self.lines.iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}

impl From<LoadError> for OnceError {
    fn from(error: LoadError) -> Self {
        Self::Load(error)
    }
}

impl fmt::Display for OnceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Ended { key, end, lines } = self else {
            let Self::Load(error) = self else { return Ok(()) };
            return error.fmt(f);
        };
        match end {
            SoloEnd::Finished | SoloEnd::Failed => write!(f, "`{key}` failed")?,
            SoloEnd::OutOfTime => write!(f, "`{key}` did not end within {} min", SPAN_MAX_MIN)?,
            SoloEnd::Interrupted => write!(f, "`{key}` was interrupted")?,
        }
        write!(f, "; its user's steps:{lines}")
    }
}

impl std::error::Error for OnceError {}

/// Longest time of `setup`, and of `teardown`.
const SPAN_MAX: Duration = Duration::from_secs(60 * SPAN_MAX_MIN);
const SPAN_MAX_MIN: u64 = 10;
/// Lines that are kept for an error.
const LINES_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_many_are_kept() {
        let mut lines = LastLines::default();
        (0..1_000).for_each(|index| lines.push(format!("line {index}.")));
        assert_eq!(lines.lines.len(), LINES_MAX);
        let error = OnceError::Ended { key: "setup", end: SoloEnd::Failed, lines };
        let shown = error.to_string();
        let begin = "`setup` failed; its user's steps:\n  (960 lines before these)\n  line 960.\n";
        assert!(shown.starts_with(begin) && shown.ends_with("\n  line 999."), "{shown}");
    }
}
