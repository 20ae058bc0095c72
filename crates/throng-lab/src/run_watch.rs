//! What watches a lab's run: it may end the load early, or restart the server.

use std::time::{Duration, Instant};

use throng_report::Interval;

use crate::error::LabError;
use crate::test_bed::{NextStep, RunningServer, ServerEndpoint, ServerSpec, TestBed};

/// A watch of a run.
pub(crate) trait RunWatch {
    /// Adds an interval, and says whether the load goes on.
    fn add(&mut self, interval: &Interval, server: &mut LabServer<'_>) -> NextStep;
}

/// The server of a lab, which can be restarted.
pub(crate) struct LabServer<'a> {
    test_bed: &'a TestBed,
    spec: ServerSpec<'a>,
    /// The server, or the reason why it did not start again.
    running: Result<RunningServer, LabError>,
    /// The time without a server.
    down: Option<Duration>,
}

impl<'a> LabServer<'a> {
    /// Starts the server, which keeps its port.
    pub(crate) fn start(test_bed: &'a TestBed, spec: ServerSpec<'a>) -> Result<Self, LabError> {
        let running = test_bed.serve(spec)?;
        let spec = ServerSpec { port: running.endpoint.addr.port(), ..spec };
        Ok(Self { test_bed, spec, running: Ok(running), down: None })
    }

    pub(crate) fn endpoint(&self) -> ServerEndpoint {
        let running = self.running.as_ref().expect("it has just started");
        running.endpoint.clone()
    }

    /// Stops the server and starts it again. Returns false if it did not start.
    pub(crate) fn restart(&mut self) -> bool {
        let began = Instant::now();
        if let Ok(server) = &mut self.running {
            server.end();
        }
        self.running = self.test_bed.serve(self.spec);
        self.down = self.running.is_ok().then(|| began.elapsed());
        self.running.is_ok()
    }

    /// Stops the server. Returns the time without one; none without a restart.
    pub(crate) fn stop(self) -> Result<Option<Duration>, LabError> {
        self.running?.stop();
        Ok(self.down)
    }
}
