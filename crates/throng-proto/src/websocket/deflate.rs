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
    /// Compress whether it pays or not.
    is_always: bool,
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

    /// One that also compresses what is short or does not become smaller by it: for tests of conformance, which
    /// want to see every message compressed.
    pub fn always() -> Self {
        Self { is_always: true, ..Self::default() }
    }

    /// `payload` compressed with a window of `bits`, if that makes it smaller.
    pub(super) fn compress(&mut self, payload: &[u8], bits: u8) -> Option<&[u8]> {
        let pays = payload.len() >= BYTES_MIN || self.is_always;
        if !pays || !(Self::BITS_MIN..=Self::BITS_MAX).contains(&bits) {
            return None;
        }
        if payload.is_empty() {
            return Some(&EMPTY);
        }
        let compressor = self.by_bits[usize::from(bits - Self::BITS_MIN)]
            .get_or_insert_with(|| Compress::new_with_window_bits(LEVEL, false, bits));
        compressor.reset();
        self.compressed.clear();
        if self.compressed.capacity() > KEPT_BYTES.max(payload.len()) {
            self.compressed = Vec::new();
        }
        // Room for no more than the payload: what does not fit has not become smaller.
        self.compressed.reserve_exact(payload.len());
        loop {
            let rest = &payload[compressor.total_in() as usize..];
            compressor.compress_vec(rest, &mut self.compressed, FlushCompress::Sync).ok()?;
            // With room left, the flush is complete.
            if self.compressed.len() < self.compressed.capacity() {
                break;
            }
            if !self.is_always {
                return None;
            }
            self.compressed.reserve(payload.len() / 4 + 64);
        }
        let whole = self.compressed.strip_suffix(&TAIL)?;
        (whole.len() < payload.len() || self.is_always).then_some(whole)
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

/// The empty message (RFC 7692 section 7.2.3.6).
const EMPTY: [u8; 1] = [0];

/// Shorter payloads become smaller by less than a tenth, for 3 us of work.
const BYTES_MIN: usize = 128;

/// A larger buffer of an earlier message is given back.
const KEPT_BYTES: usize = 64 << 10;

/// Level 1: 3 us for 300 bytes of JSON and 8 us for 4 KiB, a third of what level 6 takes; the result is larger by 14 % and by
/// 52 %.
const LEVEL: Compression = Compression::fast();
