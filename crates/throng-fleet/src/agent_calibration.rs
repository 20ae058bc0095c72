//! What an agent's machine can do at most: measured when the agent starts, and again for each run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use throng_bus::Text;
use throng_run::ceiling::{self, CeilingOptions, Traffic};

use crate::message::{AgentCalibration, AgentFacts};

/// The measuring that another thread does while the agent waits for a run.
pub(crate) struct FirstCalibration {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<AgentCalibration, String>>,
}

impl FirstCalibration {
    /// Begins to measure, for about `length`: users over TCP whose messages are answered, without
    /// the peer's CPU time. `None` if there is no thread for it.
    pub(crate) fn start(facts: &AgentFacts, length: Duration) -> Option<Self> {
        let stop = Arc::<AtomicBool>::default();
        let options = CeilingOptions {
            length,
            traffic: Traffic::Answered,
            users_most: facts.fds / 2,
            target_is_remote: true,
            stop: Arc::clone(&stop),
            ..CeilingOptions::default()
        };
        let thread = std::thread::Builder::new().name("calibrate".into());
        let thread = thread.spawn(move || measure(&options)).ok()?;
        Some(Self { stop, thread })
    }

    /// Reports whether the measuring is over.
    pub(crate) fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends the measuring, and waits for its end.
    pub(crate) fn end(self) -> Result<AgentCalibration, String> {
        self.stop.store(true, Relaxed);
        self.thread.join().unwrap_or_else(|_| Err("the calibration panicked".into()))
    }
}

/// Measures the most that this machine can do.
///
/// # Errors
/// Nothing could be measured, for this reason.
pub(crate) fn measure(options: &CeilingOptions) -> Result<AgentCalibration, String> {
    let measured = ceiling::measure(options).map_err(|error| error.to_string())?;
    let ceiling = measured.ceiling;
    if ceiling.connects_per_s.or(ceiling.messages_per_s).is_none() {
        return Err("nothing could be measured: other programs keep the CPUs busy".into());
    }
    let messages = match options.traffic {
        Traffic::Silent => "no messages",
        Traffic::Sent => "sent",
        Traffic::Answered => "answered",
    };
    let over_tls = if options.resume.is_some() { " over TLS" } else { "" };
    let traffic = Text::cut(&format!("{}{over_tls}, {messages}", options.protocol.name()));
    Ok(AgentCalibration { traffic, ceiling })
}
