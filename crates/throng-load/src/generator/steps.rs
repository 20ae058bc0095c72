//! What a user does: op after op, until it has to wait for something.

use std::time::Duration;

use throng_base::Instant;
use throng_driver::{ConnectSpec, Driver, SocketOptions};
use throng_engine::{AfterClose, Conn, Deadline};

use super::accounts::NeverBegun;
use super::session::UserSession;
use super::user::{ConnStatus, IterationOutcome, LoopCounter, User, UserState};
use super::{ErrorKind, Generator, GeneratorMessage, RunPhase};
use crate::program::{
    CloseAction, Frame, Loop, OnError, Op, Protocol, TemplateVars, Turns, jittered,
};
use crate::scenario::Model;

/// Whether a user goes on with the next op or waits.
pub(super) enum StepOutcome {
    Next,
    Wait,
}

impl Generator {
    /// The user begins its program, at the moment that it intends.
    pub(super) fn begin<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        self.restart(conn.state());
        self.advance(conn);
    }

    /// A user was to begin at the very moment at which everybody began to leave: its iteration is
    /// cut off before its first step.
    pub(super) fn begin_too_late<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let now = conn.now();
        let user = conn.state();
        self.restart(user);
        self.close_account(user, now);
        conn.remove();
    }

    fn restart(&mut self, user: &mut User) {
        let class = &self.config.program.classes()[usize::from(user.class)];
        user.pc = class.entry;
        user.forget_question();
        user.awaited = 0;
        user.inbox = None;
        user.iteration = IterationOutcome::Clean;
        self.stats.counters.iterations += 1;
        self.stats.classes[usize::from(user.class)].users_started += 1;
    }

    /// The user goes on from where it is.
    pub(super) fn advance<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        for _ in 0..OPS_MAX {
            if let StepOutcome::Wait = self.step(conn) {
                return;
            }
        }
        // A loop without a wait in it; others have their turn in between.
        conn.state().doing = UserState::Yielding;
        let now = conn.now();
        conn.set_deadline(Deadline::Exact(now));
    }

    fn step<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) -> StepOutcome {
        let pc = conn.state().pc;
        match self.config.program.op(pc) {
            Op::Connect { timeout_ns, handshake } => {
                self.connect(conn, Duration::from_nanos(timeout_ns), handshake)
            }
            Op::Send { template, frame } => {
                self.send(conn, |this, conn| this.write(conn, template, frame))
            }
            Op::SendRandom { bytes } => {
                self.send(conn, |this, conn| this.write_random(conn, bytes as usize))
            }
            Op::Await { pattern, timeout_ns } => {
                self.stats.counters.messages_expected += 1;
                self.await_message(conn, pattern, Duration::from_nanos(timeout_ns))
            }
            Op::Ask { ask } => self.ask(conn, ask),
            Op::Expect { matcher, timeout_ns } => {
                self.stats.counters.messages_expected += 1;
                self.expect(conn, matcher, Duration::from_nanos(timeout_ns))
            }
            Op::Wait { span_ns, jitter } => {
                let user = conn.state();
                let span = Duration::from_nanos(jittered(span_ns, jitter, &mut user.prng));
                user.pc += 1;
                // From the end of the step before, not from now: being late does not add up.
                let due = user.intended + span;
                self.wait_until(conn, due)
            }
            Op::LoopBegin { index } => {
                let user = conn.state();
                let slot = self.config.program.looping(index).slot;
                *user.loop_at(slot) = LoopCounter::new(user.intended);
                self.turn(conn, index)
            }
            Op::LoopEnd { index } => {
                let slot = self.config.program.looping(index).slot;
                conn.state().loop_at(slot).next_turn();
                self.turn(conn, index)
            }
            Op::Stay => {
                if self.stage != RunPhase::Running {
                    return self.end_of_program(conn);
                }
                conn.state().doing = UserState::Staying;
                conn.set_deadline(Deadline::Never);
                StepOutcome::Wait
            }
            Op::Close { how } => self.close(conn, how),
            Op::End => self.end_of_program(conn),
        }
    }

    fn connect<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        timeout: Duration,
        handshake: u32,
    ) -> StepOutcome {
        if !conn.is_detached() {
            // The language checks this; a connection that is still there after an error is used again.
            conn.state().pc += 1;
            return StepOutcome::Next;
        }
        let now = conn.now();
        let user = conn.state();
        debug_assert_eq!(user.standing, ConnStatus::None, "the end of a connection takes it away");
        user.doing = UserState::Connecting;
        // What belonged to the connection before is not for this one.
        user.forget_question();
        user.inbox = None;
        user.flags.set_hears_alike(false);
        user.message_from = now;
        let measures_arrivals = self.expects[usize::from(user.class)]
            || self.config.program.protocol() != Protocol::Tcp;
        user.handshake = handshake as u16;
        let target = self.config.targets[(user.id % self.config.targets.len() as u64) as usize];
        let options = SocketOptions { arrival_stamps: measures_arrivals, ..self.config.options };
        let spec = ConnectSpec { target, source: self.sources.choose(), options };
        // A connect that tries another port is still the same one.
        self.stats.counters.connects_started += u64::from(user.port_tries == 0);
        if self.config.program.protocol() != Protocol::Tcp {
            *conn.session().0 = UserSession::web_socket();
        }
        conn.want_arrival(measures_arrivals);
        conn.connect(spec);
        conn.set_deadline(Deadline::Coarse(now + timeout));
        StepOutcome::Wait
    }

    fn send<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        render: impl FnOnce(&mut Self, &mut Conn<'_, D, Self>),
    ) -> StepOutcome {
        if let Some(step) = self.held_up(conn) {
            return step;
        }
        render(self, conn);
        if conn.out().len() >= SEND_BYTES_MAX {
            // Now, so that the next `send` sees whether the other end takes it.
            conn.send_now(&[]);
        }
        let now = conn.now();
        let user = conn.state();
        let begins_anew = user.message_from == Instant::FAR || user.flags.is_answering();
        if begins_anew && user.unanswered > 0 && !self.config.program.sends_exceed_answers(user.pc)
        {
            user.widen_window(now, user.intended);
        } else if begins_anew {
            self.forget_unasked(user, now);
            user.message_from = user.intended;
            user.unanswered = 0;
            user.flags.set_answering(false);
        }
        user.unanswered = user.unanswered.saturating_add(1);
        user.intended = now;
        user.pc += 1;
        self.stats.counters.messages_sent += 1;
        StepOutcome::Next
    }

    /// What becomes of a step that sends when there is no connection, or the other end has not taken what was sent before.
    pub(super) fn held_up<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) -> Option<StepOutcome> {
        if !conn.is_open() {
            return Some(self.not_connected(conn));
        }
        conn.is_blocked().then(|| {
            conn.state().doing = UserState::Blocked;
            conn.set_deadline(Deadline::Never);
            StepOutcome::Wait
        })
    }

    /// Appends the message of a `send`.
    fn write<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        template: u32,
        frame: Frame,
    ) {
        let user = conn.state();
        let counter = u64::from(user.counter);
        let mut vars = TemplateVars { user_id: user.id, counter, prng: user.prng };
        let template = self.config.program.template(template);
        if frame == Frame::Raw {
            template.render(&mut vars, conn.out());
        } else {
            self.buffers.text.clear();
            template.render(&mut vars, &mut self.buffers.text);
        }
        let user = conn.state();
        (user.counter, user.prng) = (vars.counter as u32, vars.prng);
        match frame {
            Frame::Raw => {}
            Frame::Text => self.write_text(conn),
            Frame::Binary => self.write_binary(conn),
        }
    }

    /// Appends random bytes: as they are, or as one message.
    fn write_random<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        bytes: usize,
    ) {
        let is_raw = self.config.program.protocol() == Protocol::Tcp;
        let mut prng = conn.state().prng;
        let out = if is_raw { conn.out() } else { &mut self.buffers.text };
        let begin = if is_raw { out.len() } else { 0 };
        out.resize(begin + bytes, 0);
        prng.fill(&mut out[begin..]);
        conn.state().prng = prng;
        if !is_raw {
            self.write_binary(conn);
        }
    }

    /// Begins the next turn of a loop, or leaves it.
    fn turn<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        index: u32,
    ) -> StepOutcome {
        let now = conn.now();
        let looping = *self.config.program.looping(index);
        let user = conn.state();
        let LoopCounter { begun, turn, .. } = *user.loop_at(looping.slot);
        if self.stage != RunPhase::Running && looping.is_endless() {
            let question = self.config.program.question_of_turn(index);
            self.give_up_loop(user, index, turn, question, now, NeverBegun::Waiting);
            user.pc = looping.after;
            return StepOutcome::Next;
        }
        let passed_ns = now.since(begun).as_nanos() as u64;
        let Some(begins_ns) = looping.turn_begins(turn, passed_ns) else {
            user.pc = looping.after;
            return StepOutcome::Next;
        };
        user.pc = looping.body;
        if !matches!(looping.turns, Turns::Every { .. }) {
            return StepOutcome::Next;
        }
        let due = begun + Duration::from_nanos(begins_ns);
        if due <= now {
            self.count_turn(user, &looping, now);
        }
        self.wait_until(conn, due)
    }

    /// If the wait that has ended was for a turn of `every`, that turn begins now.
    pub(super) fn wait_over<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let now = conn.now();
        let user = conn.state();
        if let Some(index) = self.turn_awaited(user) {
            let looping = *self.config.program.looping(index);
            if looping.is_endless() && user.intended > self.schedule_over_at {
                user.pc = looping.after;
            } else {
                self.count_turn(user, &looping, now);
            }
        }
        self.advance(conn);
    }

    /// Counts a turn that begins, and those that came due while the last one went on.
    fn count_turn(&mut self, user: &mut User, looping: &Loop, now: Instant) {
        let counter = user.loop_at(looping.slot);
        let passed = now.since(counter.begun);
        let next = counter.counted().max(counter.turn + 1);
        let is_behind = looping
            .turn_begins(next, 0)
            .is_some_and(|begins_ns| u128::from(begins_ns) <= passed.as_nanos());
        let due = if is_behind { looping.turns_due(passed).max(next) } else { next };
        self.stats.counters.turns_intended += counter.count(due);
        self.stats.counters.turns_started += 1;
    }

    /// The next op begins at `due`, which is what its latency counts from.
    fn wait_until<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        due: Instant,
    ) -> StepOutcome {
        let now = conn.now();
        let user = conn.state();
        user.intended = due;
        if due <= now {
            return StepOutcome::Next;
        }
        user.doing = UserState::Waiting;
        conn.set_deadline(Deadline::Exact(due));
        StepOutcome::Wait
    }

    fn close<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        how: CloseAction,
    ) -> StepOutcome {
        if conn.is_detached() {
            conn.state().pc += 1;
            return StepOutcome::Next;
        }
        match how {
            CloseAction::Half if conn.is_blocked() => {
                conn.state().doing = UserState::Blocked;
                conn.set_deadline(Deadline::Never);
                return StepOutcome::Wait;
            }
            CloseAction::Half => {
                let user = conn.state();
                user.standing = ConnStatus::HalfClosed;
                user.pc += 1;
                conn.finish();
                return StepOutcome::Next;
            }
            // A WebSocket is closed when its server has answered, or has had the time to.
            CloseAction::Normal if self.say_goodbye(conn) => {}
            CloseAction::Normal => conn.close(),
            CloseAction::Reset => conn.reset(),
        }
        conn.state().doing = UserState::Closing;
        conn.set_deadline(Deadline::Never);
        StepOutcome::Wait
    }

    fn end_of_program<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) -> StepOutcome {
        if !conn.is_detached() {
            // The end of `Closing` moves the user one op on, and it is to come back here.
            let user = conn.state();
            user.doing = UserState::Closing;
            user.pc = user.pc.wrapping_sub(1);
            if !self.say_goodbye(conn) {
                conn.close();
            }
            conn.set_deadline(Deadline::Never);
            return StepOutcome::Wait;
        }
        let user = conn.state();
        let erred = user.iteration == IterationOutcome::Erred;
        self.iteration_over(user);
        if self.model == Model::Closed && self.stage == RunPhase::Running {
            if erred {
                self.rest(conn);
                return StepOutcome::Wait;
            }
            self.restart(user);
            return StepOutcome::Next;
        }
        conn.state().doing = UserState::Stopping;
        conn.remove();
        StepOutcome::Wait
    }

    /// Counts the end of an iteration, once.
    pub(super) fn iteration_over(&mut self, user: &mut User) {
        let class = &mut self.stats.classes[usize::from(user.class)];
        match std::mem::take(&mut user.iteration) {
            IterationOutcome::Over => {}
            IterationOutcome::Clean => {
                class.users_finished += 1;
                self.stats.counters.users_finished += 1;
            }
            IterationOutcome::Erred => {
                class.users_failed += 1;
                self.stats.counters.users_failed += 1;
            }
        }
    }

    pub(super) fn on_error(&self, class: u16) -> OnError {
        self.config.program.classes()[usize::from(class)].on_error
    }

    pub(super) fn not_connected<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) -> StepOutcome {
        self.passed_over(conn, ErrorKind::NotConnected)
    }

    /// The step lacks what an earlier error has taken away; the user goes on with the next one.
    pub(super) fn passed_over<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        kind: ErrorKind,
    ) -> StepOutcome {
        self.count_error(kind);
        let user = conn.state();
        if let Op::Expect { .. } | Op::Await { .. } = self.config.program.op(user.pc) {
            self.stats.counters.messages_failed += 1;
        }
        user.iteration = IterationOutcome::Erred;
        user.pc += 1;
        StepOutcome::Next
    }

    pub(super) fn count_error(&mut self, kind: ErrorKind) {
        self.stats.errors[kind as usize] += 1;
    }

    /// Something went wrong on a connection that is still there.
    pub(super) fn fail<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        kind: ErrorKind,
    ) {
        self.count_error(kind);
        let now = conn.now();
        let user = conn.state();
        self.step_failed(user, now, kind.is_timeout());
        user.iteration = IterationOutcome::Erred;
        let goes_on = self.on_error(user.class) == OnError::Continue;
        if let Op::Expect { timeout_ns, .. } | Op::Await { timeout_ns, .. } =
            self.config.program.op(user.pc)
            && goes_on
            && kind == ErrorKind::ExpectTimeout
        {
            user.give_up_answers(now, now + Duration::from_nanos(timeout_ns));
        } else {
            user.inbox = None;
        }
        user.forget_question();
        if goes_on {
            user.pc += 1;
            user.intended = now;
            return self.advance(conn);
        }
        user.doing = UserState::Failing;
        conn.set_deadline(Deadline::Never);
        self.hang_up(conn);
    }

    /// A connection has gone that nobody meant to end.
    pub(super) fn lost<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        kind: ErrorKind,
    ) -> AfterClose {
        self.count_error(kind);
        if matches!(kind, ErrorKind::ClosedByPeer | ErrorKind::ResetByPeer) {
            self.stats.incidents.lost(conn.now());
        }
        conn.state().forget_question();
        self.failed(conn)
    }
}

/// Ops that a user does without waiting before others have their turn.
const OPS_MAX: usize = 64;
/// Bytes that a user appends before they are handed to the kernel.
pub(crate) const SEND_BYTES_MAX: usize = 256 << 10;
