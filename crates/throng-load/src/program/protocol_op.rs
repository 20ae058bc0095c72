//! An op that only its protocol understands: what the rest of the program asks of it.

use std::any::Any;
use std::fmt::Debug;
use std::time::Duration;

use throng_base::Instant;
use throng_engine::CloseReason;

use super::message::MessagePattern;
use crate::user::context::{StepOutcome, UserContext};
use crate::user::error::ErrorKind;

/// An op of one protocol. Most send a request and wait for its answer:
/// [`requests`](crate::user::requests) has what all of these do.
///
/// The folder of the protocol finds it again by [`UserContext::asked`].
pub(crate) trait ProtocolOp: Any + Debug + Send + Sync {
    /// Begins it.
    fn begin(&self, cx: &mut UserContext<'_>) -> StepOutcome;

    /// Sends what it sends as a step of a rule of `on_message`, which does not wait.
    fn send_of_rule(&self, _: &mut UserContext<'_>) {}

    /// Fails it: the answer to the request `number` has not arrived in time.
    fn timed_out(&self, _: &mut UserContext<'_>, _number: u32) -> StepOutcome {
        StepOutcome::Wait
    }

    /// Describes what it expects of the server; `shown` formats bytes.
    fn describe(&self, shown: &dyn Fn(&[u8]) -> String) -> String;

    /// Returns the time-out of its answer; `None` if it waits for none.
    fn timeout(&self) -> Option<Duration>;

    /// Returns what its answer must be, if that is described by a pattern.
    fn response(&self) -> Option<&MessagePattern> {
        None
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
