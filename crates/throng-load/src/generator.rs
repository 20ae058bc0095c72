//! The generator as an app of the engine: one core's users, when they begin, what they do, and what
//! is counted of it.
//!
//! A user is an entry of the core's table: a place in the program, a few small counters, a deadline and a
//! seed. Its connection comes and goes; the user stays.

mod accounts;
mod answers;
mod channels;
mod connection;
mod core_stats;
mod departures;
mod encode_buffers;
mod error_samples;
mod inbox;
mod incidents;
mod marker;
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

pub(crate) use core_stats::close_name;
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
use error_samples::{ErrorSamples, shown};
use probe_coordinator::ProbeCoordinator;
use probe_ledger::ProbeLedger;
use starts::{Action, Starts};
use timing::AnswerTiming;
pub use user::User;
use user::UserState;

/// What all cores of a generator know.
#[derive(Debug)]
pub struct GeneratorConfig {
    /// What users do.
    pub program: Program,
    /// When they begin.
    pub phases: Vec<Phase>,
    /// Whom they connect to: user `k` to target `k mod n`.
    pub targets: Vec<std::net::SocketAddr>,
    /// From where.
    pub sources: SourcePlan,
    /// Whether a socket may be connected to itself: a target's own address and port may be a
    /// connection's source.
    pub may_meet_itself: bool,
    /// Options of their sockets.
    pub options: SocketOptions,
    /// Decides everything random.
    pub seed: u64,
    /// When the first phase begins, the same for all cores.
    pub start_at: Instant,
}

/// What the control thread tells a core, and what cores tell one another.
#[derive(Debug)]
pub enum GeneratorMessage {
    /// Hand over what was measured, and measure on in this stats.
    Collect(Box<CoreStats>, Sender<Box<CoreStats>>),
    /// So many more users, one a millisecond over all cores.
    AddUsers(u64),
    /// So many users leave, the newest first as far as that is known.
    StopUsers(u64),
    /// Nobody new begins until [`Self::Resume`]; the schedule waits.
    Pause,
    /// The schedule goes on where it was.
    Resume,
    /// Nobody new begins, and everybody leaves within [`RAMP_DOWN`].
    RampDown,
    /// The core ends at once.
    Stop,
    /// Something about probes, from another core.
    Probe(ProbeMessage),
}

/// One core of the generator.
pub struct Generator {
    config: Arc<GeneratorConfig>,
    model: Model,
    starts: Starts,
    leaving: Departures,
    stage: RunPhase,
    sources: crate::source::SourceAddresses,
    /// Whether a class has an `expect` at all; what arrives for another is nobody's.
    expects: Vec<bool>,
    /// Whether a class's users end their connections by a reset: those that the end of a run finds do too.
    resets: Vec<bool>,
    /// Whether all of a class's `expect` pass over messages that they do not wait for.
    skips_others: Vec<bool>,
    /// Cores of this generator.
    cores: usize,
    buffers: EncodeBuffers,
    deflater: Deflater,
    probes: Option<ProbeLedger>,
    /// On the core that leads the probes.
    lead: Option<ProbeCoordinator>,
    /// The user that pushed the last probe, and the ref of that push.
    probe_asked: Option<(u64, u32)>,
    /// The schedule is over; what was sent to everybody is still being delivered.
    concluding: bool,
    /// When the schedule of the open model was over; [`Instant::FAR`] before.
    schedule_over_at: Instant,
    samples: ErrorSamples,
    stats: Box<CoreStats>,
}

/// How far the run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunPhase {
    /// The schedule goes on.
    Running,
    /// The schedule is over: who stays leaves, who is busy may finish until then.
    Finishing(Instant),
    /// Everybody leaves. The measurement is over: nobody begins anything, and what the crowd at the exit
    /// does to latencies is not recorded.
    Leaving,
}

impl Generator {
    /// The core `core` of `cores` of the generator that `config` describes.
    pub fn new(config: Arc<GeneratorConfig>, core: CoreId, cores: usize) -> Self {
        let stats = Box::new(CoreStats::new(core, config.program.classes().len()));
        let classes = 0..config.program.classes().len();
        let probes = ProbeLedger::new(&config);
        Self {
            model: Model::of(&config.phases),
            starts: Starts::new(&config, core, cores),
            leaving: Departures::default(),
            stage: RunPhase::Running,
            sources: config.sources.of_core(core, cores),
            expects: classes.clone().map(|class| config.program.expects(class)).collect(),
            resets: classes.clone().map(|class| config.program.resets(class)).collect(),
            skips_others: classes.map(|class| config.program.skips_others(class)).collect(),
            cores,
            buffers: EncodeBuffers::default(),
            deflater: Deflater::new(),
            lead: (core == 0 && probes.is_some()).then(ProbeCoordinator::new),
            probes,
            probe_asked: None,
            concluding: false,
            schedule_over_at: Instant::FAR,
            samples: ErrorSamples::default(),
            stats,
            config,
        }
    }

    /// What was counted so far.
    pub fn stats(&self) -> &CoreStats {
        &self.stats
    }

    /// Whether the schedule is over and everybody has left.
    pub fn is_finished(&self) -> bool {
        self.stats.finished
    }

    fn start_user<D: Driver<Mail = GeneratorMessage>>(
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

    /// Takes the user at place `index` out, if the user who lives there is meant.
    fn stop_user<D: Driver<Mail = GeneratorMessage>>(
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
            if user.doing == UserState::Stopping {
                // The end of its connection is still to come.
                return;
            }
            self.close_account(user, now);
            if std::mem::replace(&mut user.doing, UserState::Stopping) == UserState::Resting {
                self.stats.resting -= 1;
            }
            if conn.is_detached() {
                conn.remove();
            } else if self.resets[usize::from(conn.state().class)] {
                conn.reset();
            } else {
                self.hang_up(conn);
            }
        });
    }

    /// The schedule is over, or somebody ends the run.
    fn end<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        at_once: bool,
    ) {
        let now = cx.now();
        self.starts.end(now);
        if let Some(lead) = &mut self.lead {
            lead.end();
        }
        if at_once || self.model == Model::Closed {
            // Once they are closed, a run that is ended again has nothing to close.
            self.close_accounts(cx);
            self.stage = RunPhase::Leaving;
            self.close_probes();
            let everybody = cx.keys().iter().map(|key| key.index()).collect();
            self.leaving.begin(everybody, now, RAMP_DOWN);
            return;
        }
        self.stage = RunPhase::Finishing(now + FINISH_TIMEOUT);
        self.schedule_over_at = now;
        let mut stayers = cx.keys();
        stayers.retain(|key| {
            cx.state(*key)
                .is_some_and(|user| user.doing == UserState::Staying || self.is_idle(user, now))
        });
        let stayers = stayers.iter().map(|key| key.index()).collect();
        self.leaving.begin(stayers, now, RAMP_DOWN);
    }

    /// The schedule is over. Nothing new is sent to everybody, and nobody leaves before what was sent has come, or is
    /// missing.
    fn conclude<D: Driver<Mail = GeneratorMessage>>(&mut self, cx: &mut CoreContext<D, Self>) {
        self.concluding = true;
        if let Some(lead) = &mut self.lead {
            lead.end();
        }
        if self.probes_are_idle() {
            self.end(cx, false);
        }
    }

    /// Completes the gauges and hands the stats over for a fresh one.
    fn hand_over<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        blank: Box<CoreStats>,
    ) -> Box<CoreStats> {
        let stats = &mut self.stats;
        stats.handed_over_at = cx.driver().now();
        stats.counters.users_intended = self.starts.intended_by(cx.now());
        stats.counters.users_active = cx.len() as u64 - stats.resting;
        stats.phase = match self.stage {
            RunPhase::Leaving => self.config.phases.len(),
            RunPhase::Running | RunPhase::Finishing(_) => self.starts.phase(cx.now()),
        };
        stats.core = cx.counters();
        let fresh = blank.carry_on(stats);
        std::mem::replace(&mut self.stats, fresh)
    }
}

impl<D: Driver<Mail = GeneratorMessage>> App<D> for Generator {
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
                let stats = self.hand_over(cx, blank);
                // The control thread may have ended; then nobody wants it.
                let _ = reply.send(stats);
            }
            GeneratorMessage::AddUsers(count) => {
                if self.stage == RunPhase::Running {
                    self.starts.add(count, cx.now());
                }
            }
            GeneratorMessage::StopUsers(count) => {
                let mut keys = cx.keys();
                // Those who are on their way out already are not asked twice.
                keys.retain(|key| {
                    cx.state(*key).is_some_and(|user| user.doing != UserState::Stopping)
                });
                let mut places: Vec<u32> = keys.iter().map(|key| key.index()).collect();
                let kept = places.len().saturating_sub(count as usize);
                for index in places.drain(kept..) {
                    self.stop_user(cx, index, None);
                }
            }
            GeneratorMessage::Pause => self.starts.pause(cx.now()),
            GeneratorMessage::Resume => self.starts.resume(cx.now()),
            GeneratorMessage::RampDown => self.end(cx, true),
            GeneratorMessage::Stop => cx.stop(),
            GeneratorMessage::Probe(mail) => self.probe_mail(cx, mail),
        }
    }

    fn due(&self) -> Instant {
        let stage = match self.stage {
            RunPhase::Running if self.concluding && self.probes_are_idle() => Instant::ZERO,
            RunPhase::Running if self.concluding => Instant::FAR,
            RunPhase::Running => self.starts.due(),
            RunPhase::Finishing(until) => until,
            RunPhase::Leaving => Instant::FAR,
        };
        stage.min(self.leaving.due()).min(self.probes_due())
    }

    fn run_due(&mut self, cx: &mut CoreContext<D, Self>) {
        let now = cx.now();
        for _ in 0..STARTS_MAX {
            match self.starts.pop(now) {
                Some(Action::Start { id, due }) => self.start_user(cx, id, due),
                Some(Action::Stop { id, index }) => self.stop_user(cx, index, Some(id)),
                None => break,
            }
        }
        self.run_probes(cx);
        match self.stage {
            RunPhase::Running if self.concluding || self.starts.is_over(now) => self.conclude(cx),
            RunPhase::Finishing(until) if until <= now => self.end(cx, true),
            _ => {}
        }
        for index in self.leaving.take(now) {
            self.stop_user(cx, index, None);
        }
    }

    fn turn_ended(&mut self, cx: &mut CoreContext<D, Self>) {
        self.stats.finished = self.stage != RunPhase::Running && cx.is_empty();
    }

    fn notified(&mut self, conn: &mut Conn<'_, D, Self>) {
        if self.stage == RunPhase::Leaving {
            return self.begin_too_late(conn);
        }
        self.begin(conn);
    }

    fn opened(&mut self, conn: &mut Conn<'_, D, Self>) {
        conn.state().port_tries = 0;
        if conn.state().is_settled() {
            return;
        }
        if self.config.may_meet_itself && is_its_own_peer(conn) {
            self.met_itself(conn);
        } else if self.config.program.protocol() == Protocol::Tcp {
            let dialed_at = conn.state().message_from;
            let arrival = conn.handshake_arrival(dialed_at);
            let timing = AnswerTiming { seen_at: conn.now(), arrival };
            self.established(conn, timing);
        } else {
            self.ask_for_upgrade(conn);
        }
    }

    fn event(&mut self, conn: &mut Conn<'_, D, Self>, event: UserEvent<'_>) {
        match event {
            UserEvent::Bytes(bytes) => self.received(conn, bytes),
            UserEvent::WebSocket(event) => self.websocket_event(conn, event),
            UserEvent::UpgradeBroken(violation, head) => {
                self.upgrade_broken(conn, violation, &head);
            }
            UserEvent::HeartbeatDue => self.heartbeat_due(conn),
        }
    }

    fn finished(&mut self, conn: &mut Conn<'_, D, Self>) {
        if conn.state().doing == UserState::Yielding {
            // It only let others have their turn; the answer that it is about to expect may be here.
            self.advance(conn);
            if matches!(conn.state().doing, UserState::Closing | UserState::Failing) {
                return;
            }
        }
        conn.close_because(CloseReason::Finished);
    }

    fn drained(&mut self, conn: &mut Conn<'_, D, Self>) {
        if conn.state().doing == UserState::Blocked {
            self.advance(conn);
        }
    }

    fn deadline(&mut self, conn: &mut Conn<'_, D, Self>) {
        if self.stage == RunPhase::Leaving {
            return;
        }
        let now = conn.now();
        let user = conn.state();
        match user.doing {
            UserState::Connecting | UserState::Upgrading => {
                self.connect_failed(user, now, core_stats::ConnectFailure::Timeout);
                conn.reset();
            }
            UserState::Expecting => self.expect_timed_out(conn),
            UserState::Asking => self.ask_timed_out(conn),
            UserState::Waiting => {
                self.stats.lag.record_us(now.micros_since(user.intended));
                self.wait_over(conn);
            }
            UserState::Resting => {
                self.stats.lag.record_us(now.micros_since(user.intended));
                self.stats.resting -= 1;
                self.begin(conn);
            }
            UserState::Yielding => self.advance(conn),
            UserState::Blocked
            | UserState::Staying
            | UserState::GivingUp
            | UserState::Closing
            | UserState::Failing
            | UserState::Stopping => {}
        }
    }

    fn closed(&mut self, conn: &mut Conn<'_, D, Self>, reason: CloseReason) -> AfterClose {
        self.connection_ended(conn, reason)
    }
}

/// Whether both ends of a connection are the same socket.
fn is_its_own_peer<D: Driver<Mail = GeneratorMessage>>(conn: &Conn<'_, D, Generator>) -> bool {
    conn.local_addr().is_some_and(|local| conn.peer_addr() == Some(local))
}

/// The longest message of a WebSocket that a user takes: a server's is judged elsewhere than here.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Users that a core begins in a turn: what came in meanwhile is not to wait longer than these take.
const STARTS_MAX: usize = 32;
/// How long a user rests after an error before it begins again, and by what share that varies.
pub const RESTART_PAUSE: Duration = Duration::from_secs(1);
const RESTART_JITTER: f32 = 0.1;
/// How long everybody may take to leave at the end.
pub const RAMP_DOWN: Duration = Duration::from_secs(1);
/// Open model: how long after the last phase users may take to finish.
pub const FINISH_TIMEOUT: Duration = Duration::from_secs(10);
