//! What watches a lab's run: it may end the load early, or restart the server.

use std::time::{Duration, Instant};

use throng_measure::Interval;
use throng_run::test_bed::{
    NextStep, ServerEndpoint, ServerSpec, TestBed, TestBedError, TestBedServer,
};

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
    others: Vec<TestBedServer>,
    /// The server, or the reason why it did not start again.
    running: Result<TestBedServer, TestBedError>,
    history: ServerHistory,
    /// A moment at which the run had begun, or shortly after it.
    run_began: Option<Instant>,
}

/// What happened to the servers of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerHistory {
    /// The time without the server, if it was restarted.
    pub(crate) down: Option<Duration>,
    /// The moments of the run, in milliseconds, at which all nodes were found to share their
    /// topics, and at which one of them was ended, in order.
    pub(crate) sharing: Vec<(u64, bool)>,
}

impl<'a> LabServer<'a> {
    /// Starts `nodes` servers, which keep their port.
    pub(crate) fn start(
        test_bed: &'a TestBed,
        mut spec: ServerSpec<'a>,
        nodes: u8,
    ) -> Result<Self, TestBedError> {
        let mut others = Vec::new();
        for node in 1..nodes {
            let server = test_bed.serve(ServerSpec { node: Some(node), ..spec })?;
            spec.port = server.endpoint.addr.port();
            others.push(server);
        }
        spec.node = (nodes > 1).then_some(nodes);
        let running = test_bed.serve(spec)?;
        spec.port = running.endpoint.addr.port();
        let history = ServerHistory::default();
        Ok(Self { test_bed, spec, others, running: Ok(running), history, run_began: None })
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

    /// Notes that an interval that ended at `at_ms` has been read: so the run began at least that
    /// long ago.
    pub(crate) fn saw(&mut self, at_ms: u64) {
        let began = Instant::now().checked_sub(Duration::from_millis(at_ms));
        self.run_began = match (self.run_began, began) {
            (Some(before), Some(began)) => Some(before.min(began)),
            (before, began) => before.or(began),
        };
    }

    /// Reports whether what a user says in a topic reaches the users on all nodes: each node knows
    /// the others, and the bus knows its subscriptions. True of one server.
    pub(crate) fn shares_topics(&mut self) -> bool {
        let Some(nodes) = self.spec.node else { return true };
        if self.history.sharing.last().is_some_and(|(_, is_sharing)| *is_sharing) {
            return true;
        }
        let shares = |server: &TestBedServer| {
            server.endpoint.snapshot().is_some_and(|snapshot| {
                let counters = &snapshot.counters;
                counters.nodes + 1 == u64::from(nodes) && counters.bus_subscriptions > 0
            })
        };
        let is_sharing = self.running.as_ref().is_ok_and(shares) && self.others.iter().all(shares);
        if let Some(began) = self.run_began.filter(|_| is_sharing) {
            self.history.sharing.push((began.elapsed().as_millis() as u64, true));
        }
        is_sharing
    }

    /// Stops the server, of several the last one, and starts it again. It is asked for by an
    /// interval that ended at `at_ms`. Returns false if it did not start.
    pub(crate) fn restart(&mut self, at_ms: u64) -> bool {
        let began = Instant::now();
        if let Ok(server) = &mut self.running {
            server.end();
        }
        self.history.sharing.push((at_ms, false));
        self.running = self.test_bed.serve(self.spec);
        self.history.down = self.running.is_ok().then(|| began.elapsed());
        self.running.is_ok()
    }

    /// Stops the server. Returns what happened to it.
    pub(crate) fn stop(self) -> Result<ServerHistory, TestBedError> {
        self.running?.stop();
        self.others.into_iter().for_each(TestBedServer::stop);
        Ok(self.history)
    }
}

impl ServerHistory {
    /// Reports whether the servers were known to share their topics at a moment of the run.
    pub(crate) fn shared_at(&self, at_ms: u64) -> bool {
        let before = self.sharing.iter().take_while(|(moment, _)| *moment <= at_ms);
        before.last().is_some_and(|(_, is_sharing)| *is_sharing)
    }

    /// Returns the time from the end of a node until all of them were known to share their topics
    /// again.
    pub(crate) fn shared_after_ms(&self) -> Option<u64> {
        let ended = self.sharing.iter().position(|(_, is_sharing)| !is_sharing)?;
        let (again, _) = self.sharing.get(ended + 1)?;
        Some(again.saturating_sub(self.sharing[ended].0))
    }
}
