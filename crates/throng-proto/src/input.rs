//! The bytes of one receive that the session has not consumed yet.

/// A cursor over the core's receive buffer. It is lent for the length of one callback.
#[derive(Debug)]
pub struct Input<'a> {
    bytes: &'a mut [u8],
    /// Work that consumes no bytes, in bytes that cost as much to read.
    charged: usize,
}

impl<'a> Input<'a> {
    /// Creates a cursor at the start of `bytes`.
    pub const fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, charged: 0 }
    }

    /// Charges work that the length of the input does not show, such as inflating. `bytes` is the
    /// number of bytes that would cost as much to read. A core uses the charge to give each
    /// connection its share of a turn.
    pub const fn charge(&mut self, bytes: usize) {
        self.charged += bytes;
    }

    /// Returns the work done on an input that was `length` bytes long: bytes consumed plus work
    /// charged.
    pub const fn work_since(&self, length: usize) -> usize {
        length - self.bytes.len() + self.charged
    }

    /// Reports whether the session has consumed all bytes.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the remaining bytes without consuming them.
    pub fn peek(&self) -> &[u8] {
        self.bytes
    }

    /// Consumes and returns the next `count` bytes. The caller may change them in place, for
    /// example to unmask them. Panics if fewer remain.
    pub fn take(&mut self, count: usize) -> &'a mut [u8] {
        let (taken, rest) = std::mem::take(&mut self.bytes).split_at_mut(count);
        self.bytes = rest;
        taken
    }

    /// Consumes and returns all remaining bytes.
    pub fn take_all(&mut self) -> &'a mut [u8] {
        std::mem::take(&mut self.bytes)
    }
}
