//! The end of a user's connection, and what `on_error` makes of it.
//!
//! When a connection ends, what the user waits for decides what that means. The first row that
//! fits counts:
//!
//! | the user waits for | its link | reason of the end | meaning |
//! |---|---|---|---|
//! | the end of a connection that an error closes | any | any | the error, which is counted |
//! | any | any | a connect that failed | another source port, or a failed connect |
//! | a connect, an upgrade | any | any other | a failed connect |
//! | any | any | a panic | an internal error |
//! | any | faulty | any | the error, which is counted |
//! | the answer to a request | opened by requests | any | sent again where it may be, or lost |
//! | any other | opened by requests | any | the program goes on |
//! | the close of its program | any | requested, or the server's FIN | the program goes on |
//! | the close of its program | any | any other | lost: what was sent before has not arrived |
//! | anything but an answer | half closed | the server's FIN | the program goes on |
//! | any | any | any | lost |
//!
//! A user that is stopped is removed. After an error, `on_error` decides:
//!
//! | the user waits for | continue | restart | stop |
//! |---|---|---|---|
//! | a pause, a turn of a loop, others | goes on waiting | rests | is removed |
//! | its next turn among the users | runs its op | rests | is removed |
//! | anything else | runs the next op | rests | is removed |

use std::time::Duration;

use throng_driver::Errno;
use throng_engine::{CloseReason, Deadline};

use super::context::{StepOutcome, UserContext};
use super::cues;
use super::error::{ConnectFailure, ErrorKind, end_error, handshake_error};
use super::loops;
use super::outcomes;
use super::record::{Record, Sample};
use super::state::{Link, UserState, UserWait};
use crate::program::{OnError, Op, jittered};
use crate::protocols::MessageForm;
use crate::protocols::session::UserSession;
use crate::steps::connect;

/// Meaning of the end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The program asked for it.
    Planned,
    /// An error ended it, and is counted.
    Counted,
    /// The connect failed.
    ConnectFailed(ConnectFailure),
    /// It ended unexpectedly.
    Lost(ErrorKind),
}

impl Ending {
    /// Returns what the end of a connection means to a user that waits for `wait`.
    pub(crate) fn of(wait: UserWait, link: Link, reason: CloseReason) -> Self {
        match (wait, link, reason) {
            (UserWait::CloseAfterFailedConnect | UserWait::CloseAfterError, ..) => Self::Counted,
            (_, _, CloseReason::ConnectFailed(errno)) => {
                Self::ConnectFailed(ConnectFailure::Errno(errno))
            }
            (
                UserWait::Connect { .. } | UserWait::Upgrade | UserWait::RequestConnect { .. },
                _,
                reason,
            ) => Self::ConnectFailed(match reason {
                CloseReason::Failed(errno) => ConnectFailure::Errno(errno),
                CloseReason::Panicked => ConnectFailure::Internal,
                CloseReason::HandshakeTimeout => ConnectFailure::Tls(ErrorKind::TlsTimeout),
                CloseReason::TransportFailed(error) => ConnectFailure::Tls(handshake_error(error)),
                _ => ConnectFailure::Closed,
            }),
            (_, _, CloseReason::Panicked) => Self::Lost(ErrorKind::Internal),
            (_, Link::Faulty, _) => Self::Counted,
            (UserWait::Reply { .. }, Link::OfRequests, reason) => Self::Lost(end_error(reason)),
            (_, Link::OfRequests, _) => Self::Planned,
            (UserWait::Close, _, CloseReason::Requested | CloseReason::Finished) => Self::Planned,
            (UserWait::Answer { .. }, _, reason) => Self::Lost(end_error(reason)),
            (_, Link::HalfClosed, CloseReason::Finished) => Self::Planned,
            (_, _, reason) => Self::Lost(end_error(reason)),
        }
    }
}

/// Handles the end of a connection, or of an attempt to open one. `text` is what TLS says of its
/// failure.
pub(crate) fn closed(
    cx: &mut UserContext<'_>,
    reason: CloseReason,
    text: Option<&str>,
) -> StepOutcome {
    let link = cx.user.set_link(Link::Uncounted);
    if link != Link::Uncounted {
        cx.count(|c| c.connected -= 1);
    }
    let was_served = cx.user.flags.is_served();
    if was_served {
        cx.user.flags.set_served(false);
        cx.count(|c| c.served -= 1);
    }
    let asked = cx.awaited_op();
    let to_retry = asked.and_then(|op| Some((op, op.retried_from(cx, reason)?)));
    let ended = cx.user.wait().map(|wait| (wait, Ending::of(wait, link, reason)));
    let error = |kind| match (kind, asked) {
        (ErrorKind::ClosedByPeer, Some(op)) => op.closed_error(),
        _ => kind,
    };
    if let (Some((_, Ending::Lost(kind))), None) = (ended, &to_retry) {
        if let Some(op) = asked {
            op.note_part(cx, error(kind));
        }
        outcomes::note_incomplete(cx);
    }
    clear_connection_state(cx);
    if let Some((op, asked_at)) = to_retry {
        return op.retry(cx, asked_at);
    }
    let Some((wait, ending)) = ended else {
        cx.remove();
        return StepOutcome::Wait;
    };
    match ending {
        Ending::Planned => match wait {
            UserWait::RunEnd => StepOutcome::Wait,
            UserWait::Close => go_on(cx, wait, after_close(cx)),
            UserWait::RequestClose { is_done: true } => go_on(cx, wait, StepOutcome::Next),
            _ => go_on(cx, wait, StepOutcome::Again),
        },
        Ending::Counted => apply_on_error(cx, wait),
        Ending::ConnectFailed(why) => {
            if let CloseReason::ConnectFailed(errno) = reason {
                if let Some(flow) = connect::try_another_port(cx, errno) {
                    return flow;
                }
                if errno == Errno::CONN_REFUSED {
                    cx.record(Record::ConnectRefused);
                }
            }
            if is_refused_upgrade(reason) {
                cx.count(|c| c.closed_unserved += 1);
            }
            if let (ConnectFailure::Tls(kind), Some(text)) = (why, text) {
                cx.sample(Sample::TlsFailure(kind, text));
            }
            connect::fail(cx, why);
            apply_on_error(cx, UserWait::CloseAfterFailedConnect)
        }
        Ending::Lost(kind) => {
            if let (ErrorKind::TransportFailed, Some(text)) = (kind, text) {
                cx.sample(Sample::TlsFailure(kind, text));
            }
            cx.count_error(error(kind));
            if matches!(kind, ErrorKind::ClosedByPeer | ErrorKind::ResetByPeer) {
                cx.record(Record::ConnectionLost);
                if !was_served {
                    cx.count(|c| c.closed_unserved += 1);
                }
            }
            cx.user.clear_unanswered();
            apply_on_error(cx, wait)
        }
    }
}

/// Reports whether the server closed or reset a connection that it had accepted, in place of an
/// answer to the upgrade.
fn is_refused_upgrade(reason: CloseReason) -> bool {
    matches!(reason, CloseReason::Finished | CloseReason::Failed(Errno::CONN_RESET))
}

/// Clears the user's state that belonged to the connection: session, channels, refs.
fn clear_connection_state(cx: &mut UserContext<'_>) {
    if cx.protocol().messages == MessageForm::Bytes {
        return;
    }
    *cx.session = UserSession::Unconnected;
    let channels = std::mem::take(&mut cx.user.channels);
    let joined = channels.iter().filter(|channel| channel.joined).count();
    if joined > 0 {
        cx.record(Record::ChannelsLost(joined as u64));
    }
    (cx.user.refs, cx.user.heartbeat) = (0, 0);
}

/// Applies `on_error` to a user whose connection is gone after an error: continues with the next
/// step, rests before a restart, or removes the user.
pub(crate) fn apply_on_error(cx: &mut UserContext<'_>, wait: UserWait) -> StepOutcome {
    outcomes::fail_wait(cx, false);
    cx.user.set_erred();
    let on_error = cx.on_error();
    if on_error == OnError::Continue {
        // A step that needed the connection is over.
        let flow = match wait {
            UserWait::Close => after_close(cx),
            UserWait::Yield | UserWait::CloseAfterError => StepOutcome::Again,
            _ => StepOutcome::Next,
        };
        return go_on(cx, wait, flow);
    }
    loops::count_missed_turns(cx, true);
    outcomes::end_iteration(cx, None);
    if on_error == OnError::Restart && cx.rules.is_scheduled {
        return rest(cx);
    }
    leave(cx)
}

/// Continues a program whose connection is gone. A wait continues; other users go on with `flow`.
fn go_on(cx: &mut UserContext<'_>, wait: UserWait, flow: StepOutcome) -> StepOutcome {
    if let UserWait::Pause | UserWait::Turn { .. } = wait {
        // Closing the socket has cleared the deadline.
        cx.wait_until(Deadline::Exact(cx.user.intended));
        return StepOutcome::Wait;
    }
    if let UserWait::Cue { .. } = wait {
        cues::set_deadline(cx);
        return StepOutcome::Wait;
    }
    // A step that closes the connection of requests before it begins keeps its intended moment.
    if wait != (UserWait::RequestClose { is_done: false }) {
        cx.user.intended = cx.now;
    }
    cx.user.set_wait(UserWait::Yield);
    flow
}

/// Returns the move after a close: the op that follows a `close`; at the end of a program, its end.
fn after_close(cx: &UserContext<'_>) -> StepOutcome {
    if let Op::Close { .. } = cx.op() { StepOutcome::Next } else { StepOutcome::Again }
}

/// Lets a user rest before its next iteration, so that it does not hammer a failing target.
pub(crate) fn rest(cx: &mut UserContext<'_>) -> StepOutcome {
    cx.user.state = UserState::Resting;
    let pause_ns = RESTART_PAUSE.as_nanos() as u64;
    let pause_ns = jittered(pause_ns, RESTART_JITTER, &mut cx.user.prng);
    cx.user.intended = cx.now + Duration::from_nanos(pause_ns);
    cx.record(Record::RestBegun);
    // The next connect's latency counts from this moment, so the deadline is exact.
    cx.wait_until(Deadline::Exact(cx.user.intended));
    StepOutcome::Wait
}

/// Removes a user without a connection.
pub(crate) fn leave(cx: &mut UserContext<'_>) -> StepOutcome {
    let link = cx.user.link();
    cx.user.state = UserState::Stopped { link, is_deaf: false, is_leaving: true };
    cx.remove();
    StepOutcome::Wait
}

/// Pause of a user between an error and its next iteration; the jitter is a share of it.
pub const RESTART_PAUSE: Duration = Duration::from_secs(1);
const RESTART_JITTER: f32 = 0.1;
