//! One user that goes once through its steps and is watched: in a trial, in `setup`, in `teardown`.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use throng_report::render::statuses_text;

use super::plan::{LoadError, LoadOptions, LoadPlan};
use super::running::RunningLoad;
use crate::generator::{TraceLine, TraceOptions, UserFate};
use crate::scenario::{Class, Curve, Phase, Scenario, ScenarioLoad, Spacing};
use crate::user::IterationEnd;

/// A running load with one user.
pub struct SoloRun {
    load: RunningLoad,
    lines: Receiver<TraceLine>,
    fates: Receiver<UserFate>,
    /// Time after which the user is stopped.
    span: Duration,
}

/// Way in which the only user ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoloEnd {
    /// It took all its steps, and none failed.
    Finished,
    /// A step failed.
    Failed,
    /// Its time was over before the last step.
    OutOfTime,
    /// The caller stopped it.
    Interrupted,
}

/// What remains of the only user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoloOutcome {
    /// The way in which it ended.
    pub end: SoloEnd,
    /// The values that it has stored.
    pub stored: Vec<Vec<u8>>,
    /// True if it had a connection.
    pub has_connected: bool,
}

impl SoloRun {
    /// Starts a plan with one user, the user with this number. `is_full` shows whole messages.
    ///
    /// # Errors
    /// When a core cannot be set up.
    pub fn start(
        mut plan: LoadPlan,
        user: u64,
        span: Duration,
        is_full: bool,
    ) -> Result<Self, LoadError> {
        let (sink, lines) = mpsc::sync_channel(LINES_WAITING_MAX);
        let (fates_sink, fates) = mpsc::channel();
        let fates_sink = Some(fates_sink);
        plan.watch_users(TraceOptions { users: vec![user], is_full, sink, fates: fates_sink });
        let load = RunningLoad::start(plan)?;
        Ok(Self { load, lines, fates, span })
    }

    /// Waits until the user is gone. Gives each line about it to `on_line`, and asks
    /// `is_interrupted` many times a second. The last line says which statuses came, if any.
    pub fn wait(
        mut self,
        mut on_line: impl FnMut(String),
        mut is_interrupted: impl FnMut() -> bool,
    ) -> SoloOutcome {
        let mut stop_at = Instant::now() + self.span;
        let (mut end, mut stored) = (None, Vec::new());
        let mut cause = None;
        loop {
            let fate = self.fates.recv_timeout(LOOK_EVERY);
            // Its lines are there before it. A user that is faster than the caller has more.
            self.lines.try_iter().take(LINES_WAITING_MAX).for_each(|line| on_line(line.text));
            match fate {
                Ok(UserFate::Stored(values)) => stored = values,
                Ok(UserFate::Ended(how)) => end = Some(how),
                Ok(UserFate::Removed) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let is_over = Instant::now() >= stop_at;
            if cause.is_some() {
                if is_over {
                    break;
                }
                continue;
            }
            if is_interrupted() {
                cause = Some(SoloEnd::Interrupted);
            } else if is_over {
                cause = Some(SoloEnd::OutOfTime);
            }
            if cause.is_some() {
                stop_at = Instant::now() + STOP_TIMEOUT;
                self.load.ramp_down();
            }
        }
        let snapshot = self.load.snapshot();
        let has_connected = snapshot.counters.connects_ok > 0;
        let statuses = snapshot.http_statuses;
        if statuses.total() > 0 {
            on_line(format!("HTTP answers: {}", statuses_text(&statuses.by_count())));
        }
        self.load.join();
        let end = match end {
            Some(IterationEnd::Finished) => SoloEnd::Finished,
            Some(IterationEnd::Failed) => SoloEnd::Failed,
            Some(IterationEnd::Cut) | None => cause.unwrap_or(SoloEnd::OutOfTime),
        };
        SoloOutcome { end, stored, has_connected }
    }
}

/// Plans a load of one user of `class`, which sends no probes. Its number is `user`.
pub(super) fn plan(
    scenario: &Scenario,
    class: Class,
    user: u64,
    span: Duration,
    options: &LoadOptions,
) -> Result<LoadPlan, LoadError> {
    let mut scenario = scenario.clone();
    scenario.classes = vec![class];
    scenario.probe = None;
    let rate = 1.0 / span.as_secs_f64();
    scenario.load = ScenarioLoad::Shared(vec![Phase::Arrivals {
        from: rate,
        to: rate,
        curve: Curve::Linear,
        span,
        most: Some(1),
        spacing: Spacing::Even,
    }]);
    let options = LoadOptions { cores: Some(1), ..options.clone() };
    let mut plan = LoadPlan::new(&scenario, &options)?;
    plan.first_user = user;
    Ok(plan)
}

/// Lines that wait for the caller.
const LINES_WAITING_MAX: usize = 1 << 16;
/// Time that a stopped user gets to close its connection.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// Time between two looks at the clock and at the caller's wish to end.
const LOOK_EVERY: Duration = Duration::from_millis(20);
