//! The options that a kind is started with.

use std::time::Duration;

use throng_proto::websocket::WebSocketLimits;
use throng_pubsub::TopicRules;
use throng_pubsub::presence::PresenceLimits;

use crate::channels::defaults;
use crate::{CheckOrigin, ServerOptions, SharedTopics};

/// Options for any kind. Which parts a kind reads depends on its [protocol](super::ServerProtocol).
#[derive(Clone, Debug, Default)]
pub struct KindOptions {
    /// The options of every server. `private_fds` is always on.
    pub server: ServerOptions,
    /// The options of kinds that speak WebSocket.
    pub websocket: WebSocketKindOptions,
    /// The options of kinds that speak Phoenix Channels.
    pub channels: ChannelsOptions,
    /// The bus to other nodes, for kinds that speak WebSocket. Default: topics are not shared.
    pub shared: Option<SharedTopics>,
}

/// Options of kinds that speak WebSocket.
#[derive(Clone, Debug, Default)]
pub struct WebSocketKindOptions {
    /// The pages that may connect. Default: pages of this host.
    pub check_origin: CheckOrigin,
    /// The server's name in the addresses of its pages. Default: any IP address, and `localhost`.
    pub host: Option<String>,
    /// True to compress messages for clients that offer it. Default false.
    pub deflate: bool,
    /// The rules for messages to slow readers.
    pub rules: TopicRules,
    /// The maximum size of a message and of a frame in bytes. Default: the kind's own.
    pub message_bytes_max: Option<usize>,
    /// Time for a request to arrive and for a connection to become a WebSocket. Default: the kind's
    /// own.
    pub handshake_timeout: Option<Duration>,
    /// Time from the first byte of a message to its last. Default: the kind's own.
    pub message_timeout: Option<Duration>,
}

impl WebSocketKindOptions {
    /// Returns `limits` with the values that these options set.
    pub(super) fn limits(&self, mut limits: WebSocketLimits) -> WebSocketLimits {
        if let Some(bytes) = self.message_bytes_max {
            limits.message_bytes_max = bytes;
            limits.frame_bytes_max = bytes;
        }
        if let Some(timeout) = self.handshake_timeout {
            limits.handshake_timeout_ms = millis(timeout);
        }
        if let Some(timeout) = self.message_timeout {
            limits.message_timeout_ms = millis(timeout);
        }
        limits
    }
}

/// Options of kinds that speak Phoenix Channels. Their defaults are in
/// [`defaults`](crate::channels::defaults).
#[derive(Clone, Debug)]
pub struct ChannelsOptions {
    /// Channels of one connection.
    pub channels_max: usize,
    /// Long-poll sessions over all cores.
    pub poll_sessions_max: usize,
    /// Bytes that the long-poll sessions of one core keep together.
    pub poll_bytes_max: usize,
    /// The limits of presence.
    pub presence: PresenceLimits,
}

impl Default for ChannelsOptions {
    fn default() -> Self {
        Self {
            channels_max: defaults::CHANNELS_MAX,
            poll_sessions_max: defaults::POLL_SESSIONS_MAX,
            poll_bytes_max: defaults::POLL_BYTES_MAX,
            presence: PresenceLimits::default(),
        }
    }
}

fn millis(timeout: Duration) -> u32 {
    timeout.as_millis().try_into().unwrap_or(u32::MAX)
}
