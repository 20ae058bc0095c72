//! The limits of channels unless others are given: what the builder's documentation, `--help` and
//! docs/channels.md say.

use std::time::Duration;

use throng_proto::websocket::WebSocketLimits;

/// Channels of one connection. Phoenix's own.
pub const CHANNELS_MAX: usize = 100;
/// Bytes of a topic, and of a join_ref.
pub const NAME_BYTES_MAX: usize = 1 << 10;
/// How long a WebSocket may say nothing. Phoenix's own.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a long-poll waits for messages. Phoenix's own.
pub const POLL_WINDOW: Duration = Duration::from_secs(10);
/// Long-poll sessions over all cores.
pub const POLL_SESSIONS_MAX: usize = 1_000;
/// Bytes that wait for the next poll of one session, unless it is one message alone.
pub const POLL_SESSION_BYTES_MAX: usize = 1 << 20;
/// Bytes that the sessions of one core hold together.
pub const POLL_BYTES_MAX: usize = 64 << 20;

/// The bounds of requests, frames and messages: [`Limits::default`] with frames and messages of 8
/// MiB, as long as what a long-poll may post. A client of Phoenix may send that much.
pub fn limits() -> WebSocketLimits {
    WebSocketLimits {
        frame_bytes_max: 8 << 20,
        message_bytes_max: 8 << 20,
        ..WebSocketLimits::default()
    }
}
