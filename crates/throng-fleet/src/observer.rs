//! An observer: it samples the machine of a server, and publishes that on the bus.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use throng_bus::{Bus, BusMonitor, Name, Text};
use throng_measure::watch::{WatchHeader, WatchLine};
use throng_run::watch::HostWatch;

use crate::agent_facts::{agent_name, host_name, random_id, version};
use crate::agent_note::AgentNote;
use crate::link::KEEP_ALIVE;
use crate::subjects::GroupSubjects;

/// What an observer says about itself, once a second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObserverHello {
    /// The observer.
    pub facts: ObserverFacts,
    /// The program that it observes and its process id, if it is found.
    pub program: Option<(Text, u32)>,
    /// The first line of its samples.
    pub observes: WatchHeader,
}

/// What an observer is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObserverFacts {
    /// Its name, which no other observer of its group has.
    pub name: Name,
    /// Tells this process from one that had the name before.
    pub incarnation: Name,
    /// Name of its machine.
    pub host: Name,
    /// Its version of throng.
    pub version: Text,
    /// Process id.
    pub pid: u32,
}

impl ObserverFacts {
    /// Returns the facts of this process. Without a name, it gets that of its machine and a number.
    fn of_this_process(name: Option<Name>) -> Self {
        let (host, incarnation) = (host_name(), random_id());
        Self {
            name: name.unwrap_or_else(|| agent_name(&host, &incarnation)),
            incarnation,
            host,
            version: version(),
            pid: std::process::id(),
        }
    }
}

/// A sample, and the process that took it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ObserverSample {
    pub(crate) incarnation: Name,
    pub(crate) line: WatchLine,
}

/// An observer of the machine on which it runs. It listens nowhere, and goes on while the bus is
/// away: the samples of that time are lost.
pub struct Observer {
    facts: ObserverFacts,
    subjects: GroupSubjects,
    bus: Arc<dyn Bus>,
    interval: Duration,
    hello: Option<ObserverHello>,
    hello_due: Instant,
}

impl Observer {
    /// Creates an observer that publishes a sample every `interval`.
    pub fn new(
        name: Option<Name>,
        subjects: GroupSubjects,
        bus: Arc<dyn Bus>,
        interval: Duration,
    ) -> Self {
        let facts = ObserverFacts::of_this_process(name);
        Self { facts, subjects, bus, interval, hello: None, hello_due: Instant::now() }
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.facts.name
    }

    /// Observes until `is_ended` says so. Calls `note` when the bus is lost, when it is back, and
    /// when it does not let this process publish.
    pub fn work(
        &mut self,
        watch: &mut HostWatch,
        is_ended: impl Fn() -> bool,
        mut note: impl FnMut(AgentNote),
    ) {
        let mut bus_monitor = BusMonitor::new();
        watch.run(self.interval, None, is_ended, |watch, line| {
            self.publish(watch, line);
            let changes = bus_monitor.changes(&*self.bus).into_iter();
            changes.map(AgentNote::Bus).for_each(&mut note);
        });
    }

    fn publish(&mut self, watch: &HostWatch, line: WatchLine) {
        if self.hello_due <= Instant::now() {
            self.hello_due = Instant::now() + KEEP_ALIVE;
            let bytes = serde_json::to_vec(self.hello(watch)).expect("a hello is JSON");
            // While the bus is away, nothing can be said.
            _ = self.bus.publish(&self.subjects.observer(&self.facts.name), &bytes);
        }
        let sample = ObserverSample { incarnation: self.facts.incarnation.clone(), line };
        let bytes = serde_json::to_vec(&sample).expect("a sample is JSON");
        _ = self.bus.publish(&self.subjects.samples(&self.facts.name), &bytes);
    }

    /// Returns what it says about itself. The limits of a process are read when it is another one.
    fn hello(&mut self, watch: &HostWatch) -> &ObserverHello {
        let program = watch.owner().ok().map(|owner| (Text::cut(&owner.program), owner.pid));
        let known = self.hello.take().filter(|known| known.program == program);
        let facts = self.facts.clone();
        let hello = known.unwrap_or_else(|| ObserverHello {
            facts,
            program,
            observes: watch.header(self.interval),
        });
        self.hello.insert(hello)
    }
}
