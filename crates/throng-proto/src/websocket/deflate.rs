//! Compressing messages (RFC 7692 section 7.2.1), each on its own: no context is taken over.

use std::fmt;

use flate2::{Compress, Compression, FlushCompress};

/// The compressor of a core, made when it is first used; then about 300 KB. Every connection that agreed on the
/// same window shares it, because no message refers to another.
#[derive(Default)]
pub struct Deflater {
    /// By bits of the window, from 9. Nearly all connections agree on 15.
    by_bits: [Option<Compress>; 7],
    compressed: Vec<u8>,
}

impl Deflater {
    /// The window that is used when nobody asks for a smaller one.
    pub(super) const BITS_MAX: u8 = 15;
    /// What the compressor can do; a peer that asks for less is sent uncompressed messages, which it must take.
    pub(super) const BITS_MIN: u8 = 9;

    /// Costs nothing until a message is compressed.
    pub fn new() -> Self {
        Self::default()
    }

    /// `payload` compressed with a window of `bits`, if that makes it smaller.
    pub(super) fn compress(&mut self, payload: &[u8], bits: u8) -> Option<&[u8]> {
        if payload.len() < BYTES_MIN || !(Self::BITS_MIN..=Self::BITS_MAX).contains(&bits) {
            return None;
        }
        let compressor = self.by_bits[usize::from(bits - Self::BITS_MIN)]
            .get_or_insert_with(|| Compress::new_with_window_bits(LEVEL, false, bits));
        compressor.reset();
        self.compressed.clear();
        // Room for less than the payload: what does not fit has not become smaller.
        self.compressed.reserve(payload.len());
        compressor
            .compress_vec(payload, &mut self.compressed, FlushCompress::Sync)
            .ok()
            .filter(|_| compressor.total_in() == payload.len() as u64)?;
        let whole = self.compressed.strip_suffix(&TAIL)?;
        (whole.len() < payload.len()).then_some(whole)
    }
}

impl fmt::Debug for Deflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made = self.by_bits.iter().flatten().count();
        f.debug_struct("Deflater").field("made", &made).finish_non_exhaustive()
    }
}

/// What a flush ends with, and every message leaves out.
pub(super) const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// Shorter payloads do not become smaller by enough to pay for it.
const BYTES_MIN: usize = 32;

/// Level 1 compresses JSON at several times the speed of level 6, to about 10 % more bytes.
const LEVEL: Compression = Compression::fast();
