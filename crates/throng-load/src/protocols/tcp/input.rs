//! A stream of bytes has no answers and no rules of its own: a user expects bytes.

use std::convert::Infallible;

use crate::protocols::input::Receiver;
use crate::user::context::{StepOutcome, UserContext};
use crate::user::{Input, Payload, TraceEvent};

pub(crate) type Answer<'a> = Infallible;
pub(crate) type Fault<'a> = Infallible;
pub(crate) type Unasked<'a> = Infallible;

/// Gives the bytes to the user.
pub(crate) fn received(receiver: &mut dyn Receiver, bytes: &[u8]) {
    receiver.trace(TraceEvent::Received(Payload::Bytes(bytes)));
    receiver.step(Input::Bytes(bytes));
}

pub(crate) fn answered(_: &mut UserContext<'_>, answer: Answer<'_>) -> StepOutcome {
    match answer {}
}

pub(crate) fn violated(_: &mut UserContext<'_>, fault: Fault<'_>) -> StepOutcome {
    match fault {}
}

pub(crate) fn unasked(_: &mut UserContext<'_>, unasked: Unasked<'_>) -> StepOutcome {
    match unasked {}
}
