//! `setup` and `teardown`: one user goes through them, before the load and after it.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, SystemTime};

use super::plan::{LoadError, LoadOptions, LoadPlan};
use super::solo::{self, SoloEnd, SoloOutcome, SoloRun};
use crate::scenario::{Class, OnError, Scenario, Step};

/// Reason why `setup` or `teardown` did not take all its steps.
#[derive(Debug)]
pub enum SetupError {
    /// It could not start.
    Load(LoadError),
    /// It did not end well.
    Ended {
        /// Key of the steps.
        key: &'static str,
        /// The way in which it ended; not [`SoloEnd::Finished`].
        end: SoloEnd,
        /// True if its user had a connection.
        has_connected: bool,
        /// What its user did and saw last.
        lines: LastLines,
    },
}

/// What the caller sees of `setup` or `teardown` while it goes on, and how it ends it.
pub struct SetupWatch<'a> {
    /// True to show whole messages.
    pub is_full: bool,
    /// Receives each line about what the user does and sees.
    pub on_line: Option<&'a mut dyn FnMut(&str)>,
    /// Is asked many times a second whether to end it.
    pub is_interrupted: &'a mut dyn FnMut() -> bool,
}

impl<'a> SetupWatch<'a> {
    /// Creates a watch that shows nothing.
    pub fn silent(is_interrupted: &'a mut dyn FnMut() -> bool) -> Self {
        Self { is_full: false, on_line: None, is_interrupted }
    }
}

/// The last lines about a user, and the number of those before them.
#[derive(Debug, Default)]
pub struct LastLines {
    lines: VecDeque<String>,
    skipped: u64,
}

/// Takes the steps of `setup`, if there are any, and gives what they store to all users of the
/// scenario. Returns these values.
///
/// # Errors
/// When a step failed, or it did not come to its last step. The scenario has what was stored until
/// then: [`SetupError::allows_teardown`] says whether that is enough for `teardown`.
pub fn set_up(
    scenario: &mut Scenario,
    options: &LoadOptions,
    watch: SetupWatch<'_>,
) -> Result<Vec<Vec<u8>>, SetupError> {
    let Some(setup) = &scenario.setup else { return Ok(Vec::new()) };
    let (stored, ended) = take_steps("setup", scenario, &setup.steps, options, watch)?;
    scenario.fill_setup(&stored);
    ended.map(|()| stored)
}

/// Takes the steps of `teardown`, if there are any.
///
/// # Errors
/// When a step failed, or it did not come to its last step.
pub fn tear_down(
    scenario: &Scenario,
    options: &LoadOptions,
    watch: SetupWatch<'_>,
) -> Result<(), SetupError> {
    let Some(teardown) = &scenario.teardown else { return Ok(()) };
    take_steps("teardown", scenario, &teardown.steps, options, watch)?.1
}

impl LoadPlan {
    /// Gives the users the values that `setup` has stored in `scenario`, from which this plan was
    /// made.
    pub fn take_setup(&mut self, scenario: &Scenario) {
        self.program.set_tables(scenario.tables.clone());
    }

    /// Gives the users, and `scenario`, the values that `setup` has stored on another machine.
    pub fn give_setup(&mut self, scenario: &mut Scenario, stored: &[Vec<u8>]) {
        scenario.fill_setup(stored);
        self.take_setup(scenario);
    }
}

/// Values that a user has stored, and how its steps ended.
type StepsEnd = (Vec<Vec<u8>>, Result<(), SetupError>);

/// Takes one user through these steps. Returns the values that it has stored, and how it ended.
fn take_steps(
    key: &'static str,
    scenario: &Scenario,
    steps: &[Step],
    options: &LoadOptions,
    mut watch: SetupWatch<'_>,
) -> Result<StepsEnd, LoadError> {
    // What is random in them differs from run to run: what one run has left does not disturb the
    // next.
    let options = &LoadOptions { seed: Some(fresh_seed()), ..options.clone() };
    let (name, steps) = (key.to_owned(), steps.to_vec());
    let class = Class { name, weight: 1, steps, on_error: OnError::Stop, on_message: Vec::new() };
    let plan = solo::plan(scenario, class, 0, SPAN_MAX, options)?;
    let solo = SoloRun::start(plan, 0, SPAN_MAX, watch.is_full)?;
    let mut lines = LastLines::default();
    let on_line = |line: String| {
        if let Some(on_line) = &mut watch.on_line {
            on_line(&line);
        }
        lines.push(line);
    };
    let SoloOutcome { end, stored, has_connected } = solo.wait(on_line, watch.is_interrupted);
    let ended = match end {
        SoloEnd::Finished => Ok(()),
        end => Err(SetupError::Ended { key, end, has_connected, lines }),
    };
    Ok((stored, ended))
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

impl From<LoadError> for SetupError {
    fn from(error: LoadError) -> Self {
        Self::Load(error)
    }
}

impl SetupError {
    /// Reports whether `teardown` can follow a `setup` that ended so: its user had a connection, so
    /// that it may have made something, and all values that `teardown` uses are stored.
    pub fn allows_teardown(&self, scenario: &Scenario) -> bool {
        scenario.teardown.is_some() && self.teardown_refused(scenario).is_none()
    }

    /// Returns why `teardown` does not follow a `setup` that ended so, as the end of a sentence.
    /// `None` if it follows, or if there is none.
    pub fn teardown_refused(&self, scenario: &Scenario) -> Option<&'static str> {
        scenario.teardown.as_ref()?;
        match self {
            Self::Ended { has_connected: true, .. } if scenario.can_tear_down() => None,
            Self::Ended { has_connected: true, .. } => {
                Some("`setup` had not stored all values that it uses")
            }
            Self::Ended { .. } | Self::Load(_) => {
                Some("the user of `setup` had no connection, and has made nothing")
            }
        }
    }

    /// Says how it ended, without the lines about its user.
    pub fn outcome(&self) -> String {
        match self {
            Self::Load(error) => error.to_string(),
            Self::Ended { key, end: SoloEnd::Finished | SoloEnd::Failed, .. } => {
                format!("`{key}` failed")
            }
            Self::Ended { key, end: SoloEnd::OutOfTime, .. } => {
                format!("`{key}` did not end within {SPAN_MAX_MIN} min")
            }
            Self::Ended { key, end: SoloEnd::Interrupted, .. } => {
                format!("`{key}` was interrupted")
            }
        }
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.outcome())?;
        match self {
            Self::Load(_) => Ok(()),
            Self::Ended { lines, .. } => write!(f, "; its user's steps:{lines}"),
        }
    }
}

impl std::error::Error for SetupError {}

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
        let error =
            SetupError::Ended { key: "setup", end: SoloEnd::Failed, has_connected: true, lines };
        let shown = error.to_string();
        let begin = "`setup` failed; its user's steps:\n  (960 lines before these)\n  line 960.\n";
        assert!(shown.starts_with(begin) && shown.ends_with("\n  line 999."), "{shown}");
    }
}
