//! The users of one core: gives their inputs to the machine, and carries out its actions.

use std::sync::Arc;

use throng_base::Instant;
use throng_driver::{ConnectSpec, MessagePriority, SocketOptions};
use throng_engine::{Arrival, CloseReason, Conn, CoreContext, Deadline};
use throng_measure::{ErrorExchange, LoadCounters};

use super::error_name::ErrorName;
use super::error_samples::{ErrorPlace, describe_sample};
use super::followed::{AnswerCounts, ConnectionChange};
use super::recorder::Recorder;
use super::{Generator, GeneratorDriver, GeneratorMessage};
use crate::cues::ReadyUser;
use crate::program::Program;
use crate::protocols::input::Receiver;
use crate::user::{
    AnswerTiming, ErrorKind, Input, Progress, Sample, SocketStatus, TraceEvent, User, UserAction,
    UserContext, UserSession, handle,
};

/// What the machine is lent of a user's entry.
struct UserParts<'a> {
    user: &'a mut User,
    session: &'a mut UserSession,
    out: &'a mut Vec<u8>,
    socket: SocketStatus,
    now: Instant,
    arrival: Arrival,
    /// Index in the core's table.
    index: u32,
}

/// What a user asks of its connection. The last request of a kind counts.
#[derive(Default)]
struct Requests {
    connect: Option<ConnectSpec>,
    close: Option<Close>,
    half_close: bool,
    deadline: Option<Deadline>,
    remove: bool,
}

/// Way to close a connection.
enum Close {
    InOrder(CloseReason),
    Reset,
}

impl Requests {
    /// Keeps what an action asks of the connection that there is.
    fn note(&mut self, action: &UserAction<'_>) {
        match action {
            UserAction::WaitUntil(deadline) => self.deadline = Some(*deadline),
            UserAction::Close => self.close = Some(Close::InOrder(CloseReason::Requested)),
            UserAction::CloseFinished => self.close = Some(Close::InOrder(CloseReason::Finished)),
            UserAction::Reset => self.close = Some(Close::Reset),
            UserAction::HalfClose => self.half_close = true,
            UserAction::Remove => self.remove = true,
            UserAction::Connect { .. }
            | UserAction::Count(_)
            | UserAction::Record(..)
            | UserAction::Trace(..) => {}
        }
    }
}

impl Generator {
    /// Gives an input to a user's machine and carries out its actions. Returns true if the user is
    /// removed.
    pub(super) fn step<D: GeneratorDriver>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        input: Input<'_>,
    ) -> bool {
        let arrival = conn.arrival();
        self.step_with(conn, arrival, input)
    }

    /// Gives an input that arrived at `arrival` to a user's machine.
    pub(super) fn step_with<D: GeneratorDriver>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        arrival: Arrival,
        mut input: Input<'_>,
    ) -> bool {
        loop {
            let (now, socket, index) = (conn.now(), status(conn), conn.key().index());
            let (user, session, out) = conn.parts();
            let parts = UserParts { user, session, out, socket, now, arrival, index };
            let mut requests = Requests::default();
            let progress = self.handle(parts, input, &mut requests);
            let is_removed = requests.remove;
            requests.make(conn);
            match progress {
                Progress::Waits => return is_removed,
                Progress::Flush { ops_left } => {
                    conn.send_now(&[]);
                    input = Input::Flushed { ops_left };
                }
            }
        }
    }

    fn handle(
        &mut self,
        parts: UserParts<'_>,
        input: Input<'_>,
        requests: &mut Requests,
    ) -> Progress {
        let mut tracer = self.tracer.as_mut();
        let Self { run, sources, encoder, samples, stats, probes, followed, .. } = self;
        let UserParts { user, session, out, socket, now, arrival, index } = parts;
        let (id, class, config) = (user.id(), user.class, &run.config);
        let program = &config.program;
        let place = ErrorPlace { program, class, pc: user.pc(), user: id };
        let target = || (id % config.targets.len() as u64) as usize;
        let is_followed = user.flags.is_followed();
        let message = if is_followed { input.message() } else { None };
        let (sent_before, before) = (out.len(), AnswerCounts::of(stats));
        let judged = stats.before(&program.classes()[usize::from(class)]);
        let mut change = ConnectionChange::of(&input);
        let unanswered = (user.unanswered, user.message_from);
        let mut recorder = Recorder { stats, samples, now, place };
        tracer = tracer.filter(|tracer| tracer.follows(id));
        let is_traced = tracer.is_some();
        let mut act = |action: UserAction<'_>| match action {
            UserAction::Count(count) => count(&mut recorder.stats.counters),
            UserAction::Record(pc, record) => {
                change.note(&record);
                if !recorder.stats.addresses.is_empty() {
                    recorder.stats.addresses[target()].note(&record);
                }
                recorder.place.pc = pc;
                recorder.record(record);
            }
            UserAction::Connect { measures_arrivals } => {
                let target = config.targets[target()];
                let options = SocketOptions { arrival_stamps: measures_arrivals, ..config.options };
                let source = sources.choose();
                requests.connect = Some(ConnectSpec { target, source, options });
            }
            other => requests.note(&other),
        };
        let mut actions = |action: UserAction<'_>| {
            if let Some(tracer) = &mut tracer {
                tracer.note(program, (id, class), now, &action);
            }
            act(action);
        };
        let mut cx = UserContext {
            user,
            now,
            arrival,
            socket,
            session,
            out,
            rules: run.rules(),
            encoder,
            clocks: &mut self.clocks,
            cues: &mut self.cues,
            held: &mut self.held,
            index,
            is_traced,
            actions: &mut actions,
        };
        let progress = handle(&mut cx, input);
        change.unanswered = [unanswered, (cx.user.unanswered, cx.user.message_from)];
        stats.count_since(judged);
        if is_followed || change.is_opened {
            if let Some(message) = message {
                let role = AnswerCounts::of(stats).role_since(before);
                followed.compare(index, message, role, &mut stats.followed);
            }
            change.has_sent = out.len() > sent_before;
            change.is_used |= change.has_sent;
            let follows = followed.follow(index, is_followed, &change, now, stats);
            user.flags.set_followed(follows);
        }
        if let Some(probes) = probes {
            probes.on_user(user, index, program, &mut encoder.comparison, stats);
        }
        progress
    }

    /// Shows what arrived at a user, if the user is watched.
    pub(super) fn trace<D: GeneratorDriver>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        event: TraceEvent<'_>,
    ) {
        let Some(tracer) = &mut self.tracer else { return };
        let (now, user) = (conn.now(), conn.state());
        if tracer.follows(user.id()) {
            let (program, place) = (&self.run.config.program, (user.id(), user.class));
            tracer.note(program, place, now, &UserAction::Trace(user.pc(), event));
        }
    }

    /// Counts a probe that was refused.
    fn count_refused_probe<D: GeneratorDriver>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        refusal: &Sample<'_>,
    ) {
        let (now, user) = (conn.now(), conn.state());
        let program = &self.run.config.program;
        let place = ErrorPlace { program, class: user.class, pc: user.pc(), user: user.id() };
        let kind = ErrorKind::ProbeRefused;
        self.stats.errors[kind as usize] += 1;
        self.stats.error_log.note(ErrorName::Kind(kind), now);
        let first = self.samples.first(ErrorName::Kind(kind), place, |samples| {
            let (_, got) = describe_sample(samples, place, refusal, &[]);
            ("a reply to the probe with status ok".to_owned(), got)
        });
        // The probe is no step of its user.
        let no_step = |exchange| ErrorExchange {
            step: String::new(),
            step_kind: String::new(),
            line: 0,
            ..exchange
        };
        self.stats.samples.extend(first.map(no_step));
    }

    /// Counts `message` if it is a delivery of a probe, and reports whether it is.
    fn probe_received<D: GeneratorDriver>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        message: &[u8],
    ) -> bool {
        let Some(probes) = &mut self.probes else { return false };
        let timing = AnswerTiming { seen_at: conn.now(), arrival: conn.arrival() };
        probes.on_delivery(message, &mut conn.state().receipts, timing, &mut self.stats)
    }

    /// Lets users go on whose barrier has opened or whose signal was given, a few at a time. Tells
    /// the other cores what users of this core have opened.
    pub(super) fn run_cues<D: GeneratorDriver>(&mut self, cx: &mut CoreContext<D, Self>) {
        if let Some(opened) = self.cues.take_opened() {
            for core in (0..self.cores).filter(|core| *core != self.stats.core_id) {
                let message = GeneratorMessage::CuesOpened(Arc::clone(&opened));
                // Control messages are never refused.
                let _ = cx.send_message(core, message, MessagePriority::Control);
            }
        }
        for message in self.cues.take_peer_messages() {
            self.run.tell_peers(message);
        }
        let now = cx.now();
        for _ in 0..GOING_ON_PER_TURN_MAX {
            let Some(ReadyUser { index, ticket, at }) = self.cues.next_ready(now) else { break };
            if let Some(key) = cx.key_at(index) {
                cx.with(key, |conn| self.step(conn, Input::CueOpened { ticket, at }));
            }
        }
    }

    /// Counts all users as stopped, when all users begin to leave.
    pub(super) fn stop_all<D: GeneratorDriver>(&mut self, cx: &mut CoreContext<D, Self>) {
        let now = cx.now();
        // A user that is stopped writes nothing.
        let (mut session, mut out) = (UserSession::Unconnected, Vec::new());
        for key in cx.keys() {
            let Some(user) = cx.state(key) else { continue };
            if let Some(from) = user.waiting_from(&self.run.config.program) {
                let counters = &mut self.stats.counters;
                counters.users_waiting += 1;
                counters.users_waiting_us_most =
                    counters.users_waiting_us_most.max(now.micros_since(from));
            }
            if let Some(until) = user.paused_until().filter(|until| *until < now) {
                // Only this generator delayed it.
                self.stats.lag.record_us(now.micros_since(until));
            }
            let (socket, arrival) = (SocketStatus::Busy, Arrival::Unknown);
            let (session, out, index) = (&mut session, &mut out, key.index());
            let parts = UserParts { user, session, out, socket, now, arrival, index };
            self.handle(parts, Input::Stop, &mut Requests::default());
        }
    }
}

/// A user whose connection has received something.
pub(super) struct ReceivingUser<'a, 'c, D: GeneratorDriver> {
    pub(super) generator: &'a mut Generator,
    pub(super) conn: &'a mut Conn<'c, D, Generator>,
}

impl<D: GeneratorDriver> Receiver for ReceivingUser<'_, '_, D> {
    fn user(&mut self) -> &User {
        self.conn.state()
    }

    fn program(&self) -> &Program {
        &self.generator.run.config.program
    }

    fn step(&mut self, input: Input<'_>) {
        self.generator.step(self.conn, input);
    }

    fn trace(&mut self, event: TraceEvent<'_>) {
        self.generator.trace(self.conn, event);
    }

    fn count(&mut self, count: fn(&mut LoadCounters)) {
        count(&mut self.generator.stats.counters);
    }

    fn takes_probe(&mut self, message: &[u8]) -> bool {
        self.generator.probe_received(self.conn, message)
    }

    fn takes_probe_answer(&mut self, number: u32, refusal: Option<Sample<'_>>) -> bool {
        let id = self.conn.state().id();
        let Some(probes) = &mut self.generator.probes else { return false };
        let is_probes = probes.on_reply(id, number);
        if let Some(refusal) = refusal.filter(|_| is_probes) {
            self.generator.count_refused_probe(self.conn, &refusal);
        }
        is_probes
    }

    fn awaits_messages(&mut self) -> bool {
        self.generator.run.receives(self.conn.state().class)
    }
}

impl Requests {
    /// Makes the requests to the user's connection.
    fn make<D: GeneratorDriver>(self, conn: &mut Conn<'_, D, Generator>) {
        if let Some(spec) = self.connect {
            conn.connect(spec);
        }
        if let Some(deadline) = self.deadline {
            conn.set_deadline(deadline);
        }
        match self.close {
            Some(Close::InOrder(reason)) => conn.close_because(reason),
            Some(Close::Reset) => conn.reset(),
            None => {}
        }
        if self.half_close {
            conn.finish();
        }
        if self.remove {
            conn.remove();
        }
    }
}

fn status<D: GeneratorDriver>(conn: &Conn<'_, D, Generator>) -> SocketStatus {
    if conn.is_detached() {
        SocketStatus::Absent
    } else if conn.is_blocked() {
        SocketStatus::Blocked
    } else if conn.is_open() {
        SocketStatus::Open
    } else {
        SocketStatus::Busy
    }
}

/// Users that a core lets go on per turn, so that input which arrives meanwhile does not wait long.
const GOING_ON_PER_TURN_MAX: usize = 64;
