//! A running generator: its cores, how it is controlled, and what it measures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant as WallClock};

use throng_driver::{Clock, Cores, CoresOptions, MailboxSender, process};
use throng_engine::CoreLimits;
use throng_measure::{LoadInterval, RunEventKind};

use super::collect::Collector;
use super::plan::{LoadError, LoadPlan};
use super::shortages::Shortages;
use super::tls::TargetWatch;
use crate::cues::Cues;
use crate::generator::{CoreStats, GeneratorConfig, GeneratorMessage};
use crate::peers::{PeerMessage, PeerOrder};
use crate::program::Program;
use crate::schedule::MachineShare;
use crate::steps::send::SEND_BYTES_MAX;

/// A running generator.
pub struct RunningLoad {
    cores: Cores<GeneratorMessage>,
    mailbox: MailboxSender<GeneratorMessage>,
    collector: Collector,
    replies: Receiver<Box<CoreStats>>,
    reply: Sender<Box<CoreStats>>,
    shortages: Shortages,
    target_tls: TargetWatch,
    rss_bytes_at_start: u64,
    /// Set by [`Self::pause`], which takes a shared reference.
    is_paused: AtomicBool,
    share: Option<MachineShare>,
    /// What the cores say to those of other machines.
    peer_messages: Receiver<PeerMessage>,
}

impl RunningLoad {
    /// Starts a planned run. The first phase begins shortly after, at the same time on all cores.
    ///
    /// # Errors
    /// When a core cannot be set up.
    pub fn start(plan: LoadPlan) -> Result<Self, LoadError> {
        let cores = plan.capacity.cores;
        let collector = plan.collector(cores);
        let start_soon = || Clock.now() + START_DELAY + START_DELAY_PER_CORE * cores as u32;
        let start_at = plan.common.map_or_else(start_soon, |common| common.at);
        let core_limits = core_limits(&plan.program);
        let self_connect_possible = plan.self_connect_possible();
        let driver = plan.capacity.driver.clone();
        let shortages =
            Shortages::new(driver, &plan.sources, &plan.targets, cores, process::sysctl);
        let target_tls = plan.target_tls;
        let (peers, peer_messages) = mpsc::channel();
        let share = plan.share;
        let config = Arc::new(GeneratorConfig {
            cues: Cues::new(plan.program.cues()).into(),
            program: plan.program,
            load: plan.load,
            targets: plan.targets,
            sources: plan.sources,
            self_connect_possible,
            options: plan.options,
            seed: plan.seed,
            start_at,
            run: plan.common.map_or(start_at.as_nanos(), |common| common.run),
            first_user: plan.first_user,
            share: plan.share,
            peers: plan.common.map(|_| peers),
            trace: plan.trace,
        });
        // Each core opens all fds that it uses.
        let private_fds = plan.capacity.driver.private_fds();
        let options = CoresOptions { name: "load", cores, private_fds, ..CoresOptions::default() };
        let transport = plan.transport.clone();
        let cores = plan.driver.start(&options, config, core_limits, transport);
        let cores = cores.map_err(LoadError::Start)?;
        let (reply, replies) = mpsc::channel();
        let post = cores.sender();
        let rss_bytes_at_start = process::rss_bytes();
        Ok(Self {
            cores,
            mailbox: post,
            collector,
            replies,
            reply,
            shortages,
            target_tls,
            rss_bytes_at_start,
            is_paused: AtomicBool::new(false),
            share,
            peer_messages,
        })
    }

    /// Returns the measurements since the last call. Moments are on the machine's monotonic clock.
    /// A core that does not answer within half a second counts as silent and appears with its
    /// previous counters; a later call includes what it measured.
    pub fn snapshot(&mut self) -> LoadInterval {
        self.snapshot_of_cores(|_| ())
    }

    /// Returns what [`snapshot`](Self::snapshot) does, and gives `on_core` what each core measured.
    pub fn snapshot_of_cores(&mut self, mut on_core: impl FnMut(&CoreStats)) -> LoadInterval {
        for (core, blank) in self.collector.request_stats() {
            self.mailbox.send_control(core, GeneratorMessage::Collect(blank, self.reply.clone()));
        }
        let give_up_at = WallClock::now() + COLLECT_TIMEOUT;
        while self.collector.is_waiting() {
            let patience = give_up_at.saturating_duration_since(WallClock::now());
            let Ok(stats) = self.replies.recv_timeout(patience) else { break };
            on_core(&stats);
            self.collector.add_stats(stats);
        }
        let mut interval = self.collector.interval();
        interval.paused = self.is_paused.load(Relaxed) && !interval.is_leaving();
        interval.process = process::own_use();
        interval.process.rss_bytes_at_start = self.rss_bytes_at_start;
        interval.cpu_us_per_core = self.cores.cpu_us();
        interval
    }

    /// Returns what the cores have said to those of other machines since the last call.
    pub fn take_peer_messages(&self) -> Vec<PeerMessage> {
        self.peer_messages.try_iter().collect()
    }

    /// Passes what cores of this machine hear of others. Orders for other machines are left out.
    pub fn hear(&self, order: PeerOrder) {
        if let Some(core) = self.share.and_then(|share| share.core_at(order.slot())) {
            self.mailbox.send_control(core, GeneratorMessage::Peer(order));
        }
    }

    /// Returns what happened since the last call, as of the last [`Self::snapshot`]: exhausted
    /// resources, first errors, and what the target has shown over TLS.
    pub fn events(&mut self) -> Vec<RunEventKind> {
        let cores = self.collector.latest().enumerate();
        let shortages = cores
            .flat_map(|(core, stats)| self.shortages.new_events(core, &stats.connect_failures));
        let mut events: Vec<_> = shortages.collect();
        events.extend(self.collector.first_errors());
        events.extend(self.target_tls.event());
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

/// Returns the limits of a core. A user does not send while the server has not accepted what it
/// sent before, so one connection has at most one message pending, and the bytes appended to the
/// same send before it.
fn core_limits(program: &Program) -> CoreLimits {
    let limits = CoreLimits::default();
    let needed = program.message_bytes_max() + SEND_BYTES_MAX;
    CoreLimits {
        pending_bytes_max: limits.pending_bytes_max.max(needed),
        // The time-out of a step ends its handshake.
        handshake_timeout: Duration::from_secs(86_400),
        handshakes_max: HANDSHAKES_MAX,
        ..limits
    }
}

/// Handshakes of a core at once. A user that waits for its turn looks like a slow server, so the
/// limit only bounds the memory: a handshake has about 5 KB.
const HANDSHAKES_MAX: usize = 65_536;

/// Time between the start of the cores and the first user.
const START_DELAY: Duration = Duration::from_millis(50);
const START_DELAY_PER_CORE: Duration = Duration::from_millis(2);
const COLLECT_TIMEOUT: Duration = Duration::from_millis(500);
