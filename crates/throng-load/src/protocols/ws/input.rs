//! What a WebSocket receives beside messages.

use throng_proto::http::Response;
use throng_proto::websocket::{ClientEvent, DeflateAgreement, Violation};

use super::ping;
use super::session::WebSocketEvent;
use crate::program::IncomingMessage;
use crate::protocols::input::{self, Receiver, ServerAnswer, ServerFault, UnaskedInput};
use crate::protocols::phoenix::heartbeat;
use crate::steps::connect;
use crate::user::context::{StepOutcome, UserAction, UserContext};
use crate::user::error::ConnectFailure;
use crate::user::failure;
use crate::user::record::{Record, Sample};
use crate::user::state::UserWait;
use crate::user::{Input, Payload, TraceEvent};

/// Answer of the server's WebSocket.
#[derive(Clone, Debug)]
pub(crate) enum Answer<'a> {
    /// The payload of a pong.
    Pong(&'a [u8]),
    /// The consent to the upgrade, and to compression as far as it was offered.
    Upgraded(Option<DeflateAgreement>),
    /// Another HTTP status, and the part of the body that came with it.
    Refused(Response<'a>, &'a [u8]),
}

/// Violation of the protocol. In the answer to the upgrade, with the answer's first bytes.
pub(crate) type Fault<'a> = (Violation, Option<&'a [u8]>);

/// What a WebSocket receives unasked.
#[derive(Clone, Debug)]
pub(crate) enum Unasked<'a> {
    /// A close frame, with this code and reason.
    Closed(Option<u16>, &'a str),
    /// The moment of the next heartbeat.
    HeartbeatDue,
}

impl<'a> From<Answer<'a>> for Input<'a> {
    fn from(answer: Answer<'a>) -> Self {
        Self::Answered(ServerAnswer::Ws(answer))
    }
}

impl<'a> From<Unasked<'a>> for Input<'a> {
    fn from(unasked: Unasked<'a>) -> Self {
        Self::Unasked(UnaskedInput::Ws(unasked))
    }
}

/// Returns the input that a violation is, in the answer to the upgrade if its `head` is known.
pub(crate) fn violation(violation: Violation, head: Option<&[u8]>) -> Input<'_> {
    Input::Violated(ServerFault::Ws((violation, head)))
}

/// Gives the user what an event of its WebSocket is.
pub(crate) fn received(receiver: &mut dyn Receiver, event: WebSocketEvent<'_>) {
    match event {
        WebSocketEvent::Client(ClientEvent::Text(text)) => {
            count(receiver, IncomingMessage::Text(text));
        }
        WebSocketEvent::Client(ClientEvent::Binary(bytes)) => {
            count(receiver, IncomingMessage::Binary(bytes));
        }
        WebSocketEvent::Client(ClientEvent::Ping(_)) => {
            receiver.trace(TraceEvent::Received(Payload::Control("ping")));
            receiver.trace(TraceEvent::Sent(Payload::Control("pong")));
        }
        WebSocketEvent::Client(ClientEvent::Pong(payload)) => {
            receiver.trace(TraceEvent::Received(Payload::Control("pong")));
            receiver.step(Answer::Pong(payload).into());
        }
        WebSocketEvent::Client(ClientEvent::Opened { deflate, .. }) => {
            let answer = Payload::Control("HTTP/1.1 101 Switching Protocols");
            receiver.trace(TraceEvent::Received(answer));
            if let Some(agreed) = deflate {
                receiver.trace(TraceEvent::Received(Payload::Deflate(agreed)));
            }
            receiver.step(Answer::Upgraded(deflate).into());
        }
        WebSocketEvent::Client(ClientEvent::Refused(answer)) => {
            receiver.step(Answer::Refused(answer, &[]).into());
        }
        WebSocketEvent::Client(ClientEvent::Closed { code, reason }) => {
            receiver.step(Unasked::Closed(code, reason).into());
        }
        WebSocketEvent::Client(ClientEvent::Failed(found)) => receiver.step(violation(found, None)),
        WebSocketEvent::UpgradeViolated(found, head) => {
            receiver.step(violation(found, Some(&head)));
        }
        WebSocketEvent::UpgradeRefused(answer, body) => {
            receiver.step(Answer::Refused(answer, body).into());
        }
        WebSocketEvent::HeartbeatDue => receiver.step(Unasked::HeartbeatDue.into()),
    }
}

/// Counts a message and gives it to the protocol of the user.
fn count(receiver: &mut dyn Receiver, message: IncomingMessage<'_>) {
    receiver.trace(TraceEvent::Received(Payload::Message(message)));
    if receiver.user().is_deaf() {
        return;
    }
    receiver.count(|c| c.messages_received += 1);
    input::message_received(receiver, message);
}

/// Gives a message to the user, unless it is the delivery of a probe.
pub(crate) fn message_received(receiver: &mut dyn Receiver, message: IncomingMessage<'_>) {
    if !receiver.takes_probe(message.bytes()) {
        receiver.step(Input::Message(message));
    }
}

pub(crate) fn answered(cx: &mut UserContext<'_>, answer: Answer<'_>) -> StepOutcome {
    match answer {
        Answer::Pong(payload) => ping::pong_received(cx, payload),
        Answer::Upgraded(_) if !cx.user.is_running() => StepOutcome::Wait,
        _ if is_over(cx) => StepOutcome::Wait,
        Answer::Upgraded(deflate) => connect::upgraded(cx, deflate),
        Answer::Refused(answer, body) => {
            cx.sample(Sample::UpgradeRefused(answer, body));
            connect::refused(cx, ConnectFailure::Http(answer.status))
        }
    }
}

pub(crate) fn violated(cx: &mut UserContext<'_>, (violation, head): Fault<'_>) -> StepOutcome {
    match is_over(cx) {
        true => StepOutcome::Wait,
        false => connect::violated(cx, violation, head),
    }
}

pub(crate) fn unasked(cx: &mut UserContext<'_>, unasked: Unasked<'_>) -> StepOutcome {
    match unasked {
        // Only users of channels set one.
        Unasked::HeartbeatDue => heartbeat::due(cx),
        Unasked::Closed(..) if is_over(cx) => StepOutcome::Wait,
        Unasked::Closed(..) if cx.user.wait() == Some(UserWait::Close) => {
            cx.act(UserAction::Close);
            StepOutcome::Wait
        }
        Unasked::Closed(code, reason) => {
            cx.record(Record::PeerClosed { code, reason });
            failure::close_faulty(cx)
        }
    }
}

/// Reports whether the user's program has no more to do with the connection. A stopped user closes
/// it.
fn is_over(cx: &mut UserContext<'_>) -> bool {
    let is_deaf = cx.user.is_deaf();
    if !is_deaf && !cx.user.is_running() {
        cx.act(UserAction::Close);
    }
    is_deaf || !cx.user.is_running()
}
