//! Outcomes of what a user waits for: it fails, or the user is stopped while it waits.
//!
//! Successes are recorded where they happen. This file counts failures and waits, so that the sums
//! that [`LoadCounters`](throng_measure::LoadCounters) names add up. A stopped user is counted when
//! all users begin to leave, or when the schedule or a control command stops it. Nothing is counted
//! for it after that.

use throng_base::Instant;
use throng_measure::{LoadCounters, Operation, OperationCounting};

use super::context::{Rules, UserAction, UserContext};
use super::loops;
use super::named;
use super::record::{IterationEnd, Record};
use super::state::{User, UserState, UserWait};
use super::trace::TraceEvent;
use super::transactions;
use crate::program::{Op, Program};

/// Response that a user waits for from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerWait {
    /// An established connection; for a WebSocket, TCP's part of it.
    Connect,
    /// The answer to its upgrade request.
    Upgrade,
    /// The answer that its `expect` describes, or that to its request.
    Answer(Operation),
    /// What its `receive` describes, or a pong. It is no response of the server's program, and
    /// counts for the step's name only.
    Unasked,
    /// The connection for its request.
    RequestConnect(Operation),
    /// Buffer space, to send more.
    SendSpace,
}

impl ServerWait {
    /// Reports whether the server's program must answer: TCP alone does not end the wait.
    fn is_for_answer(self) -> bool {
        match self {
            Self::Upgrade | Self::Answer(_) => true,
            Self::Connect | Self::RequestConnect(_) | Self::Unasked | Self::SendSpace => false,
        }
    }

    /// Returns the server's response that a user waits for.
    fn of(user: &User, program: &Program) -> Option<Self> {
        let operation = || program.latency_kind_at(user.pc());
        Some(match user.wait()? {
            UserWait::Connect { .. } => Self::Connect,
            UserWait::Upgrade => Self::Upgrade,
            UserWait::Answer { .. } if program.is_receive(user.pc()) => Self::Unasked,
            UserWait::Pong => Self::Unasked,
            UserWait::Answer { .. } | UserWait::Reply { .. } => Self::Answer(operation()?),
            UserWait::RequestConnect { .. } => Self::RequestConnect(operation()?),
            // A half-close that waits sends no message.
            UserWait::SendSpace => match program.op(user.pc()) {
                Op::Close { .. } => return None,
                _ => Self::SendSpace,
            },
            UserWait::Pause
            | UserWait::Cue { .. }
            | UserWait::Turn { .. }
            | UserWait::RunEnd
            | UserWait::Yield
            | UserWait::Close
            | UserWait::RequestClose { .. }
            | UserWait::CloseAfterFailedConnect
            | UserWait::CloseAfterError => return None,
        })
    }
}

/// Counts the step that a user waits in as failed. With `timed_out`, the server had all the time
/// that it was given, and the wait is recorded. A failed connect is also counted by its
/// [`ConnectFailure`](super::ConnectFailure).
pub(crate) fn fail_wait(cx: &mut UserContext<'_>, timed_out: bool) {
    transactions::fail(cx, timed_out);
    let Some(wait) = ServerWait::of(cx.user, cx.rules.program) else { return };
    end_handshake(cx, |c| c.tls_failed += 1, timed_out);
    match wait {
        ServerWait::Connect | ServerWait::Unasked => {}
        ServerWait::Upgrade => cx.count(|c| c.upgrades_failed += 1),
        ServerWait::Answer(operation) | ServerWait::RequestConnect(operation) => {
            count(cx, operation, |counting| counting.failed);
        }
        ServerWait::SendSpace => cx.count(|c| c.sends_failed += 1),
    }
    named::fail(cx);
    if timed_out {
        note_incomplete(cx);
        match (wait.is_for_answer(), cx.user.flags.is_served()) {
            (false, _) => {}
            (true, false) => cx.count(|c| c.timeouts_unserved += 1),
            (true, true) => cx.count(|c| c.timeouts_served += 1),
        }
        record_unanswered(cx, wait);
    }
}

/// Counts a message of which only a part has arrived on the user's WebSocket.
pub(crate) fn note_incomplete(cx: &mut UserContext<'_>) {
    if cx.session.client().is_some_and(|client| client.unfinished_bytes().is_some()) {
        cx.count(|c| c.messages_incomplete += 1);
    }
}

/// Counts the step that a user waits in as cut off.
fn cut_off_wait(cx: &mut UserContext<'_>) {
    let Some(wait) = ServerWait::of(cx.user, cx.rules.program) else { return };
    end_handshake(cx, |c| c.tls_waiting += 1, true);
    match wait {
        ServerWait::Connect => cx.count(|c| c.connects_waiting += 1),
        ServerWait::Upgrade => cx.count(|c| {
            c.connects_waiting += 1;
            c.upgrades_waiting += 1;
        }),
        ServerWait::Answer(operation) => count(cx, operation, |counting| counting.waiting),
        ServerWait::Unasked => {}
        ServerWait::RequestConnect(operation) => {
            cx.count(|c| {
                c.connects_waiting += 1;
                c.http_connects_waiting += 1;
            });
            count(cx, operation, |counting| counting.waiting);
        }
        ServerWait::SendSpace => cx.count(|c| c.sends_waiting += 1),
    }
    named::cut_off(cx);
    record_unanswered(cx, wait);
}

/// Counts the end of a handshake of TLS without success, if the user is in one. A wait without an
/// answer is recorded.
fn end_handshake(cx: &mut UserContext<'_>, count: fn(&mut LoadCounters), is_unanswered: bool) {
    if !cx.user.flags.is_opening() {
        return;
    }
    cx.count(count);
    if is_unanswered {
        let (kind, from) = (Some(Operation::Tls), cx.user.message_from);
        cx.record(Record::Unanswered { kind, is_tcp_part: false, from });
    }
}

/// Counts an end of an operation, if it is counted.
fn count(
    cx: &mut UserContext<'_>,
    operation: Operation,
    which: fn(OperationCounting) -> fn(&mut LoadCounters),
) {
    if let Some(counting) = operation.counting() {
        cx.count(which(counting));
    }
}

/// Records a wait that ended without an answer.
fn record_unanswered(cx: &mut UserContext<'_>, wait: ServerWait) {
    let from = cx.user.waiting_from(cx.rules.program).unwrap_or(cx.user.intended);
    if wait != ServerWait::Unasked {
        let program = cx.rules.program;
        let is_tcp_part = wait == ServerWait::Connect
            && !cx.user.flags.is_opening()
            && program.protocol().handshake.is_some();
        let kind = program.latency_kind_at(cx.user.pc());
        cx.record(Record::Unanswered { kind, is_tcp_part, from });
    }
    named::record_unanswered(cx, from);
}

/// Counts a user that is stopped: the step that it waits in, and the end of its iteration. Does
/// nothing the second time.
pub(crate) fn stop(cx: &mut UserContext<'_>) {
    let UserState::Running { wait, link, has_erred } = cx.user.state else { return };
    cut_off_wait(cx);
    transactions::cut_off(cx);
    let failed = matches!(wait, UserWait::CloseAfterError | UserWait::CloseAfterFailedConnect);
    let is_done = is_done(cx.user, cx.rules, cx.now);
    if let UserWait::Cue { .. } = wait {
        loops::delay(cx, cx.now.since(cx.user.intended));
    }
    loops::count_missed_turns(cx, failed);
    let is_cut = !has_erred && !is_done;
    end_iteration(cx, is_cut.then_some(IterationEnd::Cut));
    let is_deaf = cx.user.is_deaf();
    cx.user.state = UserState::Stopped { link, is_deaf, is_leaving: false };
}

/// Records the end of a running user's iteration: `end`, or the end of its program.
pub(crate) fn end_iteration(cx: &mut UserContext<'_>, end: Option<IterationEnd>) {
    let UserState::Running { has_erred, .. } = cx.user.state else { return };
    let own = if has_erred { IterationEnd::Failed } else { IterationEnd::Finished };
    if cx.is_traced {
        let values = TraceEvent::Stored(cx.user.memory.stored());
        (cx.actions)(UserAction::Trace(cx.user.pc(), values));
    }
    cx.record(Record::End(end.unwrap_or(own)));
}

/// Reports whether a user only waits for the end of the run: it is in `stay`, or its last loop is
/// endless and the next turn is not due.
pub(crate) fn is_done(user: &User, rules: Rules<'_>, now: Instant) -> bool {
    match user.wait() {
        Some(UserWait::RunEnd) => true,
        Some(UserWait::Turn { index }) => {
            user.intended > now.min(rules.schedule_over_at)
                && rules.program.loop_at(index.get()).is_endless()
        }
        _ => false,
    }
}
