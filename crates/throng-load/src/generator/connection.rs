//! The beginning and the end of a user's connection, and what becomes of the user when it is gone.

use std::time::Duration;

use throng_driver::{Driver, Errno};
use throng_engine::{After, CloseReason, Conn, Deadline};

use super::session::UserSession;
use super::slate::ConnectFailure;
use super::timing::Timing;
use super::user::{Doing, Iteration, Standing};
use super::{ErrorKind, Generator, Mail, RESTART_JITTER, RESTART_PAUSE, Stage};
use crate::program::Protocol;
use crate::scenario::OnError;

impl Generator {
    /// The connect has succeeded.
    pub(super) fn established<D: Driver<Mail = Mail>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        timing: Timing,
    ) {
        let now = conn.now();
        let user = conn.state();
        let from = std::mem::replace(&mut user.intended, now);
        user.forget_question();
        user.standing = Standing::Connected;
        let is_measured = self.stage != Stage::Leaving;
        self.slate.connected(is_measured.then_some((from, timing)), user.class);
        self.slate.incidents.established(now);
        if user.doing == Doing::Connecting {
            user.pc += 1;
            conn.set_deadline(Deadline::Never);
            self.advance(conn);
        }
    }

    /// What belonged to the connection has gone with it.
    fn disconnected<D: Driver<Mail = Mail>>(&mut self, conn: &mut Conn<'_, D, Self>) {
        if self.config.program.protocol() == Protocol::Tcp {
            return;
        }
        *conn.session().0 = UserSession::Raw;
        let user = conn.state();
        let channels = std::mem::take(&mut user.channels);
        let joined = channels.iter().filter(|channel| channel.joined).count();
        self.slate.counters.joined -= joined as u64;
        (user.refs, user.asked, user.heartbeat) = (0, 0, 0);
        if let Some(prober) = &mut self.prober {
            prober.leave(user, &mut self.slate);
        }
    }

    /// What becomes of a user whose iteration failed and whose connection is gone.
    pub(super) fn failed<D: Driver<Mail = Mail>>(&mut self, conn: &mut Conn<'_, D, Self>) -> After {
        let user = conn.state();
        user.iteration = Iteration::Erred;
        let on_error = self.on_error(user.class);
        if on_error == OnError::Continue {
            // The step that needed the connection is over; one that only waits goes on waiting.
            let needs_connection = matches!(
                user.doing,
                Doing::Connecting
                    | Doing::GivingUp
                    | Doing::Expecting
                    | Doing::Asking
                    | Doing::Blocked
                    | Doing::Staying
            );
            user.pc += u32::from(needs_connection);
            if needs_connection {
                user.doing = Doing::Yielding;
            }
            return self.go_on_without_connection(conn);
        }
        self.iteration_over(user);
        if on_error == OnError::Restart && self.stage == Stage::Running {
            self.rest(conn);
            return After::Keep;
        }
        After::Free
    }

    /// The connection is gone, and the user goes on.
    fn go_on_without_connection<D: Driver<Mail = Mail>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) -> After {
        let now = conn.now();
        let user = conn.state();
        match user.doing {
            // The end of the socket has taken the deadline with it.
            Doing::Waiting => {
                let until = user.intended;
                conn.set_deadline(Deadline::Exact(until));
            }
            Doing::Staying => {}
            _ => {
                user.intended = now;
                self.advance(conn);
            }
        }
        if conn.state().doing == Doing::Stopping { After::Free } else { After::Keep }
    }

    /// Lets a user rest before it tries again, so that a target that refuses is not hammered.
    pub(super) fn rest<D: Driver<Mail = Mail>>(&mut self, conn: &mut Conn<'_, D, Self>) {
        let now = conn.now();
        let user = conn.state();
        user.doing = Doing::Resting;
        let nanos = crate::program::jittered(
            RESTART_PAUSE.as_nanos() as u64,
            RESTART_JITTER,
            &mut user.prng,
        );
        user.intended = now + Duration::from_nanos(nanos);
        let until = user.intended;
        self.slate.resting += 1;
        conn.set_deadline(Deadline::Coarse(until));
    }

    /// The connection is gone, or could not be opened.
    pub(super) fn connection_ended<D: Driver<Mail = Mail>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        reason: CloseReason,
    ) -> After {
        let user = conn.state();
        let standing = std::mem::take(&mut user.standing);
        if !matches!(standing, Standing::None | Standing::Refused) {
            self.slate.counters.connected -= 1;
        }
        self.disconnected(conn);
        let user = conn.state();
        match (user.doing, reason) {
            (Doing::Stopping, _) => {
                self.iteration_over(user);
                return After::Free;
            }
            (Doing::GivingUp, _) => {
                if standing != Standing::Refused {
                    self.slate.connect_failed(ConnectFailure::Timeout);
                }
                return self.failed(conn);
            }
            (Doing::Failing, _) => return self.failed(conn),
            (_, CloseReason::ConnectFailed(errno)) => {
                if is_short_of_ports(errno) && self.sources.tries_again(user) {
                    self.advance(conn);
                    return After::Keep;
                }
                if errno == Errno::CONN_REFUSED {
                    self.slate.incidents.refused(conn.now());
                }
                self.slate.connect_failed(ConnectFailure::Errno(errno));
                return self.failed(conn);
            }
            (_, CloseReason::Panicked) => return self.lost(conn, ErrorKind::Internal),
            // The connection went before the upgrade was answered.
            (Doing::Connecting, reason) => {
                self.slate.connect_failed(match reason {
                    CloseReason::Failed(errno) => ConnectFailure::Errno(errno),
                    _ => ConnectFailure::Closed,
                });
                return self.failed(conn);
            }
            _ if standing == Standing::BrokenOff => return self.failed(conn),
            (Doing::Closing, reason) => {
                user.pc += 1;
                user.doing = Doing::Yielding;
                // What was sent before the close did not arrive.
                if !matches!(reason, CloseReason::Asked | CloseReason::Finished) {
                    return self.lost(conn, ErrorKind::of(reason));
                }
            }
            // After a half-close the other end's FIN is what was to come, unless an answer was to come before.
            (doing, CloseReason::Finished)
                if standing == Standing::HalfClosed && doing != Doing::Expecting => {}
            (_, reason) => return self.lost(conn, ErrorKind::of(reason)),
        }
        self.go_on_without_connection(conn)
    }
}

/// Whether another source port might do.
fn is_short_of_ports(errno: Errno) -> bool {
    errno == Errno::ADDR_IN_USE || errno == Errno::ADDR_NOT_AVAILABLE
}
