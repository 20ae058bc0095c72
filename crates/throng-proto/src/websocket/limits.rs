//! What a peer may ask for.

/// The bounds of what one connection may make us keep or do. Beyond each of them lies a status or a close code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebSocketLimits {
    /// Bytes of an HTTP head, request or answer. Default 8 KiB; beyond it 431 (414 when the target alone is too long).
    pub head_bytes_max: usize,
    /// Bytes of an HTTP body. Default 8 MiB; beyond it 413.
    /// [`Scratch::with_bodies_at`](super::Scratch::with_bodies_at) allows bodies at one path only.
    pub body_bytes_max: usize,
    /// Bytes of one frame's payload as it was sent. Default 1 MiB; beyond it close code 1009.
    pub frame_bytes_max: usize,
    /// Bytes of a message, all its frames together and inflated. Default 1 MiB; beyond it close code 1009.
    pub message_bytes_max: usize,
    /// How long a request may take to arrive whole, and how long a connection may stay open between
    /// two. Default 10,000 ms; beyond it 408, or a plain close where nothing was begun.
    pub handshake_timeout_ms: u32,
    /// How long a server waits for the rest of a message that has begun: of a fragmented message,
    /// or of a frame. Pings and pongs in between do not extend it. Default 60,000 ms; beyond it
    /// close code 1008.
    pub message_timeout_ms: u32,
    /// How long the peer may take to answer a close frame. Default 5,000 ms.
    pub close_timeout_ms: u32,
}

impl Default for WebSocketLimits {
    fn default() -> Self {
        Self {
            head_bytes_max: 8 << 10,
            body_bytes_max: 8 << 20,
            frame_bytes_max: 1 << 20,
            message_bytes_max: 1 << 20,
            handshake_timeout_ms: 10_000,
            message_timeout_ms: 60_000,
            close_timeout_ms: 5_000,
        }
    }
}
