//! The beginning and the end of a user's connection, and what becomes of the user when it is gone.

use std::time::Duration;

use throng_base::Instant;
use throng_driver::{Driver, Errno};
use throng_engine::{AfterClose, CloseReason, Conn, Deadline};

use super::accounts::NeverBegun;
use super::core_stats::ConnectFailure;
use super::session::UserSession;
use super::timing::AnswerTiming;
use super::user::{ConnStatus, IterationOutcome, User, UserState};
use super::{ErrorKind, Generator, GeneratorMessage, RESTART_JITTER, RESTART_PAUSE, RunPhase};
use crate::program::Protocol;
use crate::scenario::OnError;

impl Generator {
    /// The connect has succeeded.
    pub(super) fn established<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        timing: AnswerTiming,
    ) {
        let now = conn.now();
        let user = conn.state();
        let is_connecting = matches!(user.doing, UserState::Connecting | UserState::Upgrading);
        let from = std::mem::replace(&mut user.intended, now);
        user.forget_question();
        user.standing = ConnStatus::Connected;
        self.stats.connected((from, timing), user.class);
        self.stats.incidents.established(now);
        if is_connecting {
            user.pc += 1;
            conn.set_deadline(Deadline::Never);
            self.advance(conn);
        }
    }

    /// Counts a connect that has failed. Its user gives up: the end of the socket, if it has one,
    /// is still to come.
    pub(super) fn connect_failed(&mut self, user: &mut User, now: Instant, why: ConnectFailure) {
        let timed_out =
            matches!(why, ConnectFailure::Timeout | ConnectFailure::Errno(Errno::TIMED_OUT));
        self.step_failed(user, now, timed_out);
        self.stats.connect_failed(why);
        user.doing = UserState::GivingUp;
        user.iteration = IterationOutcome::Erred;
    }

    /// The socket is connected to itself (RFC 793 section 3.4, simultaneous open): where nobody
    /// listens, the kernel has chosen the target's own port as the source. It ends by RST: a
    /// TIME-WAIT of its own would keep the server from listening there again.
    pub(super) fn met_itself<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let now = conn.now();
        let user = conn.state();
        self.connect_failed(user, now, ConnectFailure::SelfConnected);
        user.standing = ConnStatus::Refused;
        conn.set_deadline(Deadline::Never);
        conn.reset();
    }

    /// What belonged to the connection has gone with it.
    fn disconnected<D: Driver<Mail = GeneratorMessage>>(&mut self, conn: &mut Conn<'_, D, Self>) {
        if self.config.program.protocol() == Protocol::Tcp {
            return;
        }
        *conn.session().0 = UserSession::Raw;
        let user = conn.state();
        let channels = std::mem::take(&mut user.channels);
        let joined = channels.iter().filter(|channel| channel.joined).count();
        self.stats.counters.joined -= joined as u64;
        (user.refs, user.awaited, user.heartbeat) = (0, 0, 0);
        if let Some(probes) = &mut self.probes {
            probes.leave(user, &mut self.stats);
        }
    }

    /// What becomes of a user whose iteration failed and whose connection is gone.
    pub(super) fn failed<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) -> AfterClose {
        let now = conn.now();
        let user = conn.state();
        self.step_failed(user, now, false);
        user.iteration = IterationOutcome::Erred;
        let on_error = self.on_error(user.class);
        if on_error == OnError::Continue {
            // The step that needed the connection is over; one that only waits goes on waiting.
            let needs_connection = matches!(
                user.doing,
                UserState::Connecting
                    | UserState::Upgrading
                    | UserState::GivingUp
                    | UserState::Expecting
                    | UserState::Asking
                    | UserState::Blocked
                    | UserState::Staying
            );
            user.pc += u32::from(needs_connection);
            if needs_connection {
                user.doing = UserState::Yielding;
            }
            return self.go_on_without_connection(conn);
        }
        self.give_up_turns(user, now, NeverBegun::Failed);
        self.iteration_over(user);
        if on_error == OnError::Restart && self.stage == RunPhase::Running {
            self.rest(conn);
            return AfterClose::Keep;
        }
        AfterClose::Free
    }

    /// The connection is gone, and the user goes on.
    fn go_on_without_connection<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) -> AfterClose {
        let now = conn.now();
        let user = conn.state();
        match user.doing {
            // The end of the socket has taken the deadline with it.
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
        if conn.state().doing == UserState::Stopping { AfterClose::Free } else { AfterClose::Keep }
    }

    /// Lets a user rest before it tries again, so that a target that refuses is not hammered.
    pub(super) fn rest<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let now = conn.now();
        let user = conn.state();
        user.doing = UserState::Resting;
        let nanos = crate::program::jittered(
            RESTART_PAUSE.as_nanos() as u64,
            RESTART_JITTER,
            &mut user.prng,
        );
        user.intended = now + Duration::from_nanos(nanos);
        let until = user.intended;
        self.stats.resting += 1;
        // The next connect counts from then, so the moment is to be exact.
        conn.set_deadline(Deadline::Exact(until));
    }

    /// The connection is gone, or could not be opened.
    pub(super) fn connection_ended<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        reason: CloseReason,
    ) -> AfterClose {
        let user = conn.state();
        let standing = std::mem::take(&mut user.standing);
        if !matches!(standing, ConnStatus::None | ConnStatus::Refused) {
            self.stats.counters.connected -= 1;
        }
        self.disconnected(conn);
        let now = conn.now();
        let user = conn.state();
        if user.is_settled() {
            // It was stopped.
            return AfterClose::Free;
        }
        match (user.doing, reason) {
            (UserState::GivingUp | UserState::Failing, _) => return self.failed(conn),
            (_, CloseReason::ConnectFailed(errno)) => {
                if is_short_of_ports(errno) && self.sources.tries_again(user) {
                    self.advance(conn);
                    return AfterClose::Keep;
                }
                if errno == Errno::CONN_REFUSED {
                    self.stats.incidents.refused(now);
                }
                self.connect_failed(user, now, ConnectFailure::Errno(errno));
                return self.failed(conn);
            }
            // The connection went before the upgrade was answered.
            (UserState::Connecting | UserState::Upgrading, reason) => {
                let why = match reason {
                    CloseReason::Failed(errno) => ConnectFailure::Errno(errno),
                    CloseReason::Panicked => ConnectFailure::Internal,
                    _ => ConnectFailure::Closed,
                };
                self.connect_failed(user, now, why);
                return self.failed(conn);
            }
            (_, CloseReason::Panicked) => return self.lost(conn, ErrorKind::Internal),
            _ if standing == ConnStatus::BrokenOff => return self.failed(conn),
            (UserState::Closing, reason) => {
                user.pc += 1;
                user.doing = UserState::Yielding;
                // What was sent before the close did not arrive.
                if !matches!(reason, CloseReason::Requested | CloseReason::Finished) {
                    return self.lost(conn, ErrorKind::of(reason));
                }
            }
            // After a half-close the other end's FIN is what was to come, unless an answer was to come before.
            (doing, CloseReason::Finished)
                if standing == ConnStatus::HalfClosed && doing != UserState::Expecting => {}
            (_, reason) => return self.lost(conn, ErrorKind::of(reason)),
        }
        self.go_on_without_connection(conn)
    }
}

/// Whether another source port might do.
fn is_short_of_ports(errno: Errno) -> bool {
    errno == Errno::ADDR_IN_USE || errno == Errno::ADDR_NOT_AVAILABLE
}
