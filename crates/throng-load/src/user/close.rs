//! `close`, and the end of a program.

use throng_engine::Deadline;

use super::context::{SocketStatus, UserAction, UserContext};
use super::ending;
use super::flow::Flow;
use super::outcomes;
use super::record::Record;
use super::send;
use super::state::{Link, UserState, Wait};
use crate::program::CloseAction;

/// Closes the connection.
pub(super) fn begin(cx: &mut UserContext<'_>, how: CloseAction) -> Flow {
    if cx.socket == SocketStatus::Absent {
        return Flow::Next;
    }
    match how {
        CloseAction::Half => {
            if let Some(flow) = send::check_has_space(cx) {
                return flow;
            }
            cx.user.set_link(Link::HalfClosed);
            cx.act(UserAction::HalfClose);
            return Flow::Next;
        }
        CloseAction::Normal => close_in_order(cx),
        CloseAction::Reset => cx.act(UserAction::Reset),
    }
    wait_for_close(cx)
}

/// Ends the program. Closes an open connection first.
pub(super) fn end(cx: &mut UserContext<'_>) -> Flow {
    if cx.socket != SocketStatus::Absent {
        close_in_order(cx);
        return wait_for_close(cx);
    }
    let UserState::Running { has_erred, .. } = cx.user.state else { return Flow::Wait };
    outcomes::end_iteration(cx, None);
    if !(cx.rules.is_closed_model && cx.rules.is_scheduled) {
        return ending::leave(cx);
    }
    if has_erred { ending::rest(cx) } else { begin_iteration(cx) }
}

/// Begins an iteration of the program.
pub(super) fn begin_iteration(cx: &mut UserContext<'_>) -> Flow {
    let link = Link::Uncounted;
    cx.user.state = UserState::Running { wait: Wait::Yield, link, has_erred: false };
    cx.user.clear_unanswered();
    cx.user.inbox = None;
    cx.record(Record::Begin);
    Flow::Go(cx.rules.program.classes()[usize::from(cx.user.class)].entry)
}

/// Closes the connection in order. A WebSocket closes when the server has answered the close frame
/// or the close times out.
fn close_in_order(cx: &mut UserContext<'_>) {
    if !cx.send_close_frame() {
        cx.act(UserAction::Close);
    }
}

fn wait_for_close(cx: &mut UserContext<'_>) -> Flow {
    cx.user.set_wait(Wait::Close);
    cx.wait_until(Deadline::Never);
    Flow::Wait
}
