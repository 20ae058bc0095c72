//! The generator as the control socket steers it while the recorder asks it.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use throng_control::{Controlled, Request, Verb};
use throng_lab::recorder::RecordingHandle;
use throng_load::run::Load;
use throng_report::EventKind;

use crate::interrupt::{By, Interrupt};

/// A generator that can be asked and steered.
pub(super) struct LoadControl {
    load: Arc<Mutex<Load>>,
    recording: RecordingHandle,
    interrupt: Interrupt,
}

impl LoadControl {
    pub(super) fn new(
        load: Arc<Mutex<Load>>,
        recording: RecordingHandle,
        interrupt: Interrupt,
    ) -> Self {
        Self { load, recording, interrupt }
    }

    /// Does it, and returns users and connections as of the last interval.
    fn steer(&self, request: &Request) -> (u64, u64) {
        // No call on a load leaves it half done, so one that a panic left behind is still good.
        let load = self.load.lock().unwrap_or_else(PoisonError::into_inner);
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
        load.counts()
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
        let (users, connected) = self.steer(request);
        if request.verb != Verb::Count {
            let command = match request.n {
                Some(n) => format!("{} {n}", request.verb),
                None => request.verb.to_string(),
            };
            self.recording.note(EventKind::Steered { command });
        }
        Ok(json!({"users": users, "connected": connected}))
    }
}
