//! What all WebSocket sessions of a core share while they read.

use throng_base::Prng;

use crate::websocket::WebSocketLimits;
use crate::websocket::inflate::Inflater;

/// Limits, the one inflater, and the buffers that an event borrows when it did not arrive in one piece. A core has one.
#[derive(Debug)]
pub struct Scratch {
    pub(super) limits: WebSocketLimits,
    /// Decides the masks of what a client answers by itself: pongs and close frames.
    pub(super) masks: Prng,
    pub(super) room: ScratchBuffers,
    /// Frames that came before the upgrade was answered.
    pub(super) early: Vec<u8>,
    /// The one path at which a request may have a body; none for every path.
    pub(super) body_path: Option<Box<str>>,
}

/// The buffers. An event that borrows one of them is gone before the next is read.
#[derive(Debug)]
pub(super) struct ScratchBuffers {
    pub(super) inflater: Inflater,
    /// A request or a message that came in pieces.
    pub(super) whole: Vec<u8>,
    /// The payload of a control frame that came in pieces.
    pub(super) control: [u8; 125],
}

impl ScratchBuffers {
    /// Gives back what the last message left behind, if that is much: a core's own state stays small.
    #[inline]
    pub(super) fn tidy(&mut self) {
        if self.whole.capacity() > KEPT_BYTES {
            self.whole = Vec::new();
        }
        self.inflater.tidy(KEPT_BYTES);
    }
}

impl Scratch {
    /// `seed` decides the masks of the pongs and close frames that a client answers with by itself.
    pub fn new(limits: WebSocketLimits, seed: u64) -> Self {
        let room =
            ScratchBuffers { inflater: Inflater::default(), whole: Vec::new(), control: [0; 125] };
        Self { limits, masks: Prng::new(seed), room, early: Vec::new(), body_path: None }
    }

    /// Allows bodies in requests to `path` alone, without its query: any other is answered 413
    /// before it is received.
    #[must_use]
    pub fn with_bodies_at(mut self, path: &str) -> Self {
        self.body_path = Some(path.into());
        self
    }

    /// The limits that hold for every session of this core.
    pub const fn limits(&self) -> &WebSocketLimits {
        &self.limits
    }
}

impl Default for Scratch {
    /// With the default [`Limits`].
    fn default() -> Self {
        Self::new(WebSocketLimits::default(), 0)
    }
}

/// A buffer up to this size is kept for the next message.
const KEPT_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_small_buffer_is_kept() {
        let mut room = Scratch::default().room;
        for (bytes, is_kept) in [(1_000, true), (KEPT_BYTES + 1, false)] {
            room.whole = Vec::with_capacity(bytes);
            room.tidy();
            assert_eq!(room.whole.capacity() > 0, is_kept);
        }
    }
}
