//! Waits of users for one another: `barrier`, `signal` and `wait_for`.
//!
//! A user that waits is on a list of its core, which knows it by a ticket. However the wait ends,
//! [`settle`] takes the user off the list. `intended` is the moment at which the wait began.

use std::time::Duration;

use throng_base::Instant;
use throng_engine::Deadline;

use super::context::{SocketStatus, StepOutcome, UserContext};
use super::error::ErrorKind;
use super::record::Record;
use super::state::{Packed, UserWait};
use super::{ending, failure, loops, transactions};
use crate::cues::CueAnswer;
use crate::program::{OnError, Op};

/// A wait for other users.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CueWait {
    cue: u16,
    ticket: u32,
    /// Beginning of the wait.
    from: Instant,
}

/// Begins a wait at a barrier, or for a cue.
pub(crate) fn begin(cx: &mut UserContext<'_>, cue: u16) -> StepOutcome {
    match cx.cues.arrive(cue, cx.index, cx.now) {
        CueAnswer::Passes(at) => {
            cx.user.intended = cx.user.intended.max(at);
            StepOutcome::Next
        }
        CueAnswer::Opens => {
            cx.record(Record::CueOpened { cue });
            cx.user.intended = cx.user.intended.max(cx.now);
            StepOutcome::Next
        }
        CueAnswer::Waits { ticket, waiting } => {
            cx.user.set_wait(UserWait::Cue { ticket: Packed::new(ticket) });
            cx.user.intended = cx.now;
            cx.count(|c| {
                c.cue_waits += 1;
                c.cue_waiting += 1;
            });
            cx.record(Record::CueWaitBegun { cue, waiting });
            set_deadline(cx);
            StepOutcome::Wait
        }
    }
}

/// Raises a cue.
pub(crate) fn signal(cx: &mut UserContext<'_>, cue: u16) -> StepOutcome {
    if cx.cues.raise(cue, cx.now) {
        cx.record(Record::CueOpened { cue });
    }
    StepOutcome::Next
}

/// Sets the deadline of the present wait.
pub(crate) fn set_deadline(cx: &mut UserContext<'_>) {
    let deadline = match cx.op() {
        Op::AwaitCue { timeout_ns: u64::MAX, .. } => Deadline::Never,
        Op::AwaitCue { timeout_ns, .. } => {
            Deadline::Coarse(cx.user.intended + Duration::from_nanos(timeout_ns))
        }
        _ => return,
    };
    cx.wait_until(deadline);
}

/// Lets a user go on that waits with `ticket`: what it waits for has happened at `at`.
pub(crate) fn opened(cx: &mut UserContext<'_>, ticket: u32, at: Instant) -> StepOutcome {
    let awaited = UserWait::Cue { ticket: Packed::new(ticket) };
    if cx.user.wait() != Some(awaited) {
        return StepOutcome::Wait;
    }
    cx.record(Record::Late(at));
    go_on_at(cx, at)
}

/// Fails a wait whose time is over.
pub(crate) fn timed_out(cx: &mut UserContext<'_>, ticket: u32) -> StepOutcome {
    let Op::AwaitCue { cue, .. } = cx.op() else { return StepOutcome::Wait };
    if !cx.cues.leave(cue, ticket) {
        // Its group goes on: it will hear so in a moment.
        return StepOutcome::Wait;
    }
    if cx.on_error() == OnError::Continue {
        // Answers that are outstanding remain so: the server has no part in this error.
        cx.count_error(ErrorKind::CueTimeout);
        transactions::fail(cx, false);
        cx.user.set_erred();
        return go_on_at(cx, cx.now);
    }
    if cx.socket == SocketStatus::Absent {
        cx.count_error(ErrorKind::CueTimeout);
        return ending::apply_on_error(cx, UserWait::CloseAfterError);
    }
    failure::fail_step(cx, ErrorKind::CueTimeout)
}

fn go_on_at(cx: &mut UserContext<'_>, at: Instant) -> StepOutcome {
    loops::delay(cx, at.since(cx.user.intended));
    cx.user.set_wait(UserWait::Yield);
    cx.user.intended = at;
    cx.wait_until(Deadline::Never);
    StepOutcome::Next
}

/// Returns the user's wait for others, if it is in one.
pub(crate) fn present(cx: &UserContext<'_>) -> Option<CueWait> {
    let Some(UserWait::Cue { ticket }) = cx.user.wait() else { return None };
    let Op::AwaitCue { cue, .. } = cx.op() else { return None };
    Some(CueWait { cue, ticket: ticket.get(), from: cx.user.intended })
}

/// Ends `wait` in the core's list and in the counters, if an input has ended it. With `is_cut`, the
/// end of the run did: the user counts as waiting still.
pub(crate) fn settle(cx: &mut UserContext<'_>, wait: CueWait, is_cut: bool) {
    if present(cx).is_some_and(|present| present.ticket == wait.ticket) {
        return;
    }
    let CueWait { cue, ticket, from } = wait;
    cx.cues.leave(cue, ticket);
    cx.record(match is_cut {
        true => Record::CueWaitCut { cue, from },
        false => Record::CueWaitEnded { cue, from },
    });
}
