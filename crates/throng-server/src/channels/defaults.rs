//! The default limits of channels, as the builder's documentation, `--help` and docs/channels.md
//! list them.

use std::time::Duration;

use throng_proto::websocket::WebSocketLimits;

/// Channels of one connection; Phoenix's default.
pub const CHANNELS_MAX: usize = 100;
/// Bytes of a topic and of a join_ref.
pub const NAME_BYTES_MAX: usize = 1 << 10;
/// Time without received bytes after which a WebSocket is closed; Phoenix's default.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// The time that a long-poll waits for messages; Phoenix's default.
pub const POLL_WINDOW: Duration = Duration::from_secs(10);
/// Long-poll sessions over all cores.
pub const POLL_SESSIONS_MAX: usize = 1_000;
/// Bytes that may wait for the next poll of one session; a single message may be longer.
pub const POLL_SESSION_BYTES_MAX: usize = 1 << 20;
/// Bytes that the sessions of one core keep together.
pub const POLL_BYTES_MAX: usize = 64 << 20;

/// Returns the limits of requests, frames and messages: [`WebSocketLimits::default`] with frames
/// and messages of 8 MiB, the same as for the body of a long-poll. Phoenix allows as much.
pub fn limits() -> WebSocketLimits {
    WebSocketLimits {
        frame_bytes_max: 8 << 20,
        message_bytes_max: 8 << 20,
        ..WebSocketLimits::default()
    }
}
