//! The control target of a lab: passes requests on to the generator of the present run.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use throng_control::{ControlClient, ControlRequest, ControlTarget, Verb};

/// A lab's generator, which is another process.
#[derive(Debug)]
pub(super) struct LabControl {
    /// The control socket of the generator.
    pub(super) generator: PathBuf,
    /// Ends the lab early.
    pub(super) stop: Arc<AtomicBool>,
}

impl ControlTarget for LabControl {
    fn verbs(&self) -> &[Verb] {
        &[Verb::Start, Verb::Stop, Verb::Pause, Verb::Resume, Verb::Shutdown]
    }

    fn answer(&self, request: &ControlRequest) -> Result<Value, String> {
        if request.verb == Verb::Shutdown {
            // The lab itself ends, as with Ctrl-C: a row that ends early would pass for a whole
            // one.
            self.stop.store(true, Ordering::Relaxed);
            return Ok(json!({}));
        }
        let client = ControlClient::connect(&self.generator);
        let reply = client.and_then(|mut client| client.request(request));
        reply.map(|reply| reply.data).map_err(|error| error.to_string())
    }
}
