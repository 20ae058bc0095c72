//! The generator as an app of the engine: the users of one core, their schedule, their steps and
//! their counters.
//!
//! A user is an entry of the core's table: a position in the program, a few small counters, a
//! deadline and a seed. Its connections come and go; the user stays.

mod answer_gaps;
mod config;
mod core_stats;
mod departures;
mod error_counts;
mod error_facts;
mod error_log;
mod error_name;
mod error_samples;
mod failures;
mod followed;
mod incidents;
mod marker;
mod probe_ledger;
mod probe_message;
mod probe_sending;
mod probe_tally;
mod probes;
mod recorder;
mod starts;
mod status_counts;
mod tallies;
pub(crate) mod trace_format;
mod tracer;
mod upgrade_answer;
mod users;

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use throng_base::{Instant, Key};
use throng_driver::{CoreId, Driver, MessagePriority};
use throng_engine::{AfterClose, App, CloseReason, Conn, Core, CoreContext};
use throng_proto::HeldBudget;
use throng_proto::websocket::{Scratch, WebSocketLimits};

pub use crate::user::{
    ConnectFailure, ErrorKind, IterationEnd, RESTART_PAUSE, User, UserEvent, UserSession,
};
pub use config::GeneratorConfig;
pub use core_stats::CoreStats;
pub use error_counts::ErrorCounts;
pub use error_log::ErrorLog;
pub(crate) use error_log::STATUSES_MAX;
pub use incidents::Incidents;
pub(crate) use incidents::{gap_of_all, outage_of_all};
pub use probe_message::ProbeMessage;
pub use probe_tally::ProbeTally;
pub use status_counts::{StatusCount, StatusCounts};
pub use tallies::{AddressTally, CueTally, LimitTally};
pub use tracer::{TraceLine, TraceOptions, UserFate};

use crate::cues::{CueWaiters, GroupOpening};
use crate::held::{MESSAGE_BYTES_MAX, held_bytes_max};
use crate::peers::PeerOrder;
use crate::program::{LimitScope, RateLimit};
use crate::scenario::Model;
use crate::schedule::{MachineShare, RateClock};
use crate::user::{Encoder, Input, MEMORY_BYTES, is_done};
use config::{RunPhase, RunState};
use departures::Departures;
use error_samples::ErrorSamples;
use followed::Followed;
use probes::Probes;
use starts::{DueAction, Starts};
use tracer::Tracer;
use users::ReceivingUser;

/// Messages from the control thread to a core, and between cores.
#[derive(Debug)]
pub enum GeneratorMessage {
    /// Requests the core's stats. The core continues in the enclosed, empty stats.
    Collect(Box<CoreStats>, Sender<Box<CoreStats>>),
    /// Starts this many more users, one per millisecond over all cores.
    AddUsers(u64),
    /// Stops this many users, the newest first as far as the core knows their order.
    StopUsers(u64),
    /// Stops users that other cores did not have; this many cores have not been asked yet.
    StopMoreUsers(u64, usize),
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
    /// Groups of waiting users that a user of another core has let go.
    CuesOpened(Arc<[GroupOpening]>),
    /// What this core hears of other machines.
    Peer(PeerOrder),
}

/// Driver of a generator's core.
pub trait GeneratorDriver: Driver<Message = GeneratorMessage> {}

impl<D: Driver<Message = GeneratorMessage>> GeneratorDriver for D {}

/// The part of the generator that runs on one core.
pub struct Generator {
    run: RunState,
    starts: Starts,
    departures: Departures,
    /// Number of cores of this generator.
    cores: usize,
    sources: crate::source::SourceAddresses,
    encoder: Encoder,
    cues: CueWaiters,
    /// Clocks of the scenario's limits.
    clocks: Vec<RateClock>,
    /// Budget for what the users hold of what the target sent.
    held: HeldBudget,
    probes: Option<Probes>,
    /// True when the schedule is over and the last probes are still being delivered.
    awaits_probes: bool,
    samples: ErrorSamples,
    followed: Followed,
    /// Shows the users that are watched, if there are any.
    tracer: Option<Box<Tracer>>,
    stats: Box<CoreStats>,
}

impl Generator {
    /// Creates the generator of core `core` of this machine's `cores`.
    pub fn new(config: Arc<GeneratorConfig>, core: CoreId, cores: usize) -> Self {
        let (slot, slots) = config.share.unwrap_or_else(|| MachineShare::whole(cores)).slot(core);
        let mut stats = CoreStats::new(core, config.program.classes().len());
        stats.steps.resize_with(config.program.step_names().len(), Default::default);
        let judged = config.program.judged_classes().count();
        stats.judged_classes.resize_with(judged, Default::default);
        let limits = config.program.limits();
        stats.limits.resize(limits.len(), LimitTally::default());
        stats.cues.resize(config.program.cues().len(), CueTally::default());
        let clock = |limit: &RateLimit| match limit.scope {
            LimitScope::All => RateClock::of_core(limit.per_second, slot, slots, config.start_at),
            LimitScope::User => RateClock::new(limit.per_second, config.start_at),
        };
        if config.targets.len() > 1 {
            stats.addresses = vec![AddressTally::default(); config.targets.len()];
        }
        Self {
            starts: Starts::new(&config, slot, slots),
            departures: Departures::default(),
            cores,
            sources: config.sources.of_core(core, cores),
            encoder: Encoder::new(),
            cues: match config.peers {
                None => CueWaiters::new(Arc::clone(&config.cues)),
                Some(_) => CueWaiters::of_machines(Arc::clone(&config.cues), slot),
            },
            clocks: limits.iter().map(clock).collect(),
            held: HeldBudget::new(
                held_bytes_max(&config.program, &config.load, slots)
                    .try_into()
                    .unwrap_or(usize::MAX),
            ),
            probes: match config.peers {
                None => Probes::new(&config, core, cores),
                Some(_) => Probes::new(&config, slot, slots),
            },
            awaits_probes: false,
            samples: ErrorSamples::default(),
            followed: Followed::default(),
            tracer: config
                .trace
                .as_ref()
                .map(|trace| Box::new(Tracer::new(trace, config.start_at))),
            stats: Box::new(stats),
            run: RunState::new(config),
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

    fn start_user<D: GeneratorDriver>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        id: u64,
        due: Instant,
    ) {
        const {
            // A simulated fd may be larger than one of the kernel.
            let entry = Core::<D, Self>::ENTRY_BYTES - size_of::<D::Fd>() + size_of::<i32>();
            assert!(
                entry + MEMORY_BYTES <= 256,
                "a user that waits is small beside what it has captured"
            );
        }
        let number = id + self.run.config.first_user;
        let class = self.run.config.program.class_of(number);
        self.stats.counters.users_started += 1;
        self.stats.lag.record_us(cx.now().micros_since(due));
        let user = User::new(number, class as u16, self.run.config.seed, due);
        let key = cx.insert(UserSession::Unconnected, user);
        self.starts.started(id, key.index());
        cx.notify(key);
    }

    /// Stops the user at `index` of the core's table. With `id`, only if this user still has that
    /// index.
    fn stop_user<D: GeneratorDriver>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        index: u32,
        id: Option<u64>,
    ) {
        let Some(key) = cx.key_at(index) else { return };
        if id.is_some_and(|id| cx.state(key).is_none_or(|user| user.id != id)) {
            return;
        }
        cx.with(key, |conn| self.step(conn, Input::Leave));
    }

    /// Stops `count` users, the newest first as far as this core knows their order. What it has too
    /// few of, one of the next `cores_left` cores stops.
    fn stop_users<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        count: u64,
        cores_left: usize,
    ) {
        let mut keys = cx.keys();
        // Users that are stopping already are not counted again.
        keys.retain(|key| cx.state(*key).is_some_and(|user| !user.is_leaving()));
        let mut indexes: Vec<u32> = keys.iter().map(|key| key.index()).collect();
        let rest = count.saturating_sub(indexes.len() as u64);
        let kept = indexes.len().saturating_sub(count as usize);
        for index in indexes.drain(kept..) {
            self.stop_user(cx, index, None);
        }
        if rest > 0 && cores_left > 0 {
            let next = (self.stats.core_id + 1) % self.cores;
            let message = GeneratorMessage::StopMoreUsers(rest, cores_left);
            // Control messages are never refused.
            let _ = cx.send_message(next, message, MessagePriority::Control);
        }
    }

    /// Begins the end of the run. In the open model, unless `at_once`, users in `stay` leave, users
    /// that would begin again leave, and other busy users may finish. Otherwise all users leave.
    fn end_run<D: GeneratorDriver>(&mut self, cx: &mut CoreContext<D, Self>, at_once: bool) {
        let now = cx.now();
        self.starts.end(now);
        if let Some(probes) = &mut self.probes {
            probes.on_schedule_over();
        }
        let mut keys = cx.keys();
        if at_once || self.run.model == Model::Closed {
            // After this, a second call has no user left to count.
            self.stop_all(cx);
            self.run.phase = RunPhase::Leaving;
            if let Some(probes) = &mut self.probes {
                probes.on_leaving(&mut self.stats);
            }
        } else {
            self.run.phase = RunPhase::Finishing(now + FINISH_TIMEOUT);
            self.run.schedule_over_at = now;
            let rules = self.run.rules();
            keys.retain(|key| {
                cx.state(*key)
                    .is_some_and(|user| rules.begins_again(user.class) || is_done(user, rules, now))
            });
        }
        let indexes = keys.into_iter().map(Key::index).collect();
        self.departures.start(indexes, now, RAMP_DOWN);
    }

    /// Ends the schedule. Sends no more probes; users leave once every delivery of the last probe
    /// has arrived or is missing.
    fn end_schedule<D: GeneratorDriver>(&mut self, cx: &mut CoreContext<D, Self>) {
        self.awaits_probes = true;
        if let Some(probes) = &mut self.probes {
            probes.on_schedule_over();
        }
        if self.probes_are_idle() {
            self.end_run(cx, false);
        }
    }

    fn probes_are_idle(&self) -> bool {
        self.probes.as_ref().is_none_or(Probes::is_idle)
    }

    /// Tells a user that TCP is established.
    fn tcp_established<D: GeneratorDriver>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        input: Input<'_>,
    ) {
        if !conn.state().is_running() {
            return;
        }
        if self.run.config.self_connect_possible && is_self_connected(conn) {
            self.step(conn, Input::SelfConnected);
            return;
        }
        let dialed_at = conn.state().message_from;
        let arrival = conn.handshake_arrival(dialed_at);
        self.step_with(conn, arrival, input);
    }

    /// Completes the gauges and returns the stats. `blank` becomes the new stats.
    fn take_stats<D: GeneratorDriver>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        blank: Box<CoreStats>,
    ) -> Box<CoreStats> {
        let stats = &mut self.stats;
        stats.taken_at = cx.driver().now();
        stats.counters.users_intended = self.starts.intended_by(cx.now());
        stats.counters.users_active = cx.len() as u64 - stats.resting;
        stats.counters.messages_unfinished = self.held.messages() as u64;
        stats.counters.held_bytes = self.held.used_bytes() as u64;
        stats.counters.held_refused = self.held.refused();
        stats.counters.tls_offered = cx.transport_counters().offered;
        stats.phase = match self.run.phase {
            RunPhase::Leaving => self.starts.phase_count(),
            RunPhase::Running | RunPhase::Finishing(_) => self.starts.phase_at(cx.now()),
        };
        stats.core = cx.counters();
        let fresh = blank.continue_from(stats);
        std::mem::replace(&mut self.stats, fresh)
    }
}

impl<D: GeneratorDriver> App<D> for Generator {
    type Session = UserSession;
    type State = User;

    const READS_WHILE_BLOCKED: bool = true;

    /// The answers that users wait for are timed, and the deliveries of probes. A room of twenty
    /// has twenty messages for each answer: the others are read for less.
    fn wants_arrival(&self, user: &User) -> bool {
        user.awaits_answer() || self.probes.as_ref().is_some_and(Probes::awaits_deliveries)
    }

    fn scratch(&self) -> Scratch {
        let limits = WebSocketLimits {
            message_bytes_max: MESSAGE_BYTES_MAX,
            frame_bytes_max: MESSAGE_BYTES_MAX,
            // What a target sends goes to one user.
            inflate_ratio_max: usize::MAX,
            ..WebSocketLimits::default()
        };
        let seed = self.run.config.seed ^ self.stats.core_id as u64;
        Scratch::new(limits, seed).with_budget(self.held.clone())
    }

    fn message(&mut self, cx: &mut CoreContext<D, Self>, mail: GeneratorMessage) {
        match mail {
            GeneratorMessage::Collect(blank, reply) => {
                let stats = self.take_stats(cx, blank);
                // The control thread may have ended already.
                let _ = reply.send(stats);
            }
            GeneratorMessage::AddUsers(count) => {
                if self.run.phase == RunPhase::Running {
                    self.starts.add(count, cx.now());
                }
            }
            GeneratorMessage::StopUsers(count) => self.stop_users(cx, count, self.cores - 1),
            GeneratorMessage::StopMoreUsers(count, cores) => self.stop_users(cx, count, cores - 1),
            GeneratorMessage::Pause => self.starts.pause(cx.now()),
            GeneratorMessage::Resume => self.starts.resume(cx.now()),
            GeneratorMessage::RampDown => self.end_run(cx, true),
            GeneratorMessage::Stop => cx.stop(),
            GeneratorMessage::Probe(message) => {
                let is_leaving = self.run.phase == RunPhase::Leaving;
                let Some(probes) = &mut self.probes else { return };
                if let Some(order) = probes.on_message(message, is_leaving, &mut self.stats) {
                    self.send_probe(cx, order);
                }
                self.send_probe_messages(cx);
            }
            GeneratorMessage::Peer(PeerOrder::Probe { message, .. }) => {
                self.message(cx, GeneratorMessage::Probe(message));
            }
            GeneratorMessage::Peer(PeerOrder::OpenCue { cue, users, at_us, .. }) => {
                let at = PeerOrder::moment(at_us, self.run.config.start_at);
                self.cues.open_of_machines(cue, users, at);
            }
            GeneratorMessage::CuesOpened(opened) => {
                opened.iter().for_each(|group| self.cues.open(*group));
            }
        }
    }

    fn due(&self) -> Instant {
        let phase_due = match self.run.phase {
            RunPhase::Running if self.awaits_probes && self.probes_are_idle() => Instant::ZERO,
            RunPhase::Running if self.awaits_probes => Instant::FAR,
            RunPhase::Running => self.starts.due(),
            RunPhase::Finishing(until) => until,
            RunPhase::Leaving => Instant::FAR,
        };
        let probes_due = self.probes.as_ref().map_or(Instant::FAR, Probes::due);
        phase_due.min(self.departures.due()).min(probes_due).min(self.cues.due())
    }

    fn run_due(&mut self, cx: &mut CoreContext<D, Self>) {
        let now = cx.now();
        for _ in 0..STARTS_PER_TURN_MAX {
            match self.starts.pop(now) {
                Some(DueAction::Start { id, due }) => self.start_user(cx, id, due),
                Some(DueAction::Stop { id, index }) => {
                    let number = id + self.run.config.first_user;
                    self.stop_user(cx, index, Some(number));
                }
                None => break,
            }
        }
        self.run_cues(cx);
        self.run_probes(cx);
        match self.run.phase {
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
        self.encoder.end_turn();
        let is_over = match self.run.phase {
            // The phases go on: other cores have users, and more may be added by hand.
            RunPhase::Running => self.starts.ends_with_users(cx.now()),
            RunPhase::Finishing(_) | RunPhase::Leaving => true,
        };
        self.stats.finished = is_over && cx.is_empty();
    }

    fn notified(&mut self, conn: &mut Conn<'_, D, Self>) {
        let is_leaving = self.run.phase == RunPhase::Leaving;
        self.step(conn, if is_leaving { Input::Cancel } else { Input::Begin });
    }

    fn opening(&mut self, conn: &mut Conn<'_, D, Self>) {
        let user = conn.state().id;
        conn.set_client(user);
        self.tcp_established(conn, Input::Opening);
    }

    fn opened(&mut self, conn: &mut Conn<'_, D, Self>) {
        if conn.state().flags.is_opening() {
            let ended = self.stats.counters.tls_ok;
            self.step(conn, Input::Opened);
            // A stopped user counts no end.
            let is_counted = self.stats.counters.tls_ok > ended;
            self.stats.counters.tls_resumed += u64::from(is_counted && conn.has_resumed());
        } else {
            self.tcp_established(conn, Input::Opened);
        }
    }

    fn event(&mut self, conn: &mut Conn<'_, D, Self>, event: UserEvent<'_>) {
        event.receive(&mut ReceivingUser { generator: self, conn });
    }

    fn finished(&mut self, conn: &mut Conn<'_, D, Self>) {
        let is_cut = conn.is_truncated() && conn.state().needs_connection();
        self.stats.counters.tls_truncated += u64::from(is_cut);
        self.step(conn, Input::PeerFinished);
    }

    fn drained(&mut self, conn: &mut Conn<'_, D, Self>) {
        self.step(conn, Input::Drained);
    }

    fn deadline(&mut self, conn: &mut Conn<'_, D, Self>) {
        if self.run.phase != RunPhase::Leaving {
            self.step(conn, Input::Deadline);
        }
    }

    fn closed(&mut self, conn: &mut Conn<'_, D, Self>, reason: CloseReason) -> AfterClose {
        let text = conn.take_failure_text();
        match self.step(conn, Input::Closed(reason, text.as_deref())) {
            true => AfterClose::Free,
            false => AfterClose::Keep,
        }
    }
}

/// Reports whether both ends of a connection are the same socket.
fn is_self_connected<D: GeneratorDriver>(conn: &Conn<'_, D, Generator>) -> bool {
    conn.local_addr().is_some_and(|local| conn.peer_addr() == Some(local))
}

/// Users that a core starts per turn, so that input which arrives meanwhile does not wait long.
const STARTS_PER_TURN_MAX: usize = 32;
/// Time over which all users leave at the end.
pub const RAMP_DOWN: Duration = Duration::from_secs(1);
/// Open model: time after the last phase in which users may finish.
pub const FINISH_TIMEOUT: Duration = Duration::from_secs(10);
