//! The beginning and the end of a user's connection, and what the user does after it.

use throng_base::Instant;
use throng_driver::{Driver, Errno};
use throng_engine::{AfterClose, CloseReason, Conn, Deadline};

use super::core_stats::ConnectFailure;
use super::session::UserSession;
use super::timing::AnswerTiming;
use super::user::{ConnStatus, IterationOutcome, User, UserState};
use super::{ErrorKind, Generator, GeneratorMessage};
use crate::program::Protocol;

impl Generator {
    /// Counts a successful connect and continues with the next step.
    pub(super) fn connect_succeeded<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        timing: AnswerTiming,
    ) {
        let now = conn.now();
        let user = conn.state();
        let is_connecting = matches!(user.state, UserState::Connecting | UserState::Upgrading);
        let from = std::mem::replace(&mut user.intended, now);
        user.clear_unanswered();
        user.conn_status = ConnStatus::Connected;
        self.stats.count_connect((from, timing), user.class);
        self.stats.incidents.connect_succeeded(now);
        if is_connecting {
            user.pc += 1;
            conn.set_deadline(Deadline::Never);
            self.advance(conn);
        }
    }

    /// Counts a failed connect. The user waits for the socket to close, if there is one.
    pub(super) fn fail_connect(&mut self, user: &mut User, now: Instant, why: ConnectFailure) {
        let timed_out =
            matches!(why, ConnectFailure::Timeout | ConnectFailure::Errno(Errno::TIMED_OUT));
        self.count_step_failure(user, now, timed_out);
        self.stats.count_connect_failure(why);
        user.state = UserState::ClosingFailedConnect;
        user.iteration = IterationOutcome::Erred;
    }

    /// Resets a socket that the kernel connected to itself (RFC 793 section 3.4, simultaneous
    /// open): no server listens, and the kernel chose the target's own port as the source. An RST
    /// avoids TIME-WAIT, which would keep the server from listening on that port again.
    pub(super) fn reset_self_connection<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let now = conn.now();
        let user = conn.state();
        self.fail_connect(user, now, ConnectFailure::SelfConnected);
        user.conn_status = ConnStatus::ConnectFailed;
        conn.set_deadline(Deadline::Never);
        conn.reset();
    }

    /// Clears the user's state that belonged to the connection: session, channels, refs, probes.
    fn clear_connection_state<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
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

    /// Handles the end of a connection, or of an attempt to open one. Finds out whether it was
    /// expected: then the user continues, else [`Self::apply_on_error`] decides.
    pub(super) fn connection_ended<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        reason: CloseReason,
    ) -> AfterClose {
        let user = conn.state();
        let status = std::mem::take(&mut user.conn_status);
        if !matches!(status, ConnStatus::None | ConnStatus::ConnectFailed) {
            self.stats.counters.connected -= 1;
        }
        self.clear_connection_state(conn);
        let now = conn.now();
        let user = conn.state();
        if user.is_between_iterations() {
            // The user has been stopped.
            return AfterClose::Free;
        }
        match (user.state, reason) {
            (UserState::ClosingFailedConnect | UserState::ClosingAfterError, _) => {
                return self.apply_on_error(conn);
            }
            (_, CloseReason::ConnectFailed(errno)) => {
                if is_short_of_ports(errno) && self.sources.try_another_port(user) {
                    self.advance(conn);
                    return AfterClose::Keep;
                }
                if errno == Errno::CONN_REFUSED {
                    self.stats.incidents.connect_refused(now);
                }
                self.fail_connect(user, now, ConnectFailure::Errno(errno));
                return self.apply_on_error(conn);
            }
            // The connection ended before the answer to the upgrade.
            (UserState::Connecting | UserState::Upgrading, reason) => {
                let why = match reason {
                    CloseReason::Failed(errno) => ConnectFailure::Errno(errno),
                    CloseReason::Panicked => ConnectFailure::Internal,
                    _ => ConnectFailure::Closed,
                };
                self.fail_connect(user, now, why);
                return self.apply_on_error(conn);
            }
            (_, CloseReason::Panicked) => return self.connection_lost(conn, ErrorKind::Internal),
            _ if status == ConnStatus::ErrorCounted => return self.apply_on_error(conn),
            (UserState::Closing, reason) => {
                user.pc += 1;
                user.state = UserState::Yielding;
                // Data that was sent before the close has not arrived.
                if !matches!(reason, CloseReason::Requested | CloseReason::Finished) {
                    return self.connection_lost(conn, ErrorKind::of(reason));
                }
            }
            // After a half-close the server's FIN is expected, unless an answer was to come first.
            (state, CloseReason::Finished)
                if status == ConnStatus::HalfClosed && state != UserState::Expecting => {}
            (_, reason) => return self.connection_lost(conn, ErrorKind::of(reason)),
        }
        self.continue_without_connection(conn)
    }
}

/// Reports whether another source port may succeed.
fn is_short_of_ports(errno: Errno) -> bool {
    errno == Errno::ADDR_IN_USE || errno == Errno::ADDR_NOT_AVAILABLE
}
