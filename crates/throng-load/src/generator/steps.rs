//! The steps of a user: runs op after op until the user has to wait.

use std::time::Duration;

use throng_base::Instant;
use throng_driver::{ConnectSpec, Driver, SocketOptions};
use throng_engine::{Conn, Deadline};

use super::outcomes::MissedTurns;
use super::session::UserSession;
use super::user::{ConnStatus, IterationOutcome, LoopCounter, User, UserState};
use super::{Generator, GeneratorMessage, RunPhase};
use crate::program::{CloseAction, Frame, Loop, Op, Protocol, TemplateVars, Turns, jittered};
use crate::scenario::Model;

/// Result of a step: run the next op, or wait.
pub(super) enum StepOutcome {
    Next,
    Wait,
}

impl Generator {
    /// Starts the user's program. Latencies count from the user's intended moment.
    pub(super) fn begin_program<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        self.begin_iteration(conn.state());
        self.advance(conn);
    }

    /// Cancels the start of a user that was due when all users began to leave. Counts its iteration
    /// as cut off before the first step.
    pub(super) fn cancel_start<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let now = conn.now();
        let user = conn.state();
        self.begin_iteration(user);
        self.count_stopped_user(user, now);
        conn.remove();
    }

    fn begin_iteration(&mut self, user: &mut User) {
        let class = &self.config.program.classes()[usize::from(user.class)];
        user.pc = class.entry;
        user.clear_unanswered();
        user.awaited = 0;
        user.inbox = None;
        user.iteration = IterationOutcome::Clean;
        self.stats.counters.iterations += 1;
        self.stats.classes[usize::from(user.class)].users_started += 1;
    }

    /// Runs the user's ops from `pc` on, until one has to wait.
    pub(super) fn advance<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        for _ in 0..OPS_MAX {
            if let StepOutcome::Wait = self.step(conn) {
                return;
            }
        }
        // A loop without a wait in it. Other users get their turn in between.
        conn.state().state = UserState::Yielding;
        let now = conn.now();
        conn.set_deadline(Deadline::Exact(now));
    }

    fn step<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) -> StepOutcome {
        let pc = conn.state().pc;
        match self.config.program.op(pc) {
            Op::Connect { timeout_ns, handshake } => {
                self.connect(conn, Duration::from_nanos(timeout_ns), handshake)
            }
            Op::Send { template, frame } => {
                self.send(conn, |this, conn| this.write_message(conn, template, frame))
            }
            Op::SendRandom { bytes } => {
                self.send(conn, |this, conn| this.write_random(conn, bytes as usize))
            }
            Op::ExpectMessage { pattern, timeout_ns } => {
                self.stats.counters.messages_expected += 1;
                self.expect_message(conn, pattern, Duration::from_nanos(timeout_ns))
            }
            Op::Request { request } => self.send_request(conn, request),
            Op::ExpectBytes { matcher, timeout_ns } => {
                self.stats.counters.messages_expected += 1;
                self.expect_bytes(conn, matcher, Duration::from_nanos(timeout_ns))
            }
            Op::Wait { span_ns, jitter } => {
                let user = conn.state();
                let span = Duration::from_nanos(jittered(span_ns, jitter, &mut user.prng));
                user.pc += 1;
                // Counts from the end of the step before, not from now, so that delays do not add
                // up.
                let due = user.intended + span;
                self.wait_until(conn, due)
            }
            Op::LoopBegin { index } => {
                let user = conn.state();
                let slot = self.config.program.loop_at(index).slot;
                *user.loop_counter(slot) = LoopCounter::new(user.intended);
                self.begin_turn(conn, index)
            }
            Op::LoopEnd { index } => {
                let slot = self.config.program.loop_at(index).slot;
                conn.state().loop_counter(slot).next_turn();
                self.begin_turn(conn, index)
            }
            Op::Stay => {
                if self.run_phase != RunPhase::Running {
                    return self.end_program(conn);
                }
                conn.state().state = UserState::Staying;
                conn.set_deadline(Deadline::Never);
                StepOutcome::Wait
            }
            Op::Close { how } => self.close(conn, how),
            Op::End => self.end_program(conn),
        }
    }

    fn connect<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        timeout: Duration,
        handshake: u32,
    ) -> StepOutcome {
        if !conn.is_detached() {
            // The scenario reader rejects this, except after an error: then the user keeps its open
            // connection.
            conn.state().pc += 1;
            return StepOutcome::Next;
        }
        let now = conn.now();
        let user = conn.state();
        debug_assert_eq!(user.conn_status, ConnStatus::None, "a closed connection has no status");
        user.state = UserState::Connecting;
        // State of the previous connection does not apply to this one.
        user.clear_unanswered();
        user.inbox = None;
        user.flags.set_receives_lookalikes(false);
        user.message_from = now;
        let measures_arrivals = self.expects[usize::from(user.class)]
            || self.config.program.protocol() != Protocol::Tcp;
        user.handshake = handshake as u16;
        let target = self.config.targets[(user.id % self.config.targets.len() as u64) as usize];
        let options = SocketOptions { arrival_stamps: measures_arrivals, ..self.config.options };
        let spec = ConnectSpec { target, source: self.sources.choose(), options };
        // Trying another port does not count as another connect.
        self.stats.counters.connects_started += u64::from(user.port_tries == 0);
        if self.config.program.protocol() != Protocol::Tcp {
            *conn.session().0 = UserSession::web_socket();
        }
        conn.want_arrival(measures_arrivals);
        conn.connect(spec);
        conn.set_deadline(Deadline::Coarse(now + timeout));
        StepOutcome::Wait
    }

    fn send<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        render: impl FnOnce(&mut Self, &mut Conn<'_, D, Self>),
    ) -> StepOutcome {
        if let Some(step) = self.check_can_send(conn) {
            return step;
        }
        render(self, conn);
        if conn.out().len() >= SEND_BYTES_MAX {
            // Sends now, so that the next `send` sees whether the server accepts the bytes.
            conn.send_now(&[]);
        }
        let now = conn.now();
        let user = conn.state();
        let begins_anew = user.message_from == Instant::FAR || user.flags.is_answering();
        if begins_anew && user.unanswered > 0 && !self.config.program.sends_exceed_answers(user.pc)
        {
            user.push_to_window(now, user.intended);
        } else if begins_anew {
            self.discard_unasked(user, now);
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

    /// Checks whether the user can send. Returns `None` if it can. Skips the step if there is no
    /// connection, and blocks the user while the server has not accepted what was sent before.
    pub(super) fn check_can_send<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) -> Option<StepOutcome> {
        if !conn.is_open() {
            return Some(self.skip_unconnected_step(conn));
        }
        conn.is_blocked().then(|| {
            conn.state().state = UserState::Blocked;
            conn.set_deadline(Deadline::Never);
            StepOutcome::Wait
        })
    }

    /// Appends the message of a `send` to the output.
    fn write_message<D: Driver<Message = GeneratorMessage>>(
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

    /// Appends random bytes to the output: raw on TCP, as one binary message on a WebSocket.
    fn write_random<D: Driver<Message = GeneratorMessage>>(
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

    /// Begins the next turn of a loop, or leaves the loop.
    fn begin_turn<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        index: u32,
    ) -> StepOutcome {
        let now = conn.now();
        let looping = *self.config.program.loop_at(index);
        let user = conn.state();
        let LoopCounter { begun, turn, .. } = *user.loop_counter(looping.slot);
        if self.run_phase != RunPhase::Running && looping.is_endless() {
            let kind = self.config.program.latency_kind_of_turn(index);
            self.count_missed_turns_of_loop(user, index, turn, kind, now, MissedTurns::Waiting);
            user.pc = looping.after;
            return StepOutcome::Next;
        }
        let passed_ns = now.since(begun).as_nanos() as u64;
        let Some(begins_ns) = looping.turn_begin_ns(turn, passed_ns) else {
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

    /// Continues after a wait. If the user waited for a turn of `every`, begins that turn.
    pub(super) fn end_wait<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let now = conn.now();
        let user = conn.state();
        if let Some(index) = self.awaited_loop(user) {
            let looping = *self.config.program.loop_at(index);
            if looping.is_endless() && user.intended > self.schedule_over_at {
                user.pc = looping.after;
            } else {
                self.count_turn(user, &looping, now);
            }
        }
        self.advance(conn);
    }

    /// Counts the turn that begins and the turns that came due during the last one.
    fn count_turn(&mut self, user: &mut User, looping: &Loop, now: Instant) {
        let counter = user.loop_counter(looping.slot);
        let passed = now.since(counter.begun);
        let next = counter.counted().max(counter.turn + 1);
        let is_behind = looping
            .turn_begin_ns(next, 0)
            .is_some_and(|begins_ns| u128::from(begins_ns) <= passed.as_nanos());
        let due = if is_behind { looping.turns_due(passed).max(next) } else { next };
        self.stats.counters.turns_intended += counter.count(due);
        self.stats.counters.turns_started += 1;
    }

    /// Sets the next op's intended moment to `due` and waits until then. The op's latency counts
    /// from `due`.
    fn wait_until<D: Driver<Message = GeneratorMessage>>(
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
        user.state = UserState::Waiting;
        conn.set_deadline(Deadline::Exact(due));
        StepOutcome::Wait
    }

    fn close<D: Driver<Message = GeneratorMessage>>(
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
                conn.state().state = UserState::Blocked;
                conn.set_deadline(Deadline::Never);
                return StepOutcome::Wait;
            }
            CloseAction::Half => {
                let user = conn.state();
                user.conn_status = ConnStatus::HalfClosed;
                user.pc += 1;
                conn.finish();
                return StepOutcome::Next;
            }
            // The WebSocket closes when the server has answered the close frame or the close times
            // out.
            CloseAction::Normal if self.send_close_frame(conn) => {}
            CloseAction::Normal => conn.close(),
            CloseAction::Reset => conn.reset(),
        }
        conn.state().state = UserState::Closing;
        conn.set_deadline(Deadline::Never);
        StepOutcome::Wait
    }

    fn end_program<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) -> StepOutcome {
        if !conn.is_detached() {
            // The end of `Closing` advances `pc` by one; the user must come back to this op.
            let user = conn.state();
            user.state = UserState::Closing;
            user.pc = user.pc.wrapping_sub(1);
            if !self.send_close_frame(conn) {
                conn.close();
            }
            conn.set_deadline(Deadline::Never);
            return StepOutcome::Wait;
        }
        let user = conn.state();
        let erred = user.iteration == IterationOutcome::Erred;
        self.count_iteration_end(user);
        if self.model == Model::Closed && self.run_phase == RunPhase::Running {
            if erred {
                self.rest_after_error(conn);
                return StepOutcome::Wait;
            }
            self.begin_iteration(user);
            return StepOutcome::Next;
        }
        conn.state().state = UserState::Stopping;
        conn.remove();
        StepOutcome::Wait
    }

    /// Counts the end of an iteration. Does nothing if it has been counted.
    pub(super) fn count_iteration_end(&mut self, user: &mut User) {
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
}

/// Ops that a user runs before it yields to other users.
const OPS_MAX: usize = 64;
/// Output bytes at which a user hands them to the kernel.
pub(crate) const SEND_BYTES_MAX: usize = 256 << 10;
