//! A run of the generator: its plan, start, control and measurements.

mod collect;
mod first_errors;
mod probes;
mod shortages;
mod trial;

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant as WallClock};

use throng_driver::{
    Clock, Cores, CoresOptions, Errno, MailboxSender, SocketOptions, fdtable, process,
};
use throng_engine::{Core, CoreLimits};
use throng_report::{Limit, LoadInterval, RunEventKind};

use crate::capacity::{Capacity, Demand, cores_for, loopback_sources};
use crate::cues::Cues;
use crate::generator::{CoreStats, Generator, GeneratorConfig, GeneratorMessage, TraceOptions};
use crate::program::Program;
use crate::scenario::{Phase, Reach, Scenario, Target, outline, phase_name};
use crate::source::SourcePlan;
use crate::steps::send::SEND_BYTES_MAX;
pub use collect::Collector;
use shortages::Shortages;
pub use trial::Trial;

/// Options of a run that the command line may set.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Target in place of the scenario's.
    pub target: Option<Target>,
    /// Number of cores. Default: the larger of the CPUs and the fd tables that the connections
    /// need.
    pub cores: Option<usize>,
    /// Source addresses. Default: for a target on this machine as many of 127.0.0.0/8 as needed,
    /// otherwise the kernel's choice.
    pub sources: Vec<IpAddr>,
    /// Source ports that the generator assigns itself. Default: the kernel chooses them at connect.
    pub source_ports: Option<RangeInclusive<u16>>,
    /// Seed of everything random. Default 1, so that runs are repeatable.
    pub seed: Option<u64>,
    /// Options of the sockets.
    pub sockets: SocketOptions,
}

/// A planned run: its target is resolved and its capacity known.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// Target of the run, with path and query.
    pub target: Target,
    /// Addresses of the target.
    pub targets: Vec<SocketAddr>,
    /// Demand of the run and capacity of this machine.
    pub capacity: Capacity,
    /// Source addresses and ports of the connections.
    pub sources: SourcePlan,
    /// Length of all phases.
    pub length: Duration,
    program: Program,
    phases: Vec<Phase>,
    options: SocketOptions,
    seed: u64,
    first_user: u64,
    trace: Option<TraceOptions>,
}

/// Error of planning or starting a run.
#[derive(Debug)]
pub enum LoadError {
    /// The target's name has no address.
    Resolve {
        /// The target.
        target: Target,
        /// Error text of the resolver.
        error: String,
    },
    /// The options contradict the scenario or each other; the text says how.
    Options(String),
    /// The kernel refused a resource that every core needs.
    Start(Errno),
}

impl LoadPlan {
    /// Plans a run of `scenario`. The caller checks the capacity. What does not fit fails when it
    /// is tried, for instance a connect that gets no fd or no port.
    ///
    /// # Errors
    /// When the target cannot be resolved, or the options contradict the scenario.
    pub fn new(scenario: &Scenario, options: &LoadOptions) -> Result<Self, LoadError> {
        let scenario = &with_target(scenario, options.target.as_ref())?;
        let targets = resolve(&scenario.target)?;
        let program = Program::compile(scenario);
        let demand = Demand::of(&program, &scenario.load);
        let on_loopback = targets.iter().all(|target| Reach::of(target.ip()) == Reach::Loopback);
        let port_range = local_port_range();
        let time_wait = time_wait(on_loopback);
        let sources = match (&options.sources[..], &options.source_ports) {
            ([], None) if on_loopback && targets.iter().all(SocketAddr::is_ipv4) => {
                loopback_sources(demand, &port_range, time_wait)
            }
            ([], None) => SourcePlan::Any,
            // On loopback the target's address is also this machine's.
            ([], Some(ports)) if on_loopback => {
                SourcePlan::Explicit([targets[0].ip()].into(), ports.clone())
            }
            ([], Some(_)) => {
                let what = "source ports need source addresses: name them with `--source`";
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
            fds_per_table: if private_fds {
                fdtable::usable(limit, cores)
            } else {
                fdtable::usable_shared(limit, cores)
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
            program,
            phases: scenario.load.clone(),
            options: options.sockets,
            seed: options.seed.unwrap_or(1),
            first_user: 0,
            trace: None,
        })
    }

    /// Watches users during the run.
    pub fn watch_users(&mut self, trace: TraceOptions) {
        self.trace = Some(trace);
    }

    /// Returns the compiled program of the users.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Reports whether the target's own address and port are among the sources.
    fn self_connect_possible(&self) -> bool {
        let Capacity { port_range, .. } = &self.capacity;
        self.targets
            .iter()
            .any(|target| port_range.contains(&target.port()) && self.sources.includes(target.ip()))
    }

    /// Returns the names of the phases in reports.
    pub fn phase_names(&self) -> Vec<String> {
        self.phases.iter().map(phase_name).collect()
    }

    /// Returns the load in a line: the names of the phases, each repeated part once.
    pub fn load_outline(&self) -> String {
        outline(&self.phases)
    }
}

/// A running generator.
pub struct RunningLoad {
    cores: Cores<GeneratorMessage>,
    mailbox: MailboxSender<GeneratorMessage>,
    collector: Collector,
    replies: Receiver<Box<CoreStats>>,
    reply: Sender<Box<CoreStats>>,
    shortages: Shortages,
    rss_bytes_at_start: u64,
    /// Set by [`Self::pause`], which takes a shared reference.
    is_paused: AtomicBool,
}

impl RunningLoad {
    /// Starts a planned run. The first phase begins shortly after, at the same time on all cores.
    ///
    /// # Errors
    /// When a core cannot be set up.
    pub fn start(plan: LoadPlan) -> Result<Self, LoadError> {
        let cores = plan.capacity.cores;
        let mut phases = plan.phase_names();
        phases.push(throng_report::LEAVING.to_owned());
        let classes = plan.program.classes().iter().map(|class| class.name.clone()).collect();
        let steps = plan.program.step_names().to_vec();
        let limited = plan.program.limits().to_vec();
        let start_at = Clock.now() + START_DELAY + START_DELAY_PER_CORE * cores as u32;
        let limits = limits(&plan.program);
        let self_connect_possible = plan.self_connect_possible();
        let probe = plan.program.probe().cloned();
        let addresses = plan.targets.clone();
        let shortages = Shortages::new(&plan.sources, &plan.targets, cores);
        let config = Arc::new(GeneratorConfig {
            cues: Cues::new(plan.program.cues()).into(),
            program: plan.program,
            phases: plan.phases,
            targets: plan.targets,
            sources: plan.sources,
            self_connect_possible,
            options: plan.options,
            seed: plan.seed,
            start_at,
            first_user: plan.first_user,
            trace: plan.trace,
        });
        // Each core opens all fds that it uses.
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
        let collector = Collector::new(post.cores(), phases, classes, addresses, probe.as_ref());
        let collector = collector.with_steps(&steps).with_limits(&limited);
        let rss_bytes_at_start = process::rss_bytes();
        Ok(Self {
            cores,
            mailbox: post,
            collector,
            replies,
            reply,
            shortages,
            rss_bytes_at_start,
            is_paused: AtomicBool::new(false),
        })
    }

    /// Returns the measurements since the last call. Moments are on the machine's monotonic clock.
    /// A core that does not answer within half a second counts as silent and appears with its
    /// previous counters; a later call includes what it measured.
    pub fn snapshot(&mut self) -> LoadInterval {
        for (core, blank) in self.collector.request_stats() {
            self.mailbox.send_control(core, GeneratorMessage::Collect(blank, self.reply.clone()));
        }
        let give_up_at = WallClock::now() + COLLECT_TIMEOUT;
        while self.collector.is_waiting() {
            let patience = give_up_at.saturating_duration_since(WallClock::now());
            let Ok(stats) = self.replies.recv_timeout(patience) else { break };
            self.collector.add_stats(stats);
        }
        let mut interval = self.collector.interval();
        interval.paused = self.is_paused.load(Relaxed) && !interval.is_leaving();
        interval.process = process::own_use();
        interval.process.rss_bytes_at_start = self.rss_bytes_at_start;
        interval.cpu_us_per_core = self.cores.cpu_us();
        interval
    }

    /// Returns what happened since the last call, as of the last [`Self::snapshot`]: exhausted
    /// resources and first errors.
    pub fn events(&mut self) -> Vec<RunEventKind> {
        let cores = self.collector.latest().enumerate();
        let shortages = cores
            .flat_map(|(core, stats)| self.shortages.new_events(core, &stats.connect_failures));
        let mut events: Vec<_> = shortages.collect();
        events.extend(self.collector.first_errors());
        events
    }

    /// Reports whether the schedule is over and all users have left, as of the last
    /// [`Self::snapshot`].
    pub fn is_finished(&self) -> bool {
        self.collector.latest().all(|stats| stats.finished)
    }

    /// Reports whether a core has ended by itself: a fault of throng.
    pub fn is_broken(&self) -> bool {
        self.cores.any_ended()
    }

    /// Returns the active users and the established connections, as of the last [`Self::snapshot`].
    pub fn counts(&self) -> (u64, u64) {
        let sum = |f: fn(&CoreStats) -> u64| self.collector.latest().map(f).sum();
        (sum(|stats| stats.counters.users_active), sum(|stats| stats.counters.connected))
    }

    /// Starts `count` more users, one per millisecond.
    pub fn add_users(&self, count: u64) {
        self.send_shares(count, GeneratorMessage::AddUsers);
    }

    /// Stops `count` users.
    pub fn stop_users(&self, count: u64) {
        self.send_shares(count, GeneratorMessage::StopUsers);
    }

    /// Pauses the schedule: no user starts until [`Self::resume`].
    pub fn pause(&self) {
        self.is_paused.store(true, Relaxed);
        self.mailbox.send_to_all(|_| GeneratorMessage::Pause);
    }

    /// Resumes the schedule where it stopped.
    pub fn resume(&self) {
        self.is_paused.store(false, Relaxed);
        self.mailbox.send_to_all(|_| GeneratorMessage::Resume);
    }

    /// Ends the run: starts no more users and stops all users.
    pub fn ramp_down(&self) {
        self.mailbox.send_to_all(|_| GeneratorMessage::RampDown);
    }

    /// Ends the cores at once. Returns true if none of them panicked.
    pub fn join(mut self) -> bool {
        self.mailbox.send_to_all(|_| GeneratorMessage::Stop);
        self.cores.join()
    }

    fn send_shares(&self, count: u64, mail: impl Fn(u64) -> GeneratorMessage) {
        let cores = self.mailbox.cores() as u64;
        self.mailbox
            .send_to_all(|core| mail(count / cores + u64::from((core as u64) < count % cores)));
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resolve { target, error } => write!(
                f,
                "the name {} has no address: {error}; correct the target's name, or check the \
                 resolver (getent hosts {})",
                target.host, target.host
            ),
            Self::Options(what) => f.write_str(what),
            Self::Start(errno) => write!(f, "cannot start the generator's cores: {errno}"),
        }
    }
}

impl std::error::Error for LoadError {}

/// Returns the scenario with another target. If that target has no path, the scenario's path stays.
fn with_target(scenario: &Scenario, target: Option<&Target>) -> Result<Scenario, LoadError> {
    let mut scenario = scenario.clone();
    let Some(target) = target else { return Ok(scenario) };
    if target.scheme != scenario.target.scheme {
        return Err(LoadError::Options(format!(
            "the scenario uses `protocol: {}`, but {target} \
             does not: its target must begin with `{}://`",
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

/// Returns the limits of a core. A user does not send while the server has not accepted what it
/// sent before, so one connection has at most one message pending, and the bytes appended to the
/// same send before it.
fn limits(program: &Program) -> CoreLimits {
    let limits = CoreLimits::default();
    let needed = program.message_bytes_max() + SEND_BYTES_MAX;
    CoreLimits { pending_bytes_max: limits.pending_bytes_max.max(needed), ..limits }
}

fn resolve(target: &Target) -> Result<Vec<SocketAddr>, LoadError> {
    let wrong = |error: String| LoadError::Resolve { target: target.clone(), error };
    let found = (target.host.as_str(), target.port)
        .to_socket_addrs()
        .map_err(|error| wrong(error.to_string()))?;
    let mut addresses: Vec<SocketAddr> = found.collect();
    addresses.dedup();
    // All sources are of one family, so all targets are too. Prefer IPv4: `localhost` is both, and
    // many servers listen on 127.0.0.1 alone.
    if addresses.iter().any(SocketAddr::is_ipv4) {
        addresses.retain(SocketAddr::is_ipv4);
    }
    if addresses.is_empty() {
        Err(wrong("the resolver returned none".to_owned()))
    } else {
        Ok(addresses)
    }
}

/// Returns the kernel's range of source ports in this network namespace.
fn local_port_range() -> RangeInclusive<u16> {
    let read = || {
        let path = Path::new("/proc/sys").join(Limit::PORTS.path());
        let text = std::fs::read_to_string(path).ok()?;
        let mut numbers = text.split_whitespace().map(str::parse);
        Some(numbers.next()?.ok()?..=numbers.next()?.ok()?)
    };
    read().unwrap_or(32_768..=60_999)
}

/// Returns the time for which the port of a closed connection cannot be reused.
fn time_wait(on_loopback: bool) -> Duration {
    let reuse = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_tw_reuse").unwrap_or_default();
    match reuse.trim() {
        // After one second a new connection may reuse the port: everywhere, or on loopback only.
        "1" => Duration::from_secs(1),
        "2" if on_loopback => Duration::from_secs(1),
        _ => Duration::from_secs(60),
    }
}

/// Time between the start of the cores and the first user.
const START_DELAY: Duration = Duration::from_millis(50);
const START_DELAY_PER_CORE: Duration = Duration::from_millis(2);
const COLLECT_TIMEOUT: Duration = Duration::from_millis(500);
