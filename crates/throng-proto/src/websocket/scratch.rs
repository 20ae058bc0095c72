//! The state that all WebSocket sessions of a core share while they read.

use throng_base::Prng;

use crate::HeldBudget;
use crate::websocket::WebSocketLimits;
use crate::websocket::inflate::Inflater;

/// The limits, the only inflater, and the buffers that an event borrows when it arrived in pieces.
/// A core has one.
#[derive(Debug)]
pub struct Scratch {
    pub(super) limits: WebSocketLimits,
    /// The source of masks for the frames that a client sends by itself: pongs and close frames.
    pub(super) mask_prng: Prng,
    pub(crate) buffers: ScratchBuffers,
    /// Frames that arrived before the upgrade response.
    pub(super) early: Vec<u8>,
    /// The only path at which a request may have a body; `None` permits bodies at every path.
    pub(super) body_path: Option<Box<str>>,
}

/// The shared buffers. An event that borrows one of them ends before the next is read.
#[derive(Debug)]
pub(crate) struct ScratchBuffers {
    pub(super) inflater: Inflater,
    /// A request or a message that arrived in pieces.
    pub(crate) reassembled: Vec<u8>,
    /// What all sessions of the core may hold of incomplete messages.
    pub(crate) held: HeldBudget,
    /// The payload of a control frame that arrived in pieces.
    pub(super) control: [u8; 125],
}

impl ScratchBuffers {
    /// Frees the buffers of the last message if they are large: a core's own state stays small.
    #[inline]
    pub(crate) fn shrink(&mut self) {
        if self.reassembled.capacity() > KEPT_BYTES_MAX {
            self.reassembled = Vec::new();
        }
        self.inflater.shrink(KEPT_BYTES_MAX);
    }
}

impl Scratch {
    /// Creates the scratch of a core. `seed` determines the masks of the pongs and close frames
    /// that a client sends by itself.
    pub fn new(limits: WebSocketLimits, seed: u64) -> Self {
        let buffers = ScratchBuffers {
            inflater: Inflater::default(),
            reassembled: Vec::new(),
            held: HeldBudget::default(),
            control: [0; 125],
        };
        Self { limits, mask_prng: Prng::new(seed), buffers, early: Vec::new(), body_path: None }
    }

    /// Permits bodies in requests to `path` only, compared without the query. The server answers
    /// any other body with 413 before it receives it.
    #[must_use]
    pub fn with_bodies_at(mut self, path: &str) -> Self {
        self.body_path = Some(path.into());
        self
    }

    /// Counts what the sessions hold of incomplete messages and answers in `budget`. By default
    /// there is no common limit.
    #[must_use]
    pub fn with_budget(mut self, budget: HeldBudget) -> Self {
        self.buffers.held = budget;
        self
    }

    /// Returns the limits of every session of this core.
    pub const fn limits(&self) -> &WebSocketLimits {
        &self.limits
    }
}

impl Default for Scratch {
    /// Creates the scratch with the default [`WebSocketLimits`].
    fn default() -> Self {
        Self::new(WebSocketLimits::default(), 0)
    }
}

/// The largest buffer that is kept for the next message.
const KEPT_BYTES_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_small_buffer_is_kept() {
        let mut buffers = Scratch::default().buffers;
        for (bytes, is_kept) in [(1_000, true), (KEPT_BYTES_MAX + 1, false)] {
            buffers.reassembled = Vec::with_capacity(bytes);
            buffers.shrink();
            assert_eq!(buffers.reassembled.capacity() > 0, is_kept);
        }
    }
}
