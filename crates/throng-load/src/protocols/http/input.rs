//! What a connection of HTTP requests receives.

use throng_proto::http::{HttpEvent, HttpResponse, ResponseError};

use super::exchange;
use crate::protocols::input::{Receiver, ServerAnswer, ServerFault, UnaskedInput};
use crate::user::Input;
use crate::user::context::{StepOutcome, UserContext};

/// Complete answer to a request.
pub(crate) type Answer<'a> = HttpResponse<'a>;
/// Why an answer, which begins with these bytes, cannot be read.
pub(crate) type Fault<'a> = (ResponseError, &'a [u8]);
/// Bytes that answer no request.
pub(crate) type Unasked<'a> = &'a [u8];

/// Gives the user what an event of its session is.
pub(crate) fn received(receiver: &mut dyn Receiver, event: HttpEvent<'_>) {
    receiver.step(match event {
        HttpEvent::Response(response) => Input::Answered(ServerAnswer::Http(response)),
        HttpEvent::Failed(error, head) => Input::Violated(ServerFault::Http((error, head))),
        HttpEvent::Unasked(bytes) => Input::Unasked(UnaskedInput::Http(bytes)),
    });
}

pub(crate) fn answered(cx: &mut UserContext<'_>, response: Answer<'_>) -> StepOutcome {
    exchange::answered(cx, &response)
}

pub(crate) fn violated(cx: &mut UserContext<'_>, (error, head): Fault<'_>) -> StepOutcome {
    exchange::violated(cx, error, head)
}

pub(crate) fn unasked(cx: &mut UserContext<'_>, bytes: Unasked<'_>) -> StepOutcome {
    exchange::unasked(cx, bytes)
}
