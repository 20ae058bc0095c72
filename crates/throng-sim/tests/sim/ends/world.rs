//! A server that can be frozen, and a generator, in one world.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use throng_base::Instant;
use throng_driver::MessagePriority;
use throng_engine::{Core, CoreLimits};
use throng_load::cues::Cues;
use throng_load::generator::{CoreStats, ErrorKind, Generator, GeneratorConfig, GeneratorMessage};
use throng_load::program::Program;
use throng_load::scenario::Scenario;
use throng_load::source::SourcePlan;
use throng_measure::{
    ClassCounters, Histogram, LoadCounters, Merge, Operation, OperationInterval, OperationTimes,
    PerOperation, Tally,
};
use throng_sim::{Sim, SimCores, SimCoresOptions, SimDriver};

use super::server::{Answerer, Echo, server_addr};

pub(crate) type LoadCore = Rc<RefCell<Core<SimDriver<GeneratorMessage>, Generator>>>;

/// Server and generator.
pub(crate) struct World {
    server: Server,
    pub(crate) cores: SimCores<GeneratorMessage>,
    pub(crate) load: Vec<LoadCore>,
    /// Start of the schedule.
    pub(crate) start_at: Instant,
}

enum Server {
    Tcp(Rc<RefCell<Core<SimDriver<()>, Echo>>>),
    WebSocket(Rc<RefCell<Core<SimDriver<()>, Answerer>>>),
}

/// Protocol of server and generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    Tcp,
    Ws,
    Phoenix,
    Http,
}

impl World {
    /// Starts a server, and a generator of `cores` cores that runs `scenario` (without its target
    /// and protocol).
    pub(crate) fn start(sim: &mut Sim, speaks: Speaks, cores: usize, scenario: &str) -> Self {
        let [driver] = sim.cores(&SimCoresOptions::default()).drivers().try_into().ok().unwrap();
        let limits = CoreLimits::default();
        let server = match speaks {
            Speaks::Tcp => Server::Tcp(sim.spawn(Core::new(driver, Echo::default(), limits))),
            Speaks::Ws | Speaks::Phoenix | Speaks::Http => {
                Server::WebSocket(sim.spawn(Core::new(driver, Answerer::default(), limits)))
            }
        };
        let target = match speaks {
            Speaks::Tcp => format!("target: tcp://{}", server_addr()),
            Speaks::Ws => format!("target: ws://{}/echo", server_addr()),
            Speaks::Http => format!("target: http://{}", server_addr()),
            Speaks::Phoenix => format!("target: ws://{}/socket\nprotocol: phoenix", server_addr()),
        };
        let text = format!("{target}\n{scenario}");
        let scenario =
            Scenario::parse(&text, "test").unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
        let start_at = sim.now() + Duration::from_millis(100);
        let program = Program::compile(&scenario);
        let config = Arc::new(GeneratorConfig {
            cues: Cues::new(program.cues()).into(),
            program,
            load: scenario.load.clone(),
            targets: vec![server_addr()],
            sources: SourcePlan::Any,
            self_connect_possible: false,
            options: Default::default(),
            seed: sim.seed(),
            start_at,
            run: start_at.as_nanos(),
            first_user: 0,
            share: None,
            peers: None,
            trace: None,
        });
        let sim_cores = sim.cores(&SimCoresOptions { cores, ..SimCoresOptions::default() });
        let start = |(core, driver)| {
            let app = Generator::new(Arc::clone(&config), core, cores);
            sim.spawn(Core::new(driver, app, limits))
        };
        let load = sim_cores.drivers().into_iter().enumerate().map(start).collect();
        Self { server, cores: sim_cores, load, start_at }
    }

    /// Runs the world until `ms` milliseconds after the start of the schedule.
    pub(crate) fn run_to(&self, sim: &mut Sim, ms: u64) {
        let until = self.start_at + Duration::from_millis(ms);
        sim.run_for(until - sim.now());
    }

    /// Freezes the server.
    pub(crate) fn freeze(&self, sim: &mut Sim) {
        match &self.server {
            Server::Tcp(core) => sim.freeze(core),
            Server::WebSocket(core) => sim.freeze(core),
        }
    }

    /// Continues the server.
    pub(crate) fn thaw(&self, sim: &mut Sim) {
        match &self.server {
            Server::Tcp(core) => sim.thaw(core),
            Server::WebSocket(core) => sim.thaw(core),
        }
    }

    /// Sends a message to every core of the generator.
    pub(crate) fn send_to_all(&self, message: impl Fn() -> GeneratorMessage) {
        for core in &self.load {
            let mut core = core.borrow_mut();
            let cx = core.cx();
            let own = cx.core();
            assert!(cx.send_message(own, message(), MessagePriority::Control).is_ok());
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.load.iter().all(|core| core.borrow().app().is_finished())
    }

    /// Runs until all users have left. Checks all sums. Returns counters and histograms.
    pub(crate) fn finish(&self, sim: &mut Sim) -> Totals {
        let over = sim.run_until(Duration::from_secs(3_000), |_| self.is_over());
        let totals = self.totals();
        assert!(over, "{totals:?}");
        totals.close();
        totals
    }

    /// Returns how often the generator's cores went round, and the events of the kernel that they
    /// handled.
    pub(crate) fn turns_and_events(&self) -> u64 {
        let of_core = |core: &LoadCore| {
            let counters = core.borrow_mut().cx().counters().clone();
            counters.turns + counters.events
        };
        self.load.iter().map(of_core).sum()
    }

    /// Returns the counters and histograms so far.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for core in &self.load {
            let core = core.borrow();
            totals.add(core.app().stats());
        }
        totals
    }
}

/// Sums over all cores.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) counters: LoadCounters,
    pub(crate) classes: Vec<ClassCounters>,
    /// Operations of the classes that a threshold is about.
    pub(crate) judged: Vec<PerOperation<OperationInterval>>,
    pub(crate) errors: Tally,
    pub(crate) failed: Tally,
    pub(crate) times: OperationTimes,
    pub(crate) lag: Histogram,
}

impl Totals {
    fn add(&mut self, stats: &CoreStats) {
        self.counters.merge(&stats.counters);
        self.classes.resize_with(stats.classes.len(), Default::default);
        self.classes.iter_mut().zip(&stats.classes).for_each(|(sum, part)| sum.merge(part));
        self.judged.resize_with(stats.judged_classes.len(), Default::default);
        for (sum, part) in self.judged.iter_mut().zip(&stats.judged_classes) {
            sum.add_counts(part);
            sum.merge_measured(part);
        }
        for kind in ErrorKind::OF_USERS {
            self.errors.add(kind.name(), stats.errors[kind as usize]);
        }
        for (why, count) in &stats.connect_failures {
            self.failed.add(why.to_string(), *count);
        }
        self.times.merge(&stats.times);
        self.lag.merge(&stats.lag);
    }

    /// Asserts that the operations of all classes are those of all users.
    #[track_caller]
    fn check_judged(&self) {
        for operation in Operation::ALL {
            let mut sum = OperationInterval::default();
            for class in &self.judged {
                sum.counts = sum.counts.plus(class[operation].counts);
                sum.latency.merge(&class[operation].latency);
                sum.unanswered.merge(&class[operation].unanswered);
            }
            let counts = operation.counts(&self.counters).unwrap_or_default();
            assert_eq!(sum.counts, counts, "{operation}: {self:?}");
            assert_eq!(sum.latency, self.times[operation], "{operation}: {self:?}");
            assert_eq!(sum.unanswered, self.times.unanswered[operation], "{operation}: {self:?}");
        }
    }

    /// Asserts that everything that was begun has one outcome, and that every outcome is in its
    /// histogram.
    #[track_caller]
    pub(crate) fn close(&self) {
        let c = &self.counters;
        assert_eq!((c.users_active, c.connected, c.joined), (0, 0, 0), "{self:?}");
        for operation in Operation::ALL {
            let counts = operation.counts(c).unwrap_or_default();
            assert!(counts.is_closed(), "{operation}: {counts:?} in {self:?}");
        }
        for (what, begun, ends) in [
            ("iterations", c.iterations, [c.users_finished, c.users_failed, c.users_cut]),
            ("turns", c.turns_intended, [c.turns_started, c.turns_failed, c.turns_waiting]),
        ] {
            assert_eq!(begun, ends.iter().sum::<u64>(), "{what}: {ends:?} in {self:?}");
        }
        if c.upgrades_started > 0 {
            let upgraded = c.connects_ok - c.http_connects;
            let ends = [upgraded, c.upgrades_failed, c.upgrades_waiting];
            assert_eq!(
                c.upgrades_started,
                ends.iter().sum::<u64>(),
                "upgrades: {ends:?} in {self:?}"
            );
        }
        match (c.tls_started, c.upgrades_started) {
            (0, upgrades) => assert_eq!(self.times[Operation::Tcp].count(), upgrades),
            (handshakes, _) => assert_eq!(self.times[Operation::Tcp].count(), handshakes),
        }
        let of_classes = |get: fn(&ClassCounters) -> u64| self.classes.iter().map(get).sum::<u64>();
        assert_eq!(of_classes(|class| class.users_started), c.iterations);
        assert_eq!(of_classes(|class| class.users_finished), c.users_finished);
        assert_eq!(of_classes(|class| class.users_failed), c.users_failed);
        assert_eq!(of_classes(|class| class.users_cut), c.users_cut);
        if !self.judged.is_empty() && self.judged.len() == self.classes.len() {
            self.check_judged();
        }
        // The connects of requests before an upgrade have no histogram.
        let of_requests = if c.upgrades_started > 0 { c.http_connects } else { 0 };
        for (operation, seen) in self.times.seen.iter() {
            let without_latency = match operation {
                Operation::Connect => of_requests,
                Operation::Message => c.answers_out_of_step,
                _ => 0,
            };
            if let Some(counts) = operation.counts(c) {
                assert_eq!(seen.count(), counts.ok - without_latency, "{operation}: {self:?}");
            }
        }
        assert_eq!(self.waits(), self.unanswered_count(), "{self:?}");
    }

    /// Returns the number of waits without an answer, by the counters.
    fn waits(&self) -> u64 {
        let c = &self.counters;
        // A connect for a request is a part of the request's wait.
        let whole = Operation::ALL.into_iter().filter(|operation| !operation.is_part());
        let waiting: u64 = whole.filter_map(|of| Some(of.counts(c)?.waiting)).sum();
        let waiting = waiting - c.http_connects_waiting + c.sends_waiting;
        let timed_out = [
            ErrorKind::ExpectTimeout.name(),
            ErrorKind::JoinTimeout.name(),
            ErrorKind::PushTimeout.name(),
            ErrorKind::HttpTimeout.name(),
        ];
        let timed_out: u64 = timed_out.iter().map(|kind| self.errors.get(kind)).sum();
        let connects = self.failed.get(ErrorKind::TlsTimeout)
            + self.failed.get(ErrorKind::ConnectTimeout)
            + self.failed.get("ETIMEDOUT");
        waiting + timed_out + connects + c.turns_waiting + c.turns_failed
    }

    /// Returns the number of waits without an answer, by the histograms.
    fn unanswered_count(&self) -> u64 {
        let whole = self.times.unanswered.iter().filter(|(operation, _)| !operation.is_part());
        whole.map(|(_, histogram)| histogram.count()).sum()
    }
}
