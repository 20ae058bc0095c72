//! The generator while it runs: the recorder asks it, the control socket steers it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use throng_control::{Controlled, Request, Verb};
use throng_lab::recorder::{Generator, RecordingHandle};
use throng_load::run::Load;
use throng_report::{EventKind, LoadInterval};

use crate::interrupt::{By, Interrupt};

/// The load, until it is joined.
pub(super) type SharedLoad = Arc<Mutex<Option<Load>>>;

/// No call on a load leaves it half done, so one that a panic left behind is still good.
pub(super) fn lock(load: &Mutex<Option<Load>>) -> MutexGuard<'_, Option<Load>> {
    load.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As the recorder sees it.
pub(super) struct Live {
    load: SharedLoad,
}

impl Live {
    pub(super) fn new(load: SharedLoad) -> Self {
        Self { load }
    }
}

impl Generator for Live {
    fn snapshot(&mut self) -> LoadInterval {
        lock(&self.load).as_mut().map(Load::snapshot).unwrap_or_default()
    }

    fn is_finished(&self) -> bool {
        lock(&self.load).as_ref().is_none_or(Load::is_finished)
    }

    fn ramp_down(&mut self) {
        if let Some(load) = &*lock(&self.load) {
            load.ramp_down();
        }
    }

    fn failure(&self) -> Option<String> {
        let broken = lock(&self.load).as_ref().is_some_and(Load::is_broken);
        broken.then(|| "a core of the generator has ended, which is a fault of throng".to_owned())
    }
}

/// As the control socket sees it.
pub(super) struct LoadControl {
    load: SharedLoad,
    recording: RecordingHandle,
    interrupt: Interrupt,
}

impl LoadControl {
    pub(super) fn new(load: SharedLoad, recording: RecordingHandle, interrupt: Interrupt) -> Self {
        Self { load, recording, interrupt }
    }
}

impl Controlled for LoadControl {
    fn verbs(&self) -> &[Verb] {
        use Verb::{Count, Drain, Pause, Resume, Shutdown, Snapshot, Start, Stop};
        &[Snapshot, Start, Stop, Count, Pause, Resume, Drain, Shutdown]
    }

    fn answer(&self, request: &Request) -> Result<Value, String> {
        if request.verb == Verb::Snapshot {
            // The histograms of an interval are handed out once, to the recorder: this is its last one.
            let latest = self.recording.latest().and_then(|interval| interval.load);
            return serde_json::to_value(latest.unwrap_or_default()).map_err(|e| e.to_string());
        }
        let guard = lock(&self.load);
        let load = guard.as_ref().ok_or("the run is over")?;
        let n = request.n.unwrap_or(0);
        match request.verb {
            Verb::Start => load.add_users(n),
            Verb::Stop => load.stop_users(n),
            Verb::Pause => load.pause(),
            Verb::Resume => load.resume(),
            Verb::Drain => load.ramp_down(),
            Verb::Shutdown => self.interrupt.ask(By::Control),
            Verb::Count | Verb::Snapshot | Verb::Who => {}
        }
        if request.verb != Verb::Count {
            let command = match request.n {
                Some(n) => format!("{} {n}", request.verb),
                None => request.verb.to_string(),
            };
            self.recording.note(EventKind::Steered { command });
        }
        let (users, connected) = load.counts();
        Ok(json!({"users": users, "connected": connected}))
    }
}
