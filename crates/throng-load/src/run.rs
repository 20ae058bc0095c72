//! A run of the generator: planned, started, steered and collected.

mod collect;
mod errors_shown;
mod probes;
mod shortages;

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant as WallClock};

use throng_base::units::{brief_count, show_count, show_duration};
use throng_driver::{
    Clock, Cores, CoresOptions, Errno, MailboxSender, SocketOptions, fdtable, process,
};
use throng_engine::{Core, CoreLimits};
use throng_report::{LoadInterval, RunEventKind};

use crate::capacity::{Capacity, Demand, cores_for, loopback_sources};
use crate::generator::{CoreStats, Generator, GeneratorConfig, GeneratorMessage, SEND_BYTES_MAX};
use crate::program::Program;
use crate::scenario::{Phase, Reach, Scenario, Target};
use crate::source::SourcePlan;
pub use collect::Collector;
use shortages::Shortages;

/// What the command line may set.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Whom to connect to, in place of the scenario's target.
    pub target: Option<Target>,
    /// Cores. Default: the larger of the CPUs and the fd tables that the connections need.
    pub cores: Option<usize>,
    /// Source addresses. Default: as many of 127.0.0.0/8 as are needed for a target on this machine, else the kernel's choice.
    pub sources: Vec<IpAddr>,
    /// Ports that the generator hands out itself. Default: the kernel chooses them at connect.
    pub source_ports: Option<RangeInclusive<u16>>,
    /// Decides everything random. Default 1, so that two runs are alike.
    pub seed: Option<u64>,
    /// Options of the sockets.
    pub sockets: SocketOptions,
}

/// A run that can start: its target is resolved, its capacity known.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// Whom it connects to, path and query included.
    pub target: Target,
    /// The addresses of the target.
    pub targets: Vec<SocketAddr>,
    /// What is needed and what there is.
    pub capacity: Capacity,
    /// Where connections leave from.
    pub sources: SourcePlan,
    /// The length of all phases.
    pub length: Duration,
    program: Program,
    phases: Vec<Phase>,
    options: SocketOptions,
    seed: u64,
}

/// Why a run cannot start.
#[derive(Debug)]
pub enum LoadError {
    /// The target's name has no address.
    Resolve {
        /// The target.
        target: Target,
        /// What the resolver said.
        error: String,
    },
    /// The options contradict the scenario, or each other; the text says how.
    Options(String),
    /// The kernel refused something that every core needs.
    Start(Errno),
}

impl LoadPlan {
    /// Plans a run of `scenario`. Whether this machine has what it needs is for the caller to see: what does not fit fails
    /// when it is tried, as a connect that finds no fd or no port.
    ///
    /// # Errors
    /// When the target cannot be resolved, or the options contradict the scenario.
    pub fn new(scenario: &Scenario, options: &LoadOptions) -> Result<Self, LoadError> {
        let scenario = &retargeted(scenario, options.target.as_ref())?;
        let targets = resolve(&scenario.target)?;
        let demand = Demand::of(scenario);
        let on_loopback = targets.iter().all(|target| Reach::of(target.ip()) == Reach::Loopback);
        let port_range = local_port_range();
        let time_wait = time_wait(on_loopback);
        let sources = match (&options.sources[..], &options.source_ports) {
            ([], None) if on_loopback && targets.iter().all(SocketAddr::is_ipv4) => {
                loopback_sources(demand, &port_range, time_wait)
            }
            ([], None) => SourcePlan::Any,
            // This machine's own address is the target's, on loopback alone.
            ([], Some(ports)) if on_loopback => {
                SourcePlan::Explicit([targets[0].ip()].into(), ports.clone())
            }
            ([], Some(_)) => {
                let what =
                    "source ports are handed out by address: name the addresses with `--source`";
                return Err(LoadError::Options(what.to_owned()));
            }
            (addresses, None) => SourcePlan::Late(addresses.into()),
            (addresses, Some(ports)) => SourcePlan::Explicit(addresses.into(), ports.clone()),
        };
        let port_range = options.source_ports.clone().unwrap_or(port_range);
        let limit = fdtable::raise_limit();
        let private_fds = fdtable::can_be_private().is_ok();
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let cores = options
            .cores
            .unwrap_or_else(|| cores_for(demand.connections, cpus, limit, private_fds));
        let capacity = Capacity {
            demand,
            cores,
            fds_per_table: match private_fds {
                true => fdtable::usable(limit, cores),
                false => fdtable::usable_shared(limit, cores),
            },
            private_fds,
            addresses: sources.addresses(),
            ports: sources.ports(&port_range).saturating_mul(targets.len() as u64),
            port_range,
            time_wait,
        };
        Ok(Self {
            target: scenario.target.clone(),
            targets,
            capacity,
            sources,
            length: crate::schedule::length(&scenario.load),
            program: Program::compile(scenario),
            phases: scenario.load.clone(),
            options: options.sockets,
            seed: options.seed.unwrap_or(1),
        })
    }

    /// What users do.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Whether a connection may have its target's own address and port as its source.
    fn may_meet_itself(&self) -> bool {
        let Capacity { port_range, .. } = &self.capacity;
        self.targets
            .iter()
            .any(|target| port_range.contains(&target.port()) && self.sources.may_be(target.ip()))
    }

    /// The phases, as they are called in reports.
    pub fn phase_names(&self) -> Vec<String> {
        self.phases.iter().map(phase_name).collect()
    }
}

/// A generator that runs.
pub struct Load {
    cores: Cores<GeneratorMessage>,
    post: MailboxSender<GeneratorMessage>,
    collector: Collector,
    replies: Receiver<Box<CoreStats>>,
    reply: Sender<Box<CoreStats>>,
    shortages: Shortages,
    rss_bytes_at_start: u64,
    /// Set by [`Self::pause`], which needs no more than a shared reference.
    is_paused: AtomicBool,
}

impl Load {
    /// Starts a planned run. The first phase begins a moment later, at the same time on all cores.
    ///
    /// # Errors
    /// When a core cannot be set up.
    pub fn start(plan: LoadPlan) -> Result<Self, LoadError> {
        let cores = plan.capacity.cores;
        let mut phases = plan.phase_names();
        phases.push(throng_report::LEAVING.to_owned());
        let classes = plan.program.classes().iter().map(|class| class.name.clone()).collect();
        let start_at = Clock.now() + START_DELAY + START_DELAY_PER_CORE * cores as u32;
        let limits = limits(&plan.program);
        let may_meet_itself = plan.may_meet_itself();
        let probe = plan.program.probe().cloned();
        let shortages = Shortages::new(&plan.sources, &plan.targets, cores);
        let config = Arc::new(GeneratorConfig {
            program: plan.program,
            phases: plan.phases,
            targets: plan.targets,
            sources: plan.sources,
            may_meet_itself,
            options: plan.options,
            seed: plan.seed,
            start_at,
        });
        // The generator opens every fd that it uses on the core that uses it.
        let private_fds = plan.capacity.private_fds;
        let options = CoresOptions { name: "load", cores, private_fds, ..CoresOptions::default() };
        let cores = throng_driver::spawn(&options, move |driver| {
            let (core, cores) =
                (throng_driver::Driver::core(&driver), throng_driver::Driver::cores(&driver));
            let generator = Generator::new(Arc::clone(&config), core, cores);
            Core::new(driver, generator, limits).run();
        })
        .map_err(LoadError::Start)?;
        let (reply, replies) = mpsc::channel();
        let post = cores.sender();
        let collector = Collector::new(post.cores(), phases, classes, probe.as_ref());
        let rss_bytes_at_start = process::rss_bytes();
        Ok(Self {
            cores,
            post,
            collector,
            replies,
            reply,
            shortages,
            rss_bytes_at_start,
            is_paused: AtomicBool::new(false),
        })
    }

    /// What was measured since the last call; moments are on the machine's monotonic clock. A core
    /// that does not answer within half a second is shown as it was, and counted as silent; what it
    /// measured comes with a later call.
    pub fn snapshot(&mut self) -> LoadInterval {
        for (core, blank) in self.collector.ask() {
            self.post.send_control(core, GeneratorMessage::Collect(blank, self.reply.clone()));
        }
        let give_up_at = WallClock::now() + COLLECT_TIMEOUT;
        while self.collector.is_waiting() {
            let patience = give_up_at.saturating_duration_since(WallClock::now());
            let Ok(stats) = self.replies.recv_timeout(patience) else { break };
            self.collector.take_in(stats);
        }
        let mut interval = self.collector.interval();
        interval.paused = self.is_paused.load(Relaxed) && !interval.is_leaving();
        interval.process = process::own_use();
        interval.process.rss_bytes_at_start = self.rss_bytes_at_start;
        interval
    }

    /// What it has run out of since the last call, as of the last [`Self::snapshot`].
    pub fn events(&mut self) -> Vec<RunEventKind> {
        let cores = self.collector.latest().enumerate();
        let shortages =
            cores.flat_map(|(core, stats)| self.shortages.tell(core, &stats.connect_failures));
        let mut events: Vec<_> = shortages.collect();
        events.extend(self.collector.errors_to_show());
        events
    }

    /// Whether the schedule is over and everybody has left, as of the last [`Self::snapshot`].
    pub fn is_finished(&self) -> bool {
        self.collector.latest().all(|stats| stats.finished)
    }

    /// Whether a core has ended that nobody stopped: a fault of throng.
    pub fn is_broken(&self) -> bool {
        self.cores.any_ended()
    }

    /// Users in their program, and connections established, as of the last [`Self::snapshot`].
    pub fn counts(&self) -> (u64, u64) {
        let sum = |f: fn(&CoreStats) -> u64| self.collector.latest().map(f).sum();
        (sum(|stats| stats.counters.users_active), sum(|stats| stats.counters.connected))
    }

    /// Begins `count` more users, one a millisecond.
    pub fn add_users(&self, count: u64) {
        self.share(count, GeneratorMessage::AddUsers);
    }

    /// Lets `count` users leave.
    pub fn stop_users(&self, count: u64) {
        self.share(count, GeneratorMessage::StopUsers);
    }

    /// Nobody new begins until [`Self::resume`].
    pub fn pause(&self) {
        self.is_paused.store(true, Relaxed);
        self.post.send_to_all(|_| GeneratorMessage::Pause);
    }

    /// The schedule goes on where it was.
    pub fn resume(&self) {
        self.is_paused.store(false, Relaxed);
        self.post.send_to_all(|_| GeneratorMessage::Resume);
    }

    /// Ends the run in order: nobody new begins, everybody leaves.
    pub fn ramp_down(&self) {
        self.post.send_to_all(|_| GeneratorMessage::RampDown);
    }

    /// Ends the cores, whatever their users are doing. True when none of them had panicked.
    pub fn join(mut self) -> bool {
        self.post.send_to_all(|_| GeneratorMessage::Stop);
        self.cores.join()
    }

    fn share(&self, count: u64, mail: impl Fn(u64) -> GeneratorMessage) {
        let cores = self.post.cores() as u64;
        self.post
            .send_to_all(|core| mail(count / cores + u64::from((core as u64) < count % cores)));
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resolve { target, error } => write!(f, "{target} has no address: {error}"),
            Self::Options(what) => f.write_str(what),
            Self::Start(errno) => write!(f, "the generator's cores cannot start: {errno}"),
        }
    }
}

impl std::error::Error for LoadError {}

/// The scenario against the target that was named in place of its own. Where that says nothing of a path, the
/// scenario's stays.
fn retargeted(scenario: &Scenario, target: Option<&Target>) -> Result<Scenario, LoadError> {
    let mut scenario = scenario.clone();
    let Some(target) = target else { return Ok(scenario) };
    if target.scheme != scenario.target.scheme {
        return Err(LoadError::Options(format!(
            "the scenario speaks `{}` and {target} does not: its target begins with `{}://`",
            scenario.protocol.name(),
            scenario.target.scheme.as_str(),
        )));
    }
    let own_path = std::mem::replace(&mut scenario.target, target.clone()).path;
    if scenario.target.path.is_empty() {
        scenario.target.path = own_path;
    }
    Ok(scenario)
}

/// A user does not send while the other end has not taken what it sent before; so what waits for one connection is
/// at most one message, and what was appended to the same send before it.
fn limits(program: &Program) -> CoreLimits {
    let limits = CoreLimits::default();
    let needed = program.message_bytes_most() + SEND_BYTES_MAX;
    CoreLimits { pending_bytes_max: limits.pending_bytes_max.max(needed), ..limits }
}

fn phase_name(phase: &Phase) -> String {
    match phase {
        Phase::Ramp { to, over } => {
            format!("ramp to {} over {}", show_count(u64::from(*to)), show_duration(*over))
        }
        Phase::Hold { span } => format!("hold for {}", show_duration(*span)),
        Phase::Arrivals { from, to, .. } if from == to => {
            format!("arrivals {}/s", brief_count(*from))
        }
        Phase::Arrivals { from, to, .. } => {
            format!("arrivals {}/s to {}/s", brief_count(*from), brief_count(*to))
        }
    }
}

fn resolve(target: &Target) -> Result<Vec<SocketAddr>, LoadError> {
    let wrong = |error: String| LoadError::Resolve { target: target.clone(), error };
    let found = (target.host.as_str(), target.port)
        .to_socket_addrs()
        .map_err(|error| wrong(error.to_string()))?;
    let mut addresses: Vec<SocketAddr> = found.collect();
    addresses.dedup();
    // Sources are of one family, so targets are too. IPv4 where there is one: `localhost` is both, and servers
    // that listen on 127.0.0.1 alone are many.
    if addresses.iter().any(SocketAddr::is_ipv4) {
        addresses.retain(SocketAddr::is_ipv4);
    }
    if addresses.is_empty() {
        Err(wrong("the resolver knows none".to_owned()))
    } else {
        Ok(addresses)
    }
}

/// The ports that the kernel gives to connections, here and in this network namespace.
fn local_port_range() -> RangeInclusive<u16> {
    let read = || {
        let text =
            std::fs::read_to_string(Path::new("/proc/sys/net/ipv4/ip_local_port_range")).ok()?;
        let mut numbers = text.split_whitespace().map(str::parse);
        Some(numbers.next()?.ok()?..=numbers.next()?.ok()?)
    };
    read().unwrap_or(32_768..=60_999)
}

/// How long the port of a closed connection is lost.
fn time_wait(on_loopback: bool) -> Duration {
    let reuse = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_tw_reuse").unwrap_or_default();
    match reuse.trim() {
        // After a second a new connection may take it over: anywhere, or on loopback only.
        "1" => Duration::from_secs(1),
        "2" if on_loopback => Duration::from_secs(1),
        _ => Duration::from_secs(60),
    }
}

/// From the start of the cores to the first user.
const START_DELAY: Duration = Duration::from_millis(50);
const START_DELAY_PER_CORE: Duration = Duration::from_millis(2);
const COLLECT_TIMEOUT: Duration = Duration::from_millis(500);
