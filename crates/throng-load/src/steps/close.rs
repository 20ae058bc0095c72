//! `close`: closes the connection, or its sending side.

use super::prelude::*;
use super::send;
use crate::program::CloseAction;
use crate::protocols::MessageForm;
use crate::user::context::{SocketStatus, UserAction};
use crate::user::state::Link;

pub(super) const KIND: StepKind =
    StepKind::new("close", "close: reset", StepForm::OptionalValue(read));

#[derive(Debug)]
struct Close(CloseAction);

impl Action for Close {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        if !flow.require_connection() {
            return flow.disconnect();
        }
        match self.0 {
            CloseAction::Half if flow.is_half_closed() => {
                flow.error("the sending side is already closed", "remove this");
            }
            CloseAction::Half => flow.half_close(),
            CloseAction::Normal | CloseAction::Reset => flow.disconnect(),
        }
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        compiler.push(Op::Close { how: self.0 }, OpFacts::of_role(OpRole::Closes(self.0)));
    }
}

fn read(reader: &mut Reader<'_>, value: Option<&Node>) -> Option<Box<dyn Action>> {
    let Some(node) = value else { return Some(Box::new(Close(CloseAction::Normal))) };
    let known = [
        ("normal", CloseAction::Normal),
        ("reset", CloseAction::Reset),
        ("half", CloseAction::Half),
    ];
    let how = reader.one_of(node, "way to close", &known)?;
    if how == CloseAction::Half && reader.protocol.messages != MessageForm::Bytes {
        let label = "use `normal` or `reset`; after a close frame nothing is sent or read";
        reader.error(node.span.clone(), "a WebSocket cannot be half-closed", label);
        return None;
    }
    Some(Box::new(Close(how)))
}

/// Closes the connection. A WebSocket closes when the server has answered the close frame or the
/// close times out.
pub(crate) fn begin(cx: &mut UserContext<'_>, how: CloseAction) -> StepOutcome {
    if cx.socket == SocketStatus::Absent {
        return StepOutcome::Next;
    }
    match how {
        CloseAction::Half => {
            if let Some(outcome) = send::check_has_space(cx) {
                return outcome;
            }
            cx.user.set_link(Link::HalfClosed);
            cx.act(UserAction::HalfClose);
            return StepOutcome::Next;
        }
        CloseAction::Normal if cx.send_close_frame() => {}
        CloseAction::Normal => cx.act(UserAction::Close),
        CloseAction::Reset => cx.act(UserAction::Reset),
    }
    cx.user.set_wait(UserWait::Close);
    cx.wait_until(Deadline::Never);
    StepOutcome::Wait
}
