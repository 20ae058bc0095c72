//! Requests of a view to the generator, on a thread of their own: some are answered after seconds.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use throng_control::{ControlRequest, ControlTarget};

/// The generator as the keys steer it.
pub(crate) struct Steering {
    /// The generator; absent before it runs.
    pub(crate) target: Option<Arc<dyn ControlTarget>>,
    requests: Sender<(Arc<dyn ControlTarget>, ControlRequest)>,
    refusals: Receiver<String>,
}

impl Steering {
    /// Starts the thread. It ends after the last request when the value is dropped.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start() -> std::io::Result<Self> {
        let (requests, received) = mpsc::channel::<(Arc<dyn ControlTarget>, ControlRequest)>();
        let (refuse, refusals) = mpsc::channel();
        let run = move || {
            for (target, request) in received {
                if let Err(reason) = target.answer(&request) {
                    let _ = refuse.send(format!("{}: {reason}", request.verb));
                }
            }
        };
        thread::Builder::new().name("view-steer".into()).spawn(run)?;
        Ok(Self { target: None, requests, refusals })
    }

    /// Sends a request. Returns a sentence for the user if there is no generator.
    pub(crate) fn send(&self, request: ControlRequest) -> Option<String> {
        let Some(target) = &self.target else {
            return Some(format!("{}: no load runs yet", request.verb));
        };
        let _ = self.requests.send((Arc::clone(target), request));
        None
    }

    /// Returns the reason of the next request that was refused.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.refusals.try_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use throng_control::Verb;

    use super::*;

    struct Full;

    impl ControlTarget for Full {
        fn verbs(&self) -> &[Verb] {
            &[Verb::Start, Verb::Pause]
        }

        fn answer(&self, request: &ControlRequest) -> Result<Value, String> {
            match request.verb {
                Verb::Start => Err("no room".to_owned()),
                _ => Ok(json!({})),
            }
        }
    }

    #[test]
    fn a_refused_request_has_its_reason() {
        let mut steering = Steering::start().unwrap();
        let start = ControlRequest::with_n(Verb::Start, 5);
        assert_eq!(steering.send(start).unwrap(), "start: no load runs yet");
        steering.target = Some(Arc::new(Full));
        assert_eq!(steering.send(ControlRequest::new(Verb::Pause)), None);
        assert_eq!(steering.send(start), None);
        assert_eq!(steering.refusals.recv().unwrap(), "start: no room");
    }
}
