//! The operations of users that are measured, each in one row.

/// What a user does and waits for, and what is counted and timed of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// A connect, the upgrade of a WebSocket included.
    Connect,
    /// The part of a connect until TCP is established.
    Tcp,
    /// A message and its answer.
    Message,
    /// A join of a channel.
    Join,
    /// A push with a reply.
    Push,
    /// An HTTP request.
    Http,
    /// A probe: one message to all users of a topic.
    Broadcast,
}
