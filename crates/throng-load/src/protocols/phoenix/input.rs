//! What the connection of Phoenix Channels receives beside events.

use throng_proto::phoenix::client::{ChannelEnd, PushReply};

use super::{heartbeat, request};
use crate::protocols::input::{ServerAnswer, ServerFault, UnaskedInput};
use crate::user::Input;
use crate::user::context::{StepOutcome, UserContext};
use crate::user::error::ErrorKind;
use crate::user::failure;
use crate::user::record::Sample;

/// Reply to the request with this ref.
pub(crate) type Answer<'a> = (u32, &'a PushReply<'a>);
/// Message that is not one of Phoenix Channels.
pub(crate) type Fault<'a> = &'a [u8];
/// End of a channel by the server.
pub(crate) type Unasked<'a> = &'a ChannelEnd<'a>;

/// Returns the input that the reply to the request `number` is.
pub(crate) fn reply<'a>(number: u32, reply: &'a PushReply<'a>) -> Input<'a> {
    Input::Answered(ServerAnswer::Phoenix((number, reply)))
}

/// Returns the input that a message is which is not one of Phoenix Channels.
pub(crate) fn bad_message(message: &[u8]) -> Input<'_> {
    Input::Violated(ServerFault::Phoenix(message))
}

/// Returns the input that the end of a channel is.
pub(crate) fn channel_end<'a>(end: &'a ChannelEnd<'a>) -> Input<'a> {
    Input::Unasked(UnaskedInput::Phoenix(end))
}

pub(crate) fn answered(cx: &mut UserContext<'_>, (number, reply): Answer<'_>) -> StepOutcome {
    if number == cx.user.heartbeat {
        return heartbeat::answered(cx);
    }
    request::reply_received(cx, number, reply)
}

pub(crate) fn violated(cx: &mut UserContext<'_>, message: Fault<'_>) -> StepOutcome {
    if cx.user.is_running() {
        cx.sample(Sample::BadMessage(message));
        cx.count_error(ErrorKind::BadMessage);
    }
    failure::close_faulty(cx)
}

pub(crate) fn unasked(cx: &mut UserContext<'_>, end: Unasked<'_>) -> StepOutcome {
    request::channel_ended(cx, end)
}
