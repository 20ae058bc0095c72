//! What a WebSocket receives beside messages.

use std::convert::Infallible;

use throng_proto::websocket::Violation;

use super::ping;
use crate::protocols::input::{ServerAnswer, ServerFault};
use crate::steps::connect;
use crate::user::Input;
use crate::user::context::{StepOutcome, UserAction, UserContext};

/// Payload of a pong.
pub(crate) type Answer<'a> = &'a [u8];
/// Violation of the protocol. In the answer to the upgrade, with the answer's first bytes.
pub(crate) type Fault<'a> = (Violation, Option<&'a [u8]>);
pub(crate) type Unasked<'a> = Infallible;

/// Returns the input that a pong is.
pub(crate) fn pong(payload: &[u8]) -> Input<'_> {
    Input::Answered(ServerAnswer::Ws(payload))
}

/// Returns the input that a violation is, in the answer to the upgrade if its `head` is known.
pub(crate) fn violation(violation: Violation, head: Option<&[u8]>) -> Input<'_> {
    Input::Violated(ServerFault::Ws((violation, head)))
}

pub(crate) fn answered(cx: &mut UserContext<'_>, payload: Answer<'_>) -> StepOutcome {
    ping::pong_received(cx, payload)
}

pub(crate) fn violated(cx: &mut UserContext<'_>, (violation, head): Fault<'_>) -> StepOutcome {
    if cx.user.is_deaf() {
        return StepOutcome::Wait;
    }
    if !cx.user.is_running() {
        cx.act(UserAction::Close);
        return StepOutcome::Wait;
    }
    connect::violated(cx, violation, head)
}

pub(crate) fn unasked(_: &mut UserContext<'_>, unasked: Unasked<'_>) -> StepOutcome {
    match unasked {}
}
