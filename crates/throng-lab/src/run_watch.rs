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

/// The server of a lab, or several that share topics. The last one can be restarted.
pub(crate) struct LabServer<'a> {
    test_bed: &'a TestBed,
    spec: ServerSpec<'a>,
    /// The nodes before the last one.
    others: Vec<RunningServer>,
    /// The server, or the reason why it did not start again.
    running: Result<RunningServer, LabError>,
    /// The time without the server.
    down: Option<Duration>,
}

impl<'a> LabServer<'a> {
    /// Starts `nodes` servers, which keep their port.
    pub(crate) fn start(
        test_bed: &'a TestBed,
        mut spec: ServerSpec<'a>,
        nodes: u8,
    ) -> Result<Self, LabError> {
        let mut others = Vec::new();
        for node in 1..nodes {
            let server = test_bed.serve(ServerSpec { node: Some(node), ..spec })?;
            spec.port = server.endpoint.addr.port();
            others.push(server);
        }
        spec.node = (nodes > 1).then_some(nodes);
        let running = test_bed.serve(spec)?;
        spec.port = running.endpoint.addr.port();
        Ok(Self { test_bed, spec, others, running: Ok(running), down: None })
    }

    /// Returns the address of the server, or those of all nodes.
    pub(crate) fn endpoint(&self) -> ServerEndpoint {
        let last = self.running.as_ref().expect("it has just started");
        let first = self.others.first().unwrap_or(last).endpoint.clone();
        match self.spec.node {
            Some(nodes) => self.test_bed.address_of_nodes(first, nodes),
            None => first,
        }
    }

    /// Stops the server, of several the last one, and starts it again. Returns false if it did not
    /// start.
    pub(crate) fn restart(&mut self) -> bool {
        let began = Instant::now();
        if let Ok(server) = &mut self.running {
            server.end();
        }
        self.running = self.test_bed.serve(self.spec);
        self.down = self.running.is_ok().then(|| began.elapsed());
        self.running.is_ok()
    }

    /// Stops the server. Returns the time without it; none without a restart.
    pub(crate) fn stop(self) -> Result<Option<Duration>, LabError> {
        self.running?.stop();
        self.others.into_iter().for_each(RunningServer::stop);
        Ok(self.down)
    }
}
