//! The control target of a generator: answers `throng ctl` while the recorder samples the load.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use throng_control::{ControlRequest, ControlTarget, Verb};
use throng_fleet::message::Steering;
use throng_measure::RunEventKind;
use throng_run::recorder::RecordingHandle;

use super::load::RunLoad;
use crate::interrupt::{By, Interrupt};

/// A generator behind a control socket.
pub(super) struct LoadControl {
    pub(super) load: Arc<Mutex<RunLoad>>,
    pub(super) recording: RecordingHandle,
    /// True if all classes of users have a load in common: a new user belongs to the next class.
    pub(super) shares_users: bool,
    pub(super) interrupt: Interrupt,
    /// What ends the run at a request to do so.
    pub(super) by: By,
}

impl LoadControl {
    /// Executes the request, and returns users and connections once the users have reached their
    /// new number.
    fn steer(&self, request: &ControlRequest) -> (u64, u64) {
        let n = request.n.unwrap_or(0);
        let (before, _) = self.act(request, n);
        let has_acted = |users: u64| match request.verb {
            Verb::Start => users >= before + n,
            Verb::Stop => users <= before.saturating_sub(n),
            _ => true,
        };
        let began = Instant::now();
        loop {
            let (users, connected) = self.load().counts();
            if has_acted(users) || began.elapsed() > ACT_TIMEOUT {
                return (users, connected);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Executes the request, and returns users and connections as of the last interval before.
    fn act(&self, request: &ControlRequest, n: u64) -> (u64, u64) {
        let mut load = self.load();
        let before = load.counts();
        match request.verb {
            Verb::Start => load.steer(Steering::AddUsers(n)),
            Verb::Stop => load.steer(Steering::StopUsers(n)),
            Verb::Pause => load.steer(Steering::Pause),
            Verb::Resume => load.steer(Steering::Resume),
            Verb::Drain => self.recording.stop("throng ctl drain"),
            Verb::Shutdown => self.interrupt.request(self.by),
            Verb::Count | Verb::Snapshot | Verb::Inspect | Verb::Reload | Verb::Who => {}
        }
        before
    }

    /// Locks the load. No call leaves a load in an inconsistent state, so it stays usable after a
    /// panic.
    fn load(&self) -> MutexGuard<'_, RunLoad> {
        self.load.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reason why no user is started by hand where classes do not share the users.
const NO_CLASS: &str = "each class of users has a load of its own, so a user by hand would have \
    no class; change the `load` of a class in the scenario, and run it again";

/// Time to wait for the effect of a request. Users start one per millisecond, and are counted at
/// the end of an interval. If users come and go by themselves, their number may never match the
/// request.
const ACT_TIMEOUT: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);

impl ControlTarget for LoadControl {
    fn verbs(&self) -> &[Verb] {
        use Verb::{Count, Drain, Pause, Resume, Shutdown, Snapshot, Start, Stop};
        &[Snapshot, Start, Stop, Count, Pause, Resume, Drain, Shutdown]
    }

    fn answer(&self, request: &ControlRequest) -> Result<Value, String> {
        if request.verb == Verb::Snapshot {
            // The histograms of an interval are returned once, to the recorder: this is its last
            // interval.
            let latest = self.recording.latest().and_then(|interval| interval.load);
            return serde_json::to_value(latest.unwrap_or_default()).map_err(|e| e.to_string());
        }
        if request.verb == Verb::Start && !self.shares_users {
            return Err(NO_CLASS.to_owned());
        }
        if request.verb != Verb::Count {
            let command = match request.n {
                Some(n) => format!("{} {n}", request.verb),
                None => request.verb.to_string(),
            };
            self.recording.add_event(RunEventKind::Steered { command });
        }
        let (users, connected) = self.steer(request);
        Ok(json!({"users": users, "connected": connected}))
    }
}
