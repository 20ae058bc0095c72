//! The generator as an app of the engine: the users of one core, their schedule, their steps and
//! their counters.
//!
//! A user is an entry of the core's table: a position in the program, a few small counters, a
//! deadline and a seed. Its connections come and go; the user stays.

mod answers;
mod channels;
mod connection;
mod core_stats;
mod departures;
mod encode_buffers;
mod error_samples;
mod failures;
mod inbox;
mod incidents;
mod marker;
mod outcomes;
mod phoenix;
mod probe_coordinator;
mod probe_ledger;
mod receipts;
mod session;
mod starts;
mod steps;
mod timing;
mod user;
mod websocket;

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use throng_base::Instant;
use throng_driver::{CoreId, Driver, SocketOptions};
use throng_engine::{AfterClose, App, CloseReason, Conn, CoreContext};
use throng_proto::websocket::{Deflater, Scratch, WebSocketLimits};

pub(crate) use core_stats::close_code_name;
pub use core_stats::{ConnectFailure, CoreStats, ErrorKind};
pub use error_samples::ErrorSample;
pub use incidents::Incidents;
pub(crate) use incidents::{gap_of_all, outage_of_all};
pub use probe_coordinator::ProbeMessage;
pub use probe_ledger::ProbeTally;
pub use session::{UserEvent, UserSession, WebSocket};
pub(crate) use steps::SEND_BYTES_MAX;

use crate::program::{Program, Protocol};
use crate::scenario::{Model, Phase};
use crate::source::SourcePlan;
use departures::Departures;
use encode_buffers::EncodeBuffers;
use error_samples::{ErrorSamples, printable};
use probe_coordinator::ProbeCoordinator;
use probe_ledger::ProbeLedger;
use starts::{DueAction, Starts};
use timing::AnswerTiming;
pub use user::User;
use user::UserState;

/// Configuration that all cores of a generator share.
#[derive(Debug)]
pub struct GeneratorConfig {
    /// Steps of the users.
    pub program: Program,
    /// Phases of the load.
    pub phases: Vec<Phase>,
    /// Addresses to connect to: user `k` connects to target `k mod n`.
    pub targets: Vec<std::net::SocketAddr>,
    /// Source addresses and ports of the connections.
    pub sources: SourcePlan,
    /// True if the kernel can connect a socket to itself, because a target's own address and port
    /// are among the sources.
    pub self_connect_possible: bool,
    /// Options of the users' sockets.
    pub options: SocketOptions,
    /// Seed of everything random.
    pub seed: u64,
    /// Beginning of the first phase, the same on all cores.
    pub start_at: Instant,
}

/// Messages from the control thread to a core, and between cores.
#[derive(Debug)]
pub enum GeneratorMessage {
    /// Requests the core's stats. The core continues in the enclosed, empty stats.
    Collect(Box<CoreStats>, Sender<Box<CoreStats>>),
    /// Starts this many more users, one per millisecond over all cores.
    AddUsers(u64),
    /// Stops this many users, the newest first as far as the core knows their order.
    StopUsers(u64),
    /// Pauses the schedule: no user starts until [`Self::Resume`].
    Pause,
    /// Resumes the schedule where it stopped.
    Resume,
    /// Starts no more users and stops all users within [`RAMP_DOWN`].
    RampDown,
    /// Ends the core at once.
    Stop,
    /// A message about probes from another core.
    Probe(ProbeMessage),
}

/// The part of the generator that runs on one core.
pub struct Generator {
    config: Arc<GeneratorConfig>,
    model: Model,
    starts: Starts,
    departures: Departures,
    run_phase: RunPhase,
    sources: crate::source::SourceAddresses,
    /// By class: true if it has an `expect` step. Other classes count everything that arrives as
    /// unasked.
    expects: Vec<bool>,
    /// By class: true if its users close by RST. Users that are still connected at the end of the
    /// run do so too.
    resets: Vec<bool>,
    /// By class: true if all its `expect` steps skip messages that do not match.
    skips_others: Vec<bool>,
    /// Number of cores of this generator.
    cores: usize,
    buffers: EncodeBuffers,
    deflater: Deflater,
    probes: Option<ProbeLedger>,
    /// Coordinator of the probes, on one core only.
    coordinator: Option<ProbeCoordinator>,
    /// User that pushed the last probe, and the ref of that push.
    probe_push: Option<(u64, u32)>,
    /// True when the schedule is over and the last probes are still being delivered.
    awaits_probes: bool,
    /// End of the schedule in the open model; [`Instant::FAR`] before.
    schedule_over_at: Instant,
    samples: ErrorSamples,
    stats: Box<CoreStats>,
}

/// Phase of the run, as opposed to a phase of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunPhase {
    /// The schedule is running.
    Running,
    /// The schedule is over. Users in `stay` leave; busy users may finish until this moment.
    Finishing(Instant),
    /// All users leave. The measurement is over: no user begins a step, and latencies that the mass
    /// of closes distorts are not recorded.
    Leaving,
}

impl Generator {
    /// Creates the generator of core `core` of `cores`.
    pub fn new(config: Arc<GeneratorConfig>, core: CoreId, cores: usize) -> Self {
        let stats = Box::new(CoreStats::new(core, config.program.classes().len()));
        let classes = 0..config.program.classes().len();
        let probes = ProbeLedger::new(&config);
        Self {
            model: Model::of(&config.phases),
            starts: Starts::new(&config, core, cores),
            departures: Departures::default(),
            run_phase: RunPhase::Running,
            sources: config.sources.of_core(core, cores),
            expects: classes.clone().map(|class| config.program.expects(class)).collect(),
            resets: classes.clone().map(|class| config.program.resets(class)).collect(),
            skips_others: classes.map(|class| config.program.skips_others(class)).collect(),
            cores,
            buffers: EncodeBuffers::default(),
            deflater: Deflater::new(),
            coordinator: (core == 0 && probes.is_some()).then(ProbeCoordinator::new),
            probes,
            probe_push: None,
            awaits_probes: false,
            schedule_over_at: Instant::FAR,
            samples: ErrorSamples::default(),
            stats,
            config,
        }
    }

    /// Returns the stats of the current interval.
    pub fn stats(&self) -> &CoreStats {
        &self.stats
    }

    /// Reports whether the schedule is over and all users have left.
    pub fn is_finished(&self) -> bool {
        self.stats.finished
    }

    fn start_user<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        id: u64,
        due: Instant,
    ) {
        let class = self.config.program.class_of(id);
        self.stats.counters.users_started += 1;
        self.stats.lag.record_us(cx.now().micros_since(due));
        let user = User::new(id, class as u16, self.config.seed, due);
        let key = cx.insert(UserSession::Raw, user);
        self.starts.started(id, key.index());
        cx.notify(key);
    }

    /// Stops the user at `index` of the core's table. With `id`, only if this user still has that
    /// index.
    fn stop_user<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        index: u32,
        id: Option<u64>,
    ) {
        let Some(key) = cx.key_at(index) else { return };
        if id.is_some_and(|id| cx.state(key).is_none_or(|user| user.id != id)) {
            return;
        }
        cx.with(key, |conn| {
            let now = conn.now();
            let user = conn.state();
            if user.state == UserState::Stopping {
                // It is stopping; its connection is still open.
                return;
            }
            self.count_stopped_user(user, now);
            if std::mem::replace(&mut user.state, UserState::Stopping) == UserState::Resting {
                self.stats.resting -= 1;
            }
            if conn.is_detached() {
                conn.remove();
            } else if self.resets[usize::from(conn.state().class)] {
                conn.reset();
            } else {
                self.close_connection(conn);
            }
        });
    }

    /// Begins the end of the run. In the open model, unless `at_once`, users in `stay` leave and
    /// busy users may finish. Otherwise all users leave.
    fn end_run<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        at_once: bool,
    ) {
        let now = cx.now();
        self.starts.end(now);
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.end();
        }
        if at_once || self.model == Model::Closed {
            // After this, a second call has no user left to count.
            self.count_stopped_users(cx);
            self.run_phase = RunPhase::Leaving;
            self.close_probes();
            let indexes = cx.keys().iter().map(|key| key.index()).collect();
            self.departures.start(indexes, now, RAMP_DOWN);
            return;
        }
        self.run_phase = RunPhase::Finishing(now + FINISH_TIMEOUT);
        self.schedule_over_at = now;
        let mut stayers = cx.keys();
        stayers.retain(|key| {
            cx.state(*key)
                .is_some_and(|user| user.state == UserState::Staying || self.is_idle(user, now))
        });
        let stayers = stayers.iter().map(|key| key.index()).collect();
        self.departures.start(stayers, now, RAMP_DOWN);
    }

    /// Ends the schedule. Sends no more probes; users leave once every delivery of the last probe
    /// has arrived or is missing.
    fn end_schedule<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
    ) {
        self.awaits_probes = true;
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.end();
        }
        if self.probes_are_idle() {
            self.end_run(cx, false);
        }
    }

    /// Completes the gauges and returns the stats. `blank` becomes the new stats.
    fn take_stats<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        blank: Box<CoreStats>,
    ) -> Box<CoreStats> {
        let stats = &mut self.stats;
        stats.taken_at = cx.driver().now();
        stats.counters.users_intended = self.starts.intended_by(cx.now());
        stats.counters.users_active = cx.len() as u64 - stats.resting;
        stats.phase = match self.run_phase {
            RunPhase::Leaving => self.config.phases.len(),
            RunPhase::Running | RunPhase::Finishing(_) => self.starts.phase_at(cx.now()),
        };
        stats.core = cx.counters();
        let fresh = blank.continue_from(stats);
        std::mem::replace(&mut self.stats, fresh)
    }
}

impl<D: Driver<Message = GeneratorMessage>> App<D> for Generator {
    type Session = UserSession;
    type State = User;

    const READS_WHILE_BLOCKED: bool = true;

    fn scratch(&self) -> Scratch {
        let limits = WebSocketLimits {
            message_bytes_max: MESSAGE_BYTES_MAX,
            frame_bytes_max: MESSAGE_BYTES_MAX,
            ..WebSocketLimits::default()
        };
        Scratch::new(limits, self.config.seed ^ self.stats.core_id as u64)
    }

    fn message(&mut self, cx: &mut CoreContext<D, Self>, mail: GeneratorMessage) {
        match mail {
            GeneratorMessage::Collect(blank, reply) => {
                let stats = self.take_stats(cx, blank);
                // The control thread may have ended already.
                let _ = reply.send(stats);
            }
            GeneratorMessage::AddUsers(count) => {
                if self.run_phase == RunPhase::Running {
                    self.starts.add(count, cx.now());
                }
            }
            GeneratorMessage::StopUsers(count) => {
                let mut keys = cx.keys();
                // Users that are stopping already are not counted again.
                keys.retain(|key| {
                    cx.state(*key).is_some_and(|user| user.state != UserState::Stopping)
                });
                let mut indexes: Vec<u32> = keys.iter().map(|key| key.index()).collect();
                let kept = indexes.len().saturating_sub(count as usize);
                for index in indexes.drain(kept..) {
                    self.stop_user(cx, index, None);
                }
            }
            GeneratorMessage::Pause => self.starts.pause(cx.now()),
            GeneratorMessage::Resume => self.starts.resume(cx.now()),
            GeneratorMessage::RampDown => self.end_run(cx, true),
            GeneratorMessage::Stop => cx.stop(),
            GeneratorMessage::Probe(mail) => self.probe_message_received(cx, mail),
        }
    }

    fn due(&self) -> Instant {
        let phase_due = match self.run_phase {
            RunPhase::Running if self.awaits_probes && self.probes_are_idle() => Instant::ZERO,
            RunPhase::Running if self.awaits_probes => Instant::FAR,
            RunPhase::Running => self.starts.due(),
            RunPhase::Finishing(until) => until,
            RunPhase::Leaving => Instant::FAR,
        };
        phase_due.min(self.departures.due()).min(self.probes_due())
    }

    fn run_due(&mut self, cx: &mut CoreContext<D, Self>) {
        let now = cx.now();
        for _ in 0..STARTS_PER_TURN_MAX {
            match self.starts.pop(now) {
                Some(DueAction::Start { id, due }) => self.start_user(cx, id, due),
                Some(DueAction::Stop { id, index }) => self.stop_user(cx, index, Some(id)),
                None => break,
            }
        }
        self.run_probes(cx);
        match self.run_phase {
            RunPhase::Running if self.awaits_probes || self.starts.is_over(now) => {
                self.end_schedule(cx)
            }
            RunPhase::Finishing(until) if until <= now => self.end_run(cx, true),
            _ => {}
        }
        for index in self.departures.take_due(now) {
            self.stop_user(cx, index, None);
        }
    }

    fn turn_ended(&mut self, cx: &mut CoreContext<D, Self>) {
        self.stats.finished = self.run_phase != RunPhase::Running && cx.is_empty();
    }

    fn notified(&mut self, conn: &mut Conn<'_, D, Self>) {
        if self.run_phase == RunPhase::Leaving {
            return self.cancel_start(conn);
        }
        self.begin_program(conn);
    }

    fn opened(&mut self, conn: &mut Conn<'_, D, Self>) {
        conn.state().port_tries = 0;
        if conn.state().is_between_iterations() {
            return;
        }
        if self.config.self_connect_possible && is_self_connected(conn) {
            self.reset_self_connection(conn);
        } else if self.config.program.protocol() == Protocol::Tcp {
            let dialed_at = conn.state().message_from;
            let arrival = conn.handshake_arrival(dialed_at);
            let timing = AnswerTiming { seen_at: conn.now(), arrival };
            self.connect_succeeded(conn, timing);
        } else {
            self.send_upgrade_request(conn);
        }
    }

    fn event(&mut self, conn: &mut Conn<'_, D, Self>, event: UserEvent<'_>) {
        match event {
            UserEvent::Bytes(bytes) => self.bytes_received(conn, bytes),
            UserEvent::WebSocket(event) => self.websocket_event(conn, event),
            UserEvent::UpgradeViolated(violation, head) => {
                self.upgrade_violated(conn, violation, &head);
            }
            UserEvent::HeartbeatDue => self.heartbeat_due(conn),
        }
    }

    fn finished(&mut self, conn: &mut Conn<'_, D, Self>) {
        if conn.state().state == UserState::Yielding {
            // It only yielded to other users. The answer that it is about to expect may be here.
            self.advance(conn);
            if matches!(conn.state().state, UserState::Closing | UserState::ClosingAfterError) {
                return;
            }
        }
        conn.close_because(CloseReason::Finished);
    }

    fn drained(&mut self, conn: &mut Conn<'_, D, Self>) {
        if conn.state().state == UserState::Blocked {
            self.advance(conn);
        }
    }

    fn deadline(&mut self, conn: &mut Conn<'_, D, Self>) {
        if self.run_phase == RunPhase::Leaving {
            return;
        }
        let now = conn.now();
        let user = conn.state();
        match user.state {
            UserState::Connecting | UserState::Upgrading => {
                self.fail_connect(user, now, core_stats::ConnectFailure::Timeout);
                conn.reset();
            }
            UserState::Expecting => self.expect_timed_out(conn),
            UserState::AwaitingReply => self.request_timed_out(conn),
            UserState::Waiting => {
                self.stats.lag.record_us(now.micros_since(user.intended));
                self.end_wait(conn);
            }
            UserState::Resting => {
                self.stats.lag.record_us(now.micros_since(user.intended));
                self.stats.resting -= 1;
                self.begin_program(conn);
            }
            UserState::Yielding => self.advance(conn),
            UserState::Blocked
            | UserState::Staying
            | UserState::ClosingFailedConnect
            | UserState::Closing
            | UserState::ClosingAfterError
            | UserState::Stopping => {}
        }
    }

    fn closed(&mut self, conn: &mut Conn<'_, D, Self>, reason: CloseReason) -> AfterClose {
        self.connection_ended(conn, reason)
    }
}

/// Reports whether both ends of a connection are the same socket.
fn is_self_connected<D: Driver<Message = GeneratorMessage>>(conn: &Conn<'_, D, Generator>) -> bool {
    conn.local_addr().is_some_and(|local| conn.peer_addr() == Some(local))
}

/// Longest WebSocket message that a user accepts. The generator does not judge the server's message
/// sizes.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Users that a core starts per turn, so that input which arrives meanwhile does not wait long.
const STARTS_PER_TURN_MAX: usize = 32;
/// Pause of a user between an error and its next iteration; the jitter is a share of it.
pub const RESTART_PAUSE: Duration = Duration::from_secs(1);
const RESTART_JITTER: f32 = 0.1;
/// Time over which all users leave at the end.
pub const RAMP_DOWN: Duration = Duration::from_secs(1);
/// Open model: time after the last phase in which users may finish.
pub const FINISH_TIMEOUT: Duration = Duration::from_secs(10);
