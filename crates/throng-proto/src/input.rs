//! What was received and not consumed yet.

/// A cursor over the core's receive buffer, lent for the length of one callback.
#[derive(Debug)]
pub struct Input<'a> {
    bytes: &'a mut [u8],
    /// Work beside the bytes themselves, in bytes of the same cost.
    charged: usize,
}

impl<'a> Input<'a> {
    /// All of `bytes` is to be consumed.
    pub const fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, charged: 0 }
    }

    /// Charges work that the length of the input does not show, such as inflating: as many bytes as
    /// would have cost the same to read. A core uses it to give each connection its share of a turn.
    pub const fn charge(&mut self, bytes: usize) {
        self.charged += bytes;
    }

    /// Returns the work done on an input that was `length` bytes long: bytes consumed and work charged.
    pub const fn work_since(&self, length: usize) -> usize {
        length - self.bytes.len() + self.charged
    }

    /// Whether everything has been consumed.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What has not been consumed, to look at.
    pub fn peek(&self) -> &[u8] {
        self.bytes
    }

    /// Consumes the next `count` bytes, which must be there. They may be changed in place: unmasked, say.
    pub fn take(&mut self, count: usize) -> &'a mut [u8] {
        let (taken, rest) = std::mem::take(&mut self.bytes).split_at_mut(count);
        self.bytes = rest;
        taken
    }

    /// Consumes everything.
    pub fn take_all(&mut self) -> &'a mut [u8] {
        std::mem::take(&mut self.bytes)
    }
}
