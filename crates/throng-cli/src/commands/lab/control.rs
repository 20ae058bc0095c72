//! The control target of a lab: passes requests on to the generator of the present run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use throng_control::{ControlRequest, ControlTarget, RemoteTarget, Verb};

/// A lab, as its page and its view steer it.
pub(super) struct LabControl {
    /// The generator of the present run, which is another process.
    pub(super) generator: Option<RemoteTarget>,
    /// Ends the lab early.
    pub(super) stop: Arc<AtomicBool>,
}

impl ControlTarget for LabControl {
    fn verbs(&self) -> &[Verb] {
        &[Verb::Start, Verb::Stop, Verb::Pause, Verb::Resume, Verb::Shutdown]
    }

    fn answer(&self, request: &ControlRequest) -> Result<Value, String> {
        match (&self.generator, request.verb) {
            (_, Verb::Shutdown) => {
                // The lab itself ends, as with Ctrl-C: a row that ends early would pass for a
                // whole one.
                self.stop.store(true, Ordering::Relaxed);
                Ok(json!({}))
            }
            (Some(generator), _) => generator.answer(request),
            (None, _) => Err("no load runs now".to_owned()),
        }
    }
}
