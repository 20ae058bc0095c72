//! The `Channel` trait: an application's code for a topic.

use std::any::Any;

use throng_proto::phoenix::PhoenixPayload;

use super::{Joining, Socket};

/// One client joined to one topic: the value is the channel's state and is dropped when it ends.
///
/// A value without size costs no memory. A method must not block, because it would block every
/// connection of its core. A panic in a method ends its channel and nothing else; the client
/// receives `join crashed` or `phx_error`.
pub trait Channel: Sized + 'static {
    /// Events whose broadcasts go to [`Self::handle_out`] instead of to the client. What the
    /// channel pushes there is its own: the policy for slow readers applies to direct broadcasts
    /// only.
    const INTERCEPT: &'static [&'static str] = &[];

    /// Called when a client requests to join the topic [`Joining::topic`]. Nothing can be sent yet:
    /// see [`Self::joined`].
    ///
    /// # Errors
    /// Returns the reply to a refused join.
    fn join(joining: &mut Joining<'_>) -> Result<Self, JoinRefusal>;

    /// Called when the client has been sent the reply to its join. From here on it receives
    /// broadcasts, and the channel may send.
    fn joined(&mut self, _socket: &mut Socket<'_>) {}

    /// Called when the client has pushed `event`. [`Socket::reply`] answers it, now or later.
    fn handle_in(&mut self, event: &str, payload: PhoenixPayload<'_>, socket: &mut Socket<'_>);

    /// Called with a message from [`Socket::send_self`] or to the channel's
    /// [`Address`](super::Address).
    fn handle_info(&mut self, _info: Info, _socket: &mut Socket<'_>) {}

    /// Called with a broadcast of an event in [`Self::INTERCEPT`]. Pushes it by default.
    fn handle_out(&mut self, event: &str, payload: PhoenixPayload<'_>, socket: &mut Socket<'_>) {
        socket.push(event, payload);
    }

    /// Called when the channel ends, unless it has panicked.
    fn terminate(&mut self, _why: LeaveReason, _socket: &mut Socket<'_>) {}
}

/// A message for [`Channel::handle_info`]; it may come from another thread.
pub type Info = Box<dyn Any + Send>;

/// The reply to a refused join: a JSON object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinRefusal(pub(crate) String);

impl JoinRefusal {
    /// Makes `{"reason": reason}`.
    pub fn because(reason: &str) -> Self {
        let mut json = br#"{"reason":"#.to_vec();
        throng_proto::phoenix::json::write_string(reason, &mut json);
        json.push(b'}');
        Self(String::from_utf8(json).unwrap_or_default())
    }

    /// Makes a refusal of this JSON, which must be an object.
    pub fn json(response: impl Into<String>) -> Self {
        Self(response.into())
    }
}

/// The reason why a channel ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaveReason {
    /// The client left. What is pushed now arrives after `phx_close`.
    Left,
    /// [`Socket::stop`] was called.
    Stopped,
    /// The client has joined the topic again.
    Duplicate,
    /// The connection has ended. Nothing can be sent.
    Closed,
    /// The server drains.
    Draining,
}

/// A channel without its type.
pub(crate) trait ErasedChannel {
    fn joined(&mut self, socket: &mut Socket<'_>);
    fn handle_in(&mut self, event: &str, payload: PhoenixPayload<'_>, socket: &mut Socket<'_>);
    fn handle_info(&mut self, info: Info, socket: &mut Socket<'_>);
    fn handle_out(&mut self, event: &str, payload: PhoenixPayload<'_>, socket: &mut Socket<'_>);
    fn terminate(&mut self, why: LeaveReason, socket: &mut Socket<'_>);
}

impl<C: Channel> ErasedChannel for C {
    fn joined(&mut self, socket: &mut Socket<'_>) {
        Channel::joined(self, socket);
    }

    fn handle_in(&mut self, event: &str, payload: PhoenixPayload<'_>, socket: &mut Socket<'_>) {
        Channel::handle_in(self, event, payload, socket);
    }

    fn handle_info(&mut self, info: Info, socket: &mut Socket<'_>) {
        Channel::handle_info(self, info, socket);
    }

    fn handle_out(&mut self, event: &str, payload: PhoenixPayload<'_>, socket: &mut Socket<'_>) {
        Channel::handle_out(self, event, payload, socket);
    }

    fn terminate(&mut self, why: LeaveReason, socket: &mut Socket<'_>) {
        Channel::terminate(self, why, socket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_quoted() {
        assert_eq!(JoinRefusal::because(r#"no "x""#).0, r#"{"reason":"no \"x\""}"#);
    }
}
