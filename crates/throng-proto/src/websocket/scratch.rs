//! What all WebSocket sessions of a core share while they read.

use throng_base::Prng;

use crate::websocket::Limits;

/// Limits, the one inflater, and the buffers that an event borrows when its message came in pieces.
#[derive(Debug)]
pub struct Scratch {
    limits: Limits,
    prng: Prng,
}

impl Scratch {
    /// `seed` decides the masks of the pongs and close frames that a client answers with.
    pub fn new(limits: Limits, seed: u64) -> Self {
        Self { limits, prng: Prng::new(seed) }
    }

    /// The limits that hold for every session of this core.
    pub fn limits(&self) -> &Limits {
        let _ = self.prng;
        &self.limits
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new(Limits::default(), 0)
    }
}
