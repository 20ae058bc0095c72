//! The topic and the events that the protocol reserves.

/// The topic of messages to the connection rather than to a channel: heartbeats.
pub const PHOENIX: &str = "phoenix";

/// A client's keep-alive message on the topic [`PHOENIX`]. The reply is ok with `{}`.
pub const HEARTBEAT: &str = "heartbeat";
/// A client's request to join the message's topic.
pub const JOIN: &str = "phx_join";
/// A client's request to leave the message's topic.
pub const LEAVE: &str = "phx_leave";

/// The server's reply to the push with the same ref.
pub const REPLY: &str = "phx_reply";
/// The normal end of a channel. The message's ref is its join_ref.
pub const CLOSE: &str = "phx_close";
/// The crash of a channel. The message's ref is its join_ref. The client joins again.
pub const ERROR: &str = "phx_error";

/// The list of all present users, pushed once to a client that joined.
pub const PRESENCE_STATE: &str = "presence_state";
/// The users that joined and left, broadcast to all subscribers.
pub const PRESENCE_DIFF: &str = "presence_diff";
