//! What the connection of Phoenix Channels receives beside events.

use throng_proto::phoenix::PhoenixPayload;
use throng_proto::phoenix::client::{self, ChannelEnd, PhoenixClientEvent, PushReply};

use super::{heartbeat, request};
use crate::program::IncomingMessage;
use crate::protocols::input::{Receiver, ServerAnswer, ServerFault, UnaskedInput};
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

/// Gives the user what a message of its WebSocket is.
pub(crate) fn message_received(receiver: &mut dyn Receiver, message: IncomingMessage<'_>) {
    let handshake = receiver.user().handshake;
    let decoded = match message {
        IncomingMessage::Text(text) => {
            client::decode_text(receiver.program().handshake(handshake.into()).vsn, text)
        }
        IncomingMessage::Binary(bytes) => client::decode_binary(bytes),
    };
    let event = match decoded {
        Ok(PhoenixClientEvent::Message(event)) => event,
        Ok(PhoenixClientEvent::ChannelEnd(end)) => return receiver.step(channel_end(&end)),
        Ok(PhoenixClientEvent::Reply(reply)) => return reply_received(receiver, &reply),
        Err(_) => return receiver.step(bad_message(message.bytes())),
    };
    let is_probe = match event.payload {
        PhoenixPayload::Json(text) => receiver.takes_probe(text.as_bytes()),
        PhoenixPayload::Binary(bytes) => receiver.takes_probe(bytes),
    };
    // Most users of channels wait for no event: theirs cost no step.
    if !is_probe && receiver.awaits_messages() {
        receiver.step(Input::Message(message));
    }
}

fn reply_received(receiver: &mut dyn Receiver, it: &PushReply<'_>) {
    let number = parse_ref(it.r#ref.as_deref());
    let is_refused = &it.status != "ok";
    let refusal = is_refused.then_some(Sample::Refusal(ErrorKind::ProbeRefused, it));
    if !receiver.takes_probe_answer(number, refusal) && number != 0 {
        receiver.step(reply(number, it));
    }
}

/// Returns the number of a ref; 0 for none, and for a ref that no user sends.
fn parse_ref(r#ref: Option<&str>) -> u32 {
    r#ref.and_then(|text| text.parse().ok()).unwrap_or(0)
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
