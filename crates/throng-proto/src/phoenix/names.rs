//! The topic and the events that the protocol keeps for itself.

/// The topic on which a connection, rather than a channel, is spoken to: heartbeats.
pub const PHOENIX: &str = "phoenix";

/// A client's sign of life, on the topic [`PHOENIX`]; answered ok `{}`.
pub const HEARTBEAT: &str = "heartbeat";
/// A client wants to join the message's topic.
pub const JOIN: &str = "phx_join";
/// A client leaves the message's topic.
pub const LEAVE: &str = "phx_leave";

/// The server answers the push whose ref the message carries.
pub const REPLY: &str = "phx_reply";
/// The channel ended normally; the message's ref is its join_ref.
pub const CLOSE: &str = "phx_close";
/// The channel crashed; the message's ref is its join_ref. A client joins again.
pub const ERROR: &str = "phx_error";

/// All who are present, pushed once to a client that joined.
pub const PRESENCE_STATE: &str = "presence_state";
/// Who came and who went, broadcast to everyone who is joined.
pub const PRESENCE_DIFF: &str = "presence_diff";
