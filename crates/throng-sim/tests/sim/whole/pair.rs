//! A server and a generator in one world.

use std::cell::RefCell;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use throng_base::Instant;
use throng_engine::{Core, CoreLimits};
use throng_load::cues::Cues;
use throng_load::generator::{
    CoreStats, CueTally, Generator, GeneratorConfig, GeneratorMessage as LoadMail,
};
use throng_load::peers::{PeerHub, PeerMessage};
use throng_load::program::Program;
use throng_load::scenario::Scenario;
use throng_load::schedule::MachineShare;
use throng_load::source::SourcePlan;
use throng_measure::{LoadCounters, Merge, ServerCounters};
use throng_server::kinds::Echo;
use throng_server::{AcceptTopology, CoreMessage, ListenReport, ServerApp, ServerConfig};
use throng_sim::{FaultyDriver, Sim, SimCores, SimCoresOptions, SimDriver};

type ServerDriver = FaultyDriver<SimDriver<CoreMessage<Infallible>>>;
type LoadDriver = FaultyDriver<SimDriver<LoadMail>>;
pub(crate) type ServerCore = Rc<RefCell<Core<ServerDriver, ServerApp<Echo, ServerDriver>>>>;
pub(crate) type LoadCore = Rc<RefCell<Core<LoadDriver, Generator>>>;

/// Server and generator.
pub(crate) struct Pair {
    pub(crate) server: SimCores<CoreMessage<Infallible>>,
    pub(crate) server_cores: Vec<ServerCore>,
    pub(crate) load_cores: Vec<LoadCore>,
    /// What the cores of several machines say to one another.
    peers: Option<PeerExchange>,
    accept: AcceptTopology,
    shape: Shape,
}

/// The way between the cores of several machines, as a bus and a coordinator are.
struct PeerExchange {
    hub: RefCell<PeerHub>,
    messages: Receiver<PeerMessage>,
    machines: Vec<(MachineShare, SimCores<LoadMail>)>,
    start_at: Instant,
}

/// Sizes of server and generator.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) server_cores: usize,
    pub(crate) connections_max: usize,
    /// Sockets that fit into each fd table of the server.
    pub(crate) fds_max: usize,
    pub(crate) backlog: u32,
    pub(crate) idle_timeout: Option<Duration>,
    /// Cores of the generator, on each of its machines.
    pub(crate) load_cores: Vec<usize>,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            server_cores: 3,
            connections_max: usize::MAX,
            fds_max: usize::MAX,
            backlog: 100,
            idle_timeout: None,
            load_cores: vec![2],
        }
    }
}

impl Pair {
    /// Starts a server, then a generator that runs `scenario` (without its target).
    pub(crate) fn start(
        sim: &mut Sim,
        accept: AcceptTopology,
        shape: Shape,
        scenario: &str,
    ) -> Self {
        let server = sim.cores(&SimCoresOptions {
            cores: shape.server_cores,
            permits: shape.connections_max,
            fds_max: shape.fds_max,
            ..SimCoresOptions::default()
        });
        let config = Arc::new(ServerConfig {
            accept,
            backlog: shape.backlog,
            idle_timeout: shape.idle_timeout,
            connections_max: shape.connections_max,
            ..ServerConfig::default()
        });
        let faults = sim.faults();
        let mut server_cores = Vec::new();
        for driver in server.drivers() {
            let driver = FaultyDriver::new(driver, faults.clone(), sim.prng());
            let app = ServerApp::new(Arc::clone(&config), Echo);
            server_cores.push(sim.spawn(Core::new(driver, app, CoreLimits::default())));
        }
        let mut pair =
            Self { server, server_cores, load_cores: Vec::new(), peers: None, accept, shape };
        pair.listen(sim);

        let text = format!("target: tcp://{}\n{scenario}", server_addr());
        let scenario = Scenario::parse(&text, "test").unwrap();
        let program = Program::compile(&scenario);
        let start_at = sim.now() + Duration::from_millis(100);
        let (peers, messages) = channel();
        let has_peers = pair.shape.load_cores.len() > 1;
        let config = |share| GeneratorConfig {
            cues: Cues::new(program.cues()).into(),
            program: program.clone(),
            load: scenario.load.clone(),
            targets: vec![server_addr()],
            sources: SourcePlan::Any,
            self_connect_possible: false,
            options: Default::default(),
            seed: sim.seed(),
            start_at,
            run: 1,
            first_user: 0,
            share: Some(share),
            peers: has_peers.then(|| peers.clone()),
            trace: None,
        };
        let shares = MachineShare::deal(&pair.shape.load_cores);
        let configs: Vec<_> =
            shares.into_iter().map(|share| (share, Arc::new(config(share)))).collect();
        let mut machines = Vec::new();
        for (share, config) in configs {
            let cores = share.cores();
            let load: SimCores<LoadMail> =
                sim.cores(&SimCoresOptions { cores, ..Default::default() });
            for (core, driver) in load.drivers().into_iter().enumerate() {
                let driver = FaultyDriver::new(driver, faults.clone(), sim.prng());
                let app = Generator::new(Arc::clone(&config), core, cores);
                pair.load_cores.push(sim.spawn(Core::new(driver, app, CoreLimits::default())));
            }
            machines.push((share, load));
        }
        let hub = PeerHub::new(program.cues(), pair.load_cores.len()).into();
        pair.peers = has_peers.then_some(PeerExchange { hub, messages, machines, start_at });
        pair
    }

    /// Makes the server listen, as its control thread does.
    pub(crate) fn listen(&self, sim: &mut Sim) {
        let (reply, answers) = channel::<ListenReport>();
        let hear = |sim: &mut Sim, count: usize| {
            for _ in 0..count {
                let mut answer = None;
                sim.run_until(Duration::from_secs(10), |_| {
                    answer = answer.take().or_else(|| answers.try_recv().ok());
                    answer.is_some()
                });
                answer.expect("a core did not answer").1.expect("a core cannot listen");
            }
        };
        let cores = self.shape.server_cores;
        if self.accept == AcceptTopology::Reuseport {
            for core in 0..cores {
                self.server.send_message(core, CoreMessage::listen(server_addr(), reply.clone()));
                hear(sim, 1);
            }
        } else {
            (1..cores).for_each(|core| {
                self.server.send_message(core, CoreMessage::expect_listener(reply.clone()))
            });
            hear(sim, cores - 1);
            self.server.send_message(0, CoreMessage::listen_for_all(server_addr(), reply.clone()));
            hear(sim, cores);
        }
    }

    /// Makes the server close its listeners.
    pub(crate) fn suspend(&self, sim: &mut Sim) {
        let (reply, answers) = channel();
        (0..self.shape.server_cores)
            .for_each(|core| self.server.send_message(core, CoreMessage::suspend(reply.clone())));
        let mut heard = 0;
        sim.run_until(Duration::from_secs(10), |_| {
            heard += answers.try_iter().count();
            heard == self.shape.server_cores
        });
        assert_eq!(heard, self.shape.server_cores);
    }

    /// Runs until the schedule is over, all users have left, and the server knows it.
    pub(crate) fn finish(&self, sim: &mut Sim, limit: Duration) {
        let over = sim.run_until(limit, |sim| {
            self.exchange(sim.now());
            self.is_over()
        });
        let server = self.server_counters(sim);
        assert!(over, "{:?} {server:?}", self.load_counters());
        // Deliver the segments in transit.
        sim.run_for(Duration::from_secs(200));
    }

    /// Passes what cores say to those of other machines.
    fn exchange(&self, now: Instant) {
        let Some(PeerExchange { hub, messages, machines, start_at }) = &self.peers else { return };
        // All machines speak through one channel here.
        let of_all = 0..usize::MAX;
        for message in messages.try_iter() {
            let taken = hub.borrow_mut().take(message, &of_all, now.since(*start_at));
            for order in taken.expect("cores say what is possible") {
                for (share, cores) in machines {
                    if let Some(core) = share.core_at(order.slot()) {
                        cores.send_message(core, LoadMail::Peer(order.clone()));
                    }
                }
            }
        }
    }

    /// Returns how often each barrier or signal was opened, as the machines have decided together.
    pub(crate) fn cues_opened(&self) -> Vec<u64> {
        let peers = self.peers.as_ref().expect("several machines");
        peers.hub.borrow().cues().map(|(opened, _)| opened).collect()
    }

    fn is_over(&self) -> bool {
        let finished = |core: &LoadCore| core.borrow().app().is_finished();
        self.load_cores.iter().all(finished) && self.open() == 0
    }

    /// Returns the number of connections in the tables of the server's cores.
    pub(crate) fn open(&self) -> usize {
        self.server_cores.iter().map(|core| core.borrow_mut().cx().len()).sum()
    }

    pub(crate) fn core_stats(&self) -> Vec<CoreStats> {
        self.load_cores.iter().map(|core| core.borrow().app().stats().clone()).collect()
    }

    pub(crate) fn load_counters(&self) -> LoadCounters {
        let mut sum = LoadCounters::default();
        self.core_stats().iter().for_each(|stats| sum.merge(&stats.counters));
        sum
    }

    /// Returns what the users have waited for one another, over all cores.
    pub(crate) fn cues(&self) -> Vec<CueTally> {
        let mut sums = Vec::new();
        for stats in self.core_stats() {
            sums.resize(stats.cues.len(), CueTally::default());
            sums.iter_mut().zip(&stats.cues).for_each(|(sum, tally)| sum.add(tally));
        }
        sums
    }

    /// Returns the errors of established connections, and connects that timed out.
    pub(crate) fn errors(&self) -> u64 {
        self.core_stats().iter().flat_map(|stats| *stats.errors).sum::<u64>()
            + self.load_counters().connects_failed
    }

    /// Returns the server's counters.
    pub(crate) fn server_counters(&self, sim: &mut Sim) -> ServerCounters {
        let (reply, answers) = channel();
        let cores = self.shape.server_cores;
        (0..cores)
            .for_each(|core| self.server.send_message(core, CoreMessage::collect(reply.clone())));
        let mut reports = Vec::new();
        sim.run_until(Duration::from_secs(10), |_| {
            reports.extend(answers.try_iter());
            reports.len() == cores
        });
        assert_eq!(reports.len(), cores);
        let mut sum = ServerCounters::default();
        reports.iter().for_each(|report| sum.merge(&report.server));
        sum
    }
}

pub(crate) fn server_addr() -> SocketAddr {
    "127.0.0.1:5555".parse().unwrap()
}
