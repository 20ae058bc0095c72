//! Failures of a user's steps while its connection is open, and what `on_error` makes of them.

use std::time::Duration;

use throng_base::Instant;
use throng_engine::Deadline;

use super::context::{StepOutcome, UserContext};
use super::error::{ErrorKind, is_step_timeout};
use super::inbox::Inbox;
use super::named;
use super::outcomes;
use super::state::{Link, UserWait};
use super::timing::AnswerTiming;
use super::transactions;
use crate::program::{OnError, Op};

/// Counts an error and skips the present step: an earlier error has taken away what it needs.
pub(crate) fn skip_step(cx: &mut UserContext<'_>, kind: ErrorKind) -> StepOutcome {
    cx.count_error(kind);
    if let Op::ExpectBytes { .. } | Op::ExpectMessage { .. } = cx.op() {
        cx.count(|c| c.messages_failed += 1);
    }
    named::fail(cx);
    transactions::fail(cx, false);
    cx.user.set_erred();
    StepOutcome::Next
}

/// Fails the present step on a connection that is still open: counts the error, then continues
/// with the next step or closes the connection, as `on_error` says.
pub(crate) fn fail_step(cx: &mut UserContext<'_>, kind: ErrorKind) -> StepOutcome {
    fail_step_then(cx, kind, go_on)
}

/// Fails the present step as [`fail_step`] does. A user that continues does so by `go_on`.
pub(crate) fn fail_step_then(
    cx: &mut UserContext<'_>,
    kind: ErrorKind,
    go_on: fn(&mut UserContext<'_>) -> StepOutcome,
) -> StepOutcome {
    cx.count_error(kind);
    outcomes::fail_wait(cx, is_step_timeout(kind));
    cx.user.set_erred();
    let continues = cx.on_error() == OnError::Continue;
    if let Op::ExpectBytes { timeout_ns, .. } | Op::ExpectMessage { timeout_ns, .. } = cx.op()
        && continues
        && kind == ErrorKind::ExpectTimeout
    {
        allow_late_answers(cx, cx.now + Duration::from_nanos(timeout_ns));
    } else {
        cx.user.inbox = None;
    }
    cx.user.clear_unanswered();
    if continues {
        return go_on(cx);
    }
    cx.user.set_wait(UserWait::CloseAfterError);
    cx.wait_until(Deadline::Never);
    cx.close();
    StepOutcome::Wait
}

/// Goes on with the next step, on the same connection.
pub(crate) fn go_on(cx: &mut UserContext<'_>) -> StepOutcome {
    cx.user.set_wait(UserWait::Yield);
    cx.user.intended = cx.now;
    StepOutcome::Next
}

/// Fails something else than the user's present step: with `on_error: continue` the user continues
/// that step, else its connection is closed.
pub(crate) fn fail_beside(cx: &mut UserContext<'_>, kind: ErrorKind) -> StepOutcome {
    if cx.on_error() == OnError::Continue {
        cx.user.set_erred();
        cx.count_error(kind);
        transactions::fail(cx, false);
        return StepOutcome::Wait;
    }
    fail_step(cx, kind)
}

/// Closes an upgraded connection after an error that has been counted.
pub(crate) fn close_faulty(cx: &mut UserContext<'_>) -> StepOutcome {
    cx.user.set_link(Link::Faulty);
    cx.close();
    StepOutcome::Wait
}

/// Gives up on the outstanding answers. They may still arrive until `until`.
fn allow_late_answers(cx: &mut UserContext<'_>, until: Instant) {
    let user = &mut *cx.user;
    let owed_before = user.inbox.take().map_or(0, |inbox| inbox.late_answers);
    let mut inbox = Inbox::new(AnswerTiming::own(cx.now));
    inbox.late_answers = owed_before.saturating_add(user.unanswered.max(1));
    inbox.late_until = until;
    user.inbox = Some(Box::new(inbox));
}
