//! What a user does in an op that only its protocol understands.

use std::any::Any;
use std::sync::Arc;

use throng_base::Instant;
use throng_engine::CloseReason;

use super::context::{StepOutcome, UserContext};
use super::error::ErrorKind;
use super::state::UserWait;
use crate::program::{ProtocolOp, ProtocolOpEntry};

/// An op of one protocol, as users do it. Most send a request and wait for its answer:
/// [`requests`](super::requests) has what all of these do.
pub(crate) trait UserOp: ProtocolOp {
    /// Begins it.
    fn begin(&self, cx: &mut UserContext<'_>) -> StepOutcome;

    /// Sends what it sends as a step of a rule of `on_message`, which does not wait.
    fn send_of_rule(&self, _: &mut UserContext<'_>) {}

    /// Fails it: the answer to the request `number` has not arrived in time.
    fn timed_out(&self, _: &mut UserContext<'_>, _number: u32) -> StepOutcome {
        StepOutcome::Wait
    }

    /// Returns the error where the server closes the connection in place of an answer.
    fn closed_error(&self) -> ErrorKind {
        ErrorKind::ClosedByPeer
    }

    /// Notes what has arrived of an answer that an error of this kind ends.
    fn note_part(&self, _: &mut UserContext<'_>, _: ErrorKind) {}

    // What follows is of an op that opens its connection itself (`OpRole::Asks`).

    /// Handles the connection that it has opened.
    fn connected(&self, _: &mut UserContext<'_>) -> StepOutcome {
        StepOutcome::Wait
    }

    /// Connects from another source port. It has tried so many.
    fn connect_again(&self, _: &mut UserContext<'_>, _tries: u8, _is_retry: bool) -> StepOutcome {
        StepOutcome::Wait
    }

    /// Handles the server's FIN where it ends the answer. Returns false if it does not.
    fn answered_by_end(&self, _: &mut UserContext<'_>) -> bool {
        false
    }

    /// Returns the moment at which its request was sent, if the end of the connection lets the user
    /// send it again.
    fn retried_from(&self, _: &mut UserContext<'_>, _: CloseReason) -> Option<Instant> {
        None
    }

    /// Sends the request again that was sent at `asked_at`, on a new connection.
    fn retry(&self, _: &mut UserContext<'_>, _asked_at: Instant) -> StepOutcome {
        StepOutcome::Wait
    }
}

/// The side of an op that a program keeps without knowing it.
struct DoneByUser(Arc<dyn UserOp>);

/// Returns both sides of an op, for the compiler.
pub(crate) fn entry(op: impl UserOp) -> ProtocolOpEntry {
    let op = Arc::new(op);
    ProtocolOpEntry { described: op.clone(), done_by_user: Arc::new(DoneByUser(op)) }
}

impl<'a> UserContext<'a> {
    /// Returns the user's present op, if it is one of a protocol.
    pub(crate) fn protocol_op(&self) -> Option<&'a dyn UserOp> {
        self.protocol_op_at(self.user.pc())
    }

    /// Returns the op at `pc`, if it is one of a protocol.
    pub(crate) fn protocol_op_at(&self, pc: u32) -> Option<&'a dyn UserOp> {
        let done_by_user: &dyn Any = self.rules.program.done_by_user(pc)?;
        done_by_user.downcast_ref().map(|DoneByUser(op)| &**op)
    }

    /// Returns the user's present op, if the user waits for the answer to its request.
    pub(crate) fn awaited_op(&self) -> Option<&'a dyn UserOp> {
        matches!(self.user.wait()?, UserWait::Reply { .. }).then(|| self.protocol_op())?
    }

    /// Returns the request of this type whose answer the user waits for, and its number.
    pub(crate) fn asked<T: UserOp>(&self) -> Option<(&'a T, u32)> {
        let UserWait::Reply { number } = self.user.wait()? else { return None };
        Some((self.rules.program.op_of(self.user.pc())?, number.get()))
    }
}
