//! The beginning and the end of a user's program.

use super::context::{SocketStatus, StepOutcome, UserContext};
use super::ending;
use super::outcomes;
use super::record::Record;
use super::state::{Link, UserState, UserWait};
use crate::program::CloseAction;
use crate::steps::close;

/// Begins an iteration of the program.
pub(crate) fn begin(cx: &mut UserContext<'_>) -> StepOutcome {
    let link = Link::Uncounted;
    cx.user.state = UserState::Running { wait: UserWait::Yield, link, has_erred: false };
    cx.user.clear_unanswered();
    cx.user.inbox = None;
    cx.user.memory.clear_stored();
    cx.record(Record::Begin);
    StepOutcome::Go(cx.rules.program.classes()[usize::from(cx.user.class)].entry)
}

/// Ends the program. Closes an open connection first. In the closed model the next iteration
/// follows, after a rest if there was an error.
pub(crate) fn end(cx: &mut UserContext<'_>) -> StepOutcome {
    if cx.socket != SocketStatus::Absent {
        return close::begin(cx, CloseAction::Normal);
    }
    let UserState::Running { has_erred, .. } = cx.user.state else { return StepOutcome::Wait };
    outcomes::end_iteration(cx, None);
    if !(cx.rules.is_scheduled && cx.rules.begins_again(cx.user.class)) {
        return ending::leave(cx);
    }
    if has_erred { ending::rest(cx) } else { begin(cx) }
}
