//! The generator as an app of the engine: one core's users, when they begin, what they do, and what
//! is counted of it.
//!
//! A user is an entry of the core's table: a place in the program, a few small counters, a deadline and a
//! seed. Its connection comes and goes; the user stays.

mod accounts;
mod answers;
mod channels;
mod connection;
mod incidents;
mod leaving;
mod marker;
mod pens;
mod phoenix;
mod prober;
mod probing;
mod receipts;
mod samples;
mod session;
mod slate;
mod starts;
mod steps;
mod timing;
mod unasked;
mod user;
mod websocket;

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use throng_base::Instant;
use throng_driver::{CoreId, Driver, SocketOptions};
use throng_engine::{After, App, CloseReason, Conn, Desk};
use throng_proto::websocket::{Deflater, Limits, Scratch};

pub use incidents::Incidents;
pub(crate) use incidents::{gap_of_all, outage_of_all};
pub use prober::ProbeTally;
pub use probing::ProbeMail;
pub use samples::Sample;
pub use session::{UserEvent, UserSession, WebSocket};
pub(crate) use slate::close_name;
pub use slate::{ConnectFailure, ErrorKind, Slate};
pub(crate) use steps::SEND_BYTES_MAX;

use crate::program::{Program, Protocol};
use crate::scenario::{Model, Phase};
use crate::source::SourcePlan;
use leaving::Leaving;
use pens::Pens;
use prober::Prober;
use probing::Lead;
use samples::{Samples, shown};
use starts::{Action, Starts};
use timing::Timing;
use user::Doing;
pub use user::User;

/// What all cores of a generator know.
#[derive(Debug)]
pub struct Config {
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
pub enum Mail {
    /// Hand over what was measured, and measure on in this slate.
    Collect(Box<Slate>, Sender<Box<Slate>>),
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
    Probe(ProbeMail),
}

/// One core of the generator.
pub struct Generator {
    config: Arc<Config>,
    model: Model,
    starts: Starts,
    leaving: Leaving,
    stage: Stage,
    sources: crate::source::Sources,
    /// Whether a class has an `expect` at all; what arrives for another is nobody's.
    expects: Vec<bool>,
    /// Whether a class's users end their connections by a reset: those that the end of a run finds do too.
    resets: Vec<bool>,
    /// Whether all of a class's `expect` pass over messages that they do not wait for.
    skips_others: Vec<bool>,
    /// Cores of this generator.
    cores: usize,
    pens: Pens,
    deflater: Deflater,
    prober: Option<Prober>,
    /// On the core that leads the probes.
    lead: Option<Lead>,
    /// The user that pushed the last probe, and the ref of that push.
    probe_asked: Option<(u64, u32)>,
    /// The schedule is over; what was sent to everybody is still being delivered.
    concluding: bool,
    /// When the schedule of the open model was over; [`Instant::FAR`] before.
    schedule_over_at: Instant,
    samples: Samples,
    slate: Box<Slate>,
}

/// How far the run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
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
    pub fn new(config: Arc<Config>, core: CoreId, cores: usize) -> Self {
        let slate = Box::new(Slate::new(core, config.program.classes().len()));
        let classes = 0..config.program.classes().len();
        let prober = Prober::new(&config);
        Self {
            model: Model::of(&config.phases),
            starts: Starts::new(&config, core, cores),
            leaving: Leaving::default(),
            stage: Stage::Running,
            sources: config.sources.of_core(core, cores),
            expects: classes.clone().map(|class| config.program.expects(class)).collect(),
            resets: classes.clone().map(|class| config.program.resets(class)).collect(),
            skips_others: classes.map(|class| config.program.skips_others(class)).collect(),
            cores,
            pens: Pens::default(),
            deflater: Deflater::new(),
            lead: (core == 0 && prober.is_some()).then(Lead::new),
            prober,
            probe_asked: None,
            concluding: false,
            schedule_over_at: Instant::FAR,
            samples: Samples::default(),
            slate,
            config,
        }
    }

    /// What was counted so far.
    pub fn slate(&self) -> &Slate {
        &self.slate
    }

    /// Whether the schedule is over and everybody has left.
    pub fn is_finished(&self) -> bool {
        self.slate.finished
    }

    fn start_user<D: Driver<Mail = Mail>>(
        &mut self,
        desk: &mut Desk<D, Self>,
        id: u64,
        due: Instant,
    ) {
        let class = self.config.program.class_of(id);
        self.slate.counters.users_started += 1;
        self.slate.lag.record_us(desk.now().micros_since(due));
        let user = User::new(id, class as u16, self.config.seed, due);
        let key = desk.insert(UserSession::Raw, user);
        self.starts.started(id, key.index());
        desk.nudge(key);
    }

    /// Takes the user at place `index` out, if the user who lives there is meant.
    fn stop_user<D: Driver<Mail = Mail>>(
        &mut self,
        desk: &mut Desk<D, Self>,
        index: u32,
        id: Option<u64>,
    ) {
        let Some(key) = desk.key_at(index) else { return };
        if id.is_some_and(|id| desk.state(key).is_none_or(|user| user.id != id)) {
            return;
        }
        desk.with(key, |conn| {
            let now = conn.now();
            let user = conn.state();
            if user.doing == Doing::Stopping {
                // The end of its connection is still to come.
                return;
            }
            self.close_account(user, now);
            if std::mem::replace(&mut user.doing, Doing::Stopping) == Doing::Resting {
                self.slate.resting -= 1;
            }
            if conn.is_detached() {
                conn.leave();
            } else if self.resets[usize::from(conn.state().class)] {
                conn.reset();
            } else {
                self.hang_up(conn);
            }
        });
    }

    /// The schedule is over, or somebody ends the run.
    fn end<D: Driver<Mail = Mail>>(&mut self, desk: &mut Desk<D, Self>, at_once: bool) {
        let now = desk.now();
        self.starts.end(now);
        if let Some(lead) = &mut self.lead {
            lead.end();
        }
        if at_once || self.model == Model::Closed {
            // Once they are closed, a run that is ended again has nothing to close.
            self.close_accounts(desk);
            self.stage = Stage::Leaving;
            self.close_probes();
            let everybody = desk.keys().iter().map(|key| key.index()).collect();
            self.leaving.begin(everybody, now, RAMP_DOWN);
            return;
        }
        self.stage = Stage::Finishing(now + FINISH_TIMEOUT);
        self.schedule_over_at = now;
        let mut stayers = desk.keys();
        stayers.retain(|key| {
            desk.state(*key)
                .is_some_and(|user| user.doing == Doing::Staying || self.is_idle(user, now))
        });
        let stayers = stayers.iter().map(|key| key.index()).collect();
        self.leaving.begin(stayers, now, RAMP_DOWN);
    }

    /// The schedule is over. Nothing new is sent to everybody, and nobody leaves before what was sent has come, or is
    /// missing.
    fn conclude<D: Driver<Mail = Mail>>(&mut self, desk: &mut Desk<D, Self>) {
        self.concluding = true;
        if let Some(lead) = &mut self.lead {
            lead.end();
        }
        if self.probes_are_idle() {
            self.end(desk, false);
        }
    }

    /// Completes the gauges and hands the slate over for a fresh one.
    fn hand_over<D: Driver<Mail = Mail>>(
        &mut self,
        desk: &mut Desk<D, Self>,
        blank: Box<Slate>,
    ) -> Box<Slate> {
        let slate = &mut self.slate;
        slate.handed_over_at = desk.driver().now();
        slate.counters.users_intended = self.starts.intended_by(desk.now());
        slate.counters.users_active = desk.len() as u64 - slate.resting;
        slate.phase = match self.stage {
            Stage::Leaving => self.config.phases.len(),
            Stage::Running | Stage::Finishing(_) => self.starts.phase(desk.now()),
        };
        slate.core = desk.counters();
        let fresh = blank.carry_on(slate);
        std::mem::replace(&mut self.slate, fresh)
    }
}

impl<D: Driver<Mail = Mail>> App<D> for Generator {
    type Session = UserSession;
    type State = User;

    const READS_WHILE_BLOCKED: bool = true;

    fn scratch(&self) -> Scratch {
        let limits = Limits {
            message_bytes_max: MESSAGE_BYTES_MAX,
            frame_bytes_max: MESSAGE_BYTES_MAX,
            ..Limits::default()
        };
        Scratch::new(limits, self.config.seed ^ self.slate.core_id as u64)
    }

    fn mail(&mut self, desk: &mut Desk<D, Self>, mail: Mail) {
        match mail {
            Mail::Collect(blank, reply) => {
                let slate = self.hand_over(desk, blank);
                // The control thread may have ended; then nobody wants it.
                let _ = reply.send(slate);
            }
            Mail::AddUsers(count) => {
                if self.stage == Stage::Running {
                    self.starts.add(count, desk.now());
                }
            }
            Mail::StopUsers(count) => {
                let mut keys = desk.keys();
                // Those who are on their way out already are not asked twice.
                keys.retain(|key| {
                    desk.state(*key).is_some_and(|user| user.doing != Doing::Stopping)
                });
                let mut places: Vec<u32> = keys.iter().map(|key| key.index()).collect();
                let kept = places.len().saturating_sub(count as usize);
                for index in places.drain(kept..) {
                    self.stop_user(desk, index, None);
                }
            }
            Mail::Pause => self.starts.pause(desk.now()),
            Mail::Resume => self.starts.resume(desk.now()),
            Mail::RampDown => self.end(desk, true),
            Mail::Stop => desk.stop(),
            Mail::Probe(mail) => self.probe_mail(desk, mail),
        }
    }

    fn due(&self) -> Instant {
        let stage = match self.stage {
            Stage::Running if self.concluding && self.probes_are_idle() => Instant::ZERO,
            Stage::Running if self.concluding => Instant::FAR,
            Stage::Running => self.starts.due(),
            Stage::Finishing(until) => until,
            Stage::Leaving => Instant::FAR,
        };
        stage.min(self.leaving.due()).min(self.probes_due())
    }

    fn run_due(&mut self, desk: &mut Desk<D, Self>) {
        let now = desk.now();
        for _ in 0..STARTS_MAX {
            match self.starts.pop(now) {
                Some(Action::Start { id, due }) => self.start_user(desk, id, due),
                Some(Action::Stop { id, index }) => self.stop_user(desk, index, Some(id)),
                None => break,
            }
        }
        self.run_probes(desk);
        match self.stage {
            Stage::Running if self.concluding || self.starts.is_over(now) => self.conclude(desk),
            Stage::Finishing(until) if until <= now => self.end(desk, true),
            _ => {}
        }
        for index in self.leaving.take(now) {
            self.stop_user(desk, index, None);
        }
    }

    fn turn_ended(&mut self, desk: &mut Desk<D, Self>) {
        self.slate.finished = self.stage != Stage::Running && desk.is_empty();
    }

    fn nudged(&mut self, conn: &mut Conn<'_, D, Self>) {
        if self.stage == Stage::Leaving {
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
            let timing = Timing { seen_at: conn.now(), arrival };
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
        if conn.state().doing == Doing::Yielding {
            // It only let others have their turn; the answer that it is about to expect may be here.
            self.advance(conn);
            if matches!(conn.state().doing, Doing::Closing | Doing::Failing) {
                return;
            }
        }
        conn.close_because(CloseReason::Finished);
    }

    fn drained(&mut self, conn: &mut Conn<'_, D, Self>) {
        if conn.state().doing == Doing::Blocked {
            self.advance(conn);
        }
    }

    fn deadline(&mut self, conn: &mut Conn<'_, D, Self>) {
        if self.stage == Stage::Leaving {
            return;
        }
        let now = conn.now();
        let user = conn.state();
        match user.doing {
            Doing::Connecting | Doing::Upgrading => {
                self.connect_failed(user, now, slate::ConnectFailure::Timeout);
                conn.reset();
            }
            Doing::Expecting => self.expect_timed_out(conn),
            Doing::Asking => self.ask_timed_out(conn),
            Doing::Waiting => {
                self.slate.lag.record_us(now.micros_since(user.intended));
                self.wait_over(conn);
            }
            Doing::Resting => {
                self.slate.lag.record_us(now.micros_since(user.intended));
                self.slate.resting -= 1;
                self.begin(conn);
            }
            Doing::Yielding => self.advance(conn),
            Doing::Blocked
            | Doing::Staying
            | Doing::GivingUp
            | Doing::Closing
            | Doing::Failing
            | Doing::Stopping => {}
        }
    }

    fn closed(&mut self, conn: &mut Conn<'_, D, Self>, reason: CloseReason) -> After {
        self.connection_ended(conn, reason)
    }
}

/// Whether both ends of a connection are the same socket.
fn is_its_own_peer<D: Driver<Mail = Mail>>(conn: &Conn<'_, D, Generator>) -> bool {
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
