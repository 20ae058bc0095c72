//! The limits of one connection.

/// The limits of the memory and the work that one connection may cause. A peer that exceeds one of
/// them receives an HTTP status or a close code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebSocketLimits {
    /// Most bytes of an HTTP head, request or response. Default 8 KiB; beyond it 431 (414 if the
    /// target alone is too long).
    pub head_bytes_max: usize,
    /// Most bytes of an HTTP body. Default 8 MiB; beyond it 413.
    /// [`Scratch::with_bodies_at`](super::Scratch::with_bodies_at) permits bodies at one path only.
    pub body_bytes_max: usize,
    /// Most bytes of one frame's payload as sent. Default 1 MiB; beyond it close code 1009.
    pub frame_bytes_max: usize,
    /// Most bytes of a message: all its frames together, after inflating. Default 1 MiB; beyond it
    /// close code 1009.
    pub message_bytes_max: usize,
    /// Most bytes of an inflated message for each byte of it as sent; up to 64 KiB it may have any
    /// ratio. Default 100; beyond it close code 1009. One message may go to many subscribers, so a
    /// kilobyte of a publisher should not be a megabyte for each of them.
    pub inflate_ratio_max: usize,
    /// Time within which a request must arrive complete, and for which a connection may be idle
    /// between two requests. Default 10,000 ms. Beyond it the server responds 408, or only closes
    /// if no request has begun.
    pub handshake_timeout_ms: u32,
    /// Time that a server waits for the rest of a message or frame that has begun. Pings and pongs
    /// in between do not extend it. Default 60,000 ms; beyond it close code 1008.
    pub message_timeout_ms: u32,
    /// Time within which the peer must answer a close frame. Default 5,000 ms.
    pub close_timeout_ms: u32,
}

impl WebSocketLimits {
    /// Returns the most bytes of an inflated message of which `sent_bytes` were sent.
    pub(super) fn inflated_bytes_max(&self, sent_bytes: usize) -> usize {
        let by_ratio = sent_bytes.saturating_mul(self.inflate_ratio_max).max(ANY_RATIO_BYTES_MAX);
        by_ratio.min(self.message_bytes_max)
    }
}

impl Default for WebSocketLimits {
    fn default() -> Self {
        Self {
            head_bytes_max: 8 << 10,
            body_bytes_max: 8 << 20,
            frame_bytes_max: 1 << 20,
            message_bytes_max: 1 << 20,
            inflate_ratio_max: 100,
            handshake_timeout_ms: 10_000,
            message_timeout_ms: 60_000,
            close_timeout_ms: 5_000,
        }
    }
}

/// An inflated message of at most so many bytes may have any ratio.
const ANY_RATIO_BYTES_MAX: usize = 64 << 10;
