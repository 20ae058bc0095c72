//! What an application does with a topic.

use std::any::Any;

use throng_proto::phoenix::PhoenixPayload;

use super::{Joining, Socket};

/// One client joined to one topic: the value is that channel's state, and is gone when the channel ends.
///
/// A value without size costs no memory. A method must not block, since it holds up every connection of its core. One that
/// panics ends its channel, which the client is told (`join crashed`, `phx_error`), and nothing else.
pub trait Channel: Sized + 'static {
    /// Broadcasts of these events go to [`Self::handle_out`] instead of straight to the client. What it pushes is the
    /// channel's own: the policy for slow readers is for what is broadcast straight to them.
    const INTERCEPT: &'static [&'static str] = &[];

    /// A client wants to join the topic [`Joining::topic`]. Nothing can be sent yet: see [`Self::joined`].
    ///
    /// # Errors
    /// What the client is told instead of a welcome.
    fn join(joining: &mut Joining<'_>) -> Result<Self, JoinRefusal>;

    /// The client has been told that it joined; from here on it gets broadcasts, and this may send.
    fn joined(&mut self, _socket: &mut Socket<'_>) {}

    /// The client has pushed `event`. [`Socket::reply`] answers it, now or later.
    fn handle_in(&mut self, event: &str, payload: PhoenixPayload<'_>, socket: &mut Socket<'_>);

    /// A message from elsewhere: by [`Socket::send_self`], or to its [`Address`](super::Address).
    fn handle_info(&mut self, _info: Info, _socket: &mut Socket<'_>) {}

    /// A broadcast of an event in [`Self::INTERCEPT`]. Pushes it, unless overridden.
    fn handle_out(&mut self, event: &str, payload: PhoenixPayload<'_>, socket: &mut Socket<'_>) {
        socket.push(event, payload);
    }

    /// The channel ends. Not called after a panic of its own.
    fn terminate(&mut self, _why: LeaveReason, _socket: &mut Socket<'_>) {}
}

/// A message for [`Channel::handle_info`]; it may come from another thread.
pub type Info = Box<dyn Any + Send>;

/// What a client is told that may not join: a JSON object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinRefusal(pub(crate) String);

impl JoinRefusal {
    /// `{"reason": reason}`.
    pub fn because(reason: &str) -> Self {
        let mut json = br#"{"reason":"#.to_vec();
        throng_proto::phoenix::json::write_string(reason, &mut json);
        json.push(b'}');
        Self(String::from_utf8(json).unwrap_or_default())
    }

    /// This JSON, which must be an object.
    pub fn json(response: impl Into<String>) -> Self {
        Self(response.into())
    }
}

/// Why a channel ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaveReason {
    /// The client left; what is pushed now arrives behind `phx_close`.
    Left,
    /// [`Socket::stop`] was called.
    Stopped,
    /// The client has joined the topic again.
    Duplicate,
    /// The connection has ended; nothing can be sent any more.
    Closed,
    /// The server ends.
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
