//! Failures of a user's steps, and what `on_error` makes of them.
//!
//! While the connection is open, [`Generator::fail_step`] decides. When the connection is gone,
//! `connection_ended` finds the reason, and [`Generator::apply_on_error`] decides.

use std::time::Duration;

use throng_driver::Driver;
use throng_engine::{AfterClose, Conn, Deadline};

use super::outcomes::MissedTurns;
use super::steps::StepOutcome;
use super::user::{IterationOutcome, UserState};
use super::{ErrorKind, Generator, GeneratorMessage, RESTART_JITTER, RESTART_PAUSE, RunPhase};
use crate::program::Op;
use crate::scenario::OnError;

impl Generator {
    pub(super) fn on_error(&self, class: u16) -> OnError {
        self.config.program.classes()[usize::from(class)].on_error
    }

    /// Counts and skips a step that needs a connection, after an earlier error has closed it.
    pub(super) fn skip_unconnected_step<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) -> StepOutcome {
        self.skip_step(conn, ErrorKind::NotConnected)
    }

    /// Counts an error and skips the present step: an earlier error has taken away what it needs.
    pub(super) fn skip_step<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        kind: ErrorKind,
    ) -> StepOutcome {
        self.count_error(kind);
        let user = conn.state();
        if let Op::ExpectBytes { .. } | Op::ExpectMessage { .. } = self.config.program.op(user.pc) {
            self.stats.counters.messages_failed += 1;
        }
        user.iteration = IterationOutcome::Erred;
        user.pc += 1;
        StepOutcome::Next
    }

    pub(super) fn count_error(&mut self, kind: ErrorKind) {
        self.stats.errors[kind as usize] += 1;
    }

    /// Fails the present step on a connection that is still open: counts the error, then continues
    /// with the next step or closes the connection, as `on_error` says.
    pub(super) fn fail_step<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        kind: ErrorKind,
    ) {
        self.count_error(kind);
        let now = conn.now();
        let user = conn.state();
        self.count_step_failure(user, now, kind.is_timeout());
        user.iteration = IterationOutcome::Erred;
        let continues = self.on_error(user.class) == OnError::Continue;
        if let Op::ExpectBytes { timeout_ns, .. } | Op::ExpectMessage { timeout_ns, .. } =
            self.config.program.op(user.pc)
            && continues
            && kind == ErrorKind::ExpectTimeout
        {
            user.allow_late_answers(now, now + Duration::from_nanos(timeout_ns));
        } else {
            user.inbox = None;
        }
        user.clear_unanswered();
        if continues {
            user.pc += 1;
            user.intended = now;
            return self.advance(conn);
        }
        user.state = UserState::ClosingAfterError;
        conn.set_deadline(Deadline::Never);
        self.close_connection(conn);
    }

    /// Counts the unexpected end of a connection and applies `on_error`.
    pub(super) fn connection_lost<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        kind: ErrorKind,
    ) -> AfterClose {
        self.count_error(kind);
        if matches!(kind, ErrorKind::ClosedByPeer | ErrorKind::ResetByPeer) {
            self.stats.incidents.count_lost_connection(conn.now());
        }
        conn.state().clear_unanswered();
        self.apply_on_error(conn)
    }

    /// Applies `on_error` to a user whose connection is gone after an error: continues with the
    /// next step, rests before a restart, or stops.
    pub(super) fn apply_on_error<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) -> AfterClose {
        let now = conn.now();
        let user = conn.state();
        self.count_step_failure(user, now, false);
        user.iteration = IterationOutcome::Erred;
        let on_error = self.on_error(user.class);
        if on_error == OnError::Continue {
            // A step that needed the connection is over. A wait continues.
            let needs_connection = matches!(
                user.state,
                UserState::Connecting
                    | UserState::Upgrading
                    | UserState::ClosingFailedConnect
                    | UserState::Expecting
                    | UserState::AwaitingReply
                    | UserState::Blocked
                    | UserState::Staying
            );
            user.pc += u32::from(needs_connection);
            if needs_connection {
                user.state = UserState::Yielding;
            }
            return self.continue_without_connection(conn);
        }
        self.count_missed_turns(user, now, MissedTurns::Failed);
        self.count_iteration_end(user);
        if on_error == OnError::Restart && self.run_phase == RunPhase::Running {
            self.rest_after_error(conn);
            return AfterClose::Keep;
        }
        AfterClose::Free
    }

    /// Continues the user's program after its connection is gone.
    pub(super) fn continue_without_connection<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) -> AfterClose {
        let now = conn.now();
        let user = conn.state();
        match user.state {
            // Closing the socket has cleared the deadline.
            UserState::Waiting => {
                let until = user.intended;
                conn.set_deadline(Deadline::Exact(until));
            }
            UserState::Staying => {}
            _ => {
                user.intended = now;
                self.advance(conn);
            }
        }
        if conn.state().state == UserState::Stopping { AfterClose::Free } else { AfterClose::Keep }
    }

    /// Lets a user rest before its next iteration, so that it does not hammer a failing target.
    pub(super) fn rest_after_error<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let now = conn.now();
        let user = conn.state();
        user.state = UserState::Resting;
        let nanos = crate::program::jittered(
            RESTART_PAUSE.as_nanos() as u64,
            RESTART_JITTER,
            &mut user.prng,
        );
        user.intended = now + Duration::from_nanos(nanos);
        let until = user.intended;
        self.stats.resting += 1;
        // The next connect's latency counts from this moment, so the deadline is exact.
        conn.set_deadline(Deadline::Exact(until));
    }
}
