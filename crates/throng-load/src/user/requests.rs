//! Requests of protocols: what all of them do that ask the server something and wait for the
//! answer.
//!
//! An op sends its request and calls [`sent`] and [`await_answer`]. When the answer arrives, its
//! protocol finds the op by [`UserContext::asked`], calls [`arrived`], and then [`succeed`], or
//! [`fail_with`] where the answer is not the expected one. When none arrives in time, it calls
//! [`failure::fail_step`]. Which operation of the table is counted and timed is said by the
//! `latency` of the op's facts.

use std::time::Duration;

use throng_engine::Deadline;

use super::context::{StepOutcome, UserAction, UserContext};
use super::error::ErrorKind;
use super::record::{Record, Sample};
use super::state::{Link, Packed, UserWait};
use super::{failure, named};
use crate::program::IncomingMessage;

/// Counts the request that the present op has sent.
pub(crate) fn sent(cx: &mut UserContext<'_>) {
    let operation = cx.rules.program.latency_kind_at(cx.user.pc());
    if let Some(counting) = operation.and_then(|operation| operation.counting()) {
        cx.count(counting.started);
    }
}

/// Waits for the answer to what the present op has sent, which its protocol knows by `number`.
pub(crate) fn await_answer(
    cx: &mut UserContext<'_>,
    number: u32,
    timeout: Duration,
) -> StepOutcome {
    cx.user.set_wait(UserWait::Reply { number: Packed::new(number) });
    cx.wait_until(Deadline::Coarse(cx.now + timeout));
    StepOutcome::Wait
}

/// Notes that the answer to the present op has arrived, right or wrong.
pub(crate) fn arrived(cx: &mut UserContext<'_>) {
    let (from, timing) = (cx.user.intended, cx.timing());
    cx.record(Record::Replied { from, timing });
}

/// Completes the present op: its answer is as expected.
pub(crate) fn succeed(cx: &mut UserContext<'_>) -> StepOutcome {
    let (from, timing) = (cx.user.intended, cx.timing());
    if let Some(operation) = cx.rules.program.latency_kind_at(cx.user.pc()) {
        cx.record(Record::Done { operation, from, timing });
        named::succeed(cx, Some(from), timing);
    }
    cx.user.set_wait(UserWait::Yield);
    cx.user.intended = cx.now;
    cx.wait_until(Deadline::Never);
    StepOutcome::Next
}

/// Fails the present op: `got` arrived in place of the expected answer.
pub(crate) fn fail_with(
    cx: &mut UserContext<'_>,
    kind: ErrorKind,
    got: IncomingMessage<'_>,
) -> StepOutcome {
    cx.sample(Sample::Mismatch { kind, got, came_first: false });
    failure::fail_step(cx, kind)
}

/// Closes a connection that requests have opened. The user then goes on: with the next op if the
/// present one `is_done`, else with the present one.
pub(crate) fn close_before(cx: &mut UserContext<'_>, is_done: bool) {
    cx.user.set_wait(UserWait::RequestClose { is_done });
    cx.wait_until(Deadline::Never);
    cx.close();
}

/// Handles the server's FIN on a connection that requests have opened. It may end an answer; any
/// other answer is missing, and between two answers it means nothing. Returns false for any other
/// connection.
pub(crate) fn peer_finished(cx: &mut UserContext<'_>) -> bool {
    if cx.user.link() != Link::OfRequests {
        return false;
    }
    // A complete answer closes the connection, and goes on when that is done.
    if !cx.awaited_op().is_some_and(|op| op.answered_by_end(cx)) {
        // The end of the connection finds what has arrived of it.
        cx.act(UserAction::CloseFinished);
    }
    true
}
