//! What the dashboard's thread and its HTTP server share.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use throng_control::ControlTarget;
use throng_measure::Interval;
use throng_run::{RunContent, RunResult};
use tokio::sync::watch;

use super::live_run::LiveRun;

/// The present run, and the number of its readers.
pub(super) struct DashboardStore {
    state: Mutex<DashboardState>,
    /// Changes with each update, and wakes the readers' streams.
    changes: watch::Sender<u64>,
}

/// What the dashboard shows.
pub(super) struct DashboardState {
    /// The present run; none until the first one begins.
    pub(super) run: Option<LiveRun>,
    /// A sentence for readers who are there before the first run.
    pub(super) waiting: String,
    /// True when no further run begins.
    pub(super) is_over: bool,
    /// Readers with an open stream.
    readers: usize,
}

impl DashboardStore {
    pub(super) fn new(waiting: &str) -> Self {
        let waiting = waiting.to_owned();
        let state = DashboardState { run: None, waiting, is_over: false, readers: 0 };
        Self { state: Mutex::new(state), changes: watch::Sender::new(0) }
    }

    /// Locks the state. No update leaves it inconsistent, so it stays usable after a panic.
    pub(super) fn lock(&self) -> MutexGuard<'_, DashboardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn begin(&self, title: String, content: RunContent) {
        self.change(|state| {
            let number = state.run.as_ref().map_or(0, |run| run.number) + 1;
            state.run = Some(LiveRun::new(number, title, content));
        });
    }

    pub(super) fn steer(&self, target: Weak<dyn ControlTarget>) {
        self.change(|state| state.with_run(|run, _| run.steer(target)));
    }

    pub(super) fn add(&self, interval: &Interval) {
        self.change(|state| state.with_run(|run, has_readers| run.add(interval, has_readers)));
    }

    pub(super) fn end(&self, result: impl FnOnce(&RunContent) -> RunResult) {
        self.change(|state| state.with_run(|run, _| run.end(result)));
    }

    pub(super) fn set_over(&self) {
        self.change(|state| state.is_over = true);
    }

    fn change(&self, change: impl FnOnce(&mut DashboardState)) {
        change(&mut self.lock());
        self.changes.send_modify(|number| *number += 1);
    }

    /// Reports whether all is over and each reader has closed its stream, as the page does when it
    /// has the end.
    pub(super) fn has_said_all(&self) -> bool {
        let state = self.lock();
        state.is_over && state.readers == 0
    }

    /// Counts a reader, unless there are too many.
    pub(super) fn enter(&self) -> bool {
        let mut state = self.lock();
        let has_room = state.readers < READERS_MAX;
        state.readers += usize::from(has_room);
        has_room
    }

    pub(super) fn leave(&self) {
        self.lock().readers -= 1;
    }
}

impl DashboardState {
    #[cfg(test)]
    pub(super) fn readers(&self) -> usize {
        self.readers
    }

    /// Calls `change` with the present run, and with whether there are readers.
    fn with_run(&mut self, change: impl FnOnce(&mut LiveRun, bool)) {
        if let Some(run) = &mut self.run {
            change(run, self.readers > 0);
        }
    }
}

impl fmt::Debug for DashboardStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DashboardStore").finish_non_exhaustive()
    }
}

/// The most readers with an open stream: each costs the generator's machine a little.
pub(super) const READERS_MAX: usize = 16;
