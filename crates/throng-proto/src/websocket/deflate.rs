//! Compression of messages (RFC 7692 section 7.2.1), each on its own or behind its context.

use std::fmt;

use flate2::{Compress, Compression, FlushCompress};

/// The compressor of a core. It is created when it is first used, and then takes about 300 KB. All
/// connections that agreed on the same window share it: a message refers to no other, or the
/// connection keeps what it refers to.
#[derive(Default)]
pub struct Deflater {
    /// The compressors by bits of the window, from 9. Nearly all connections agree on 15.
    by_window_bits: [Option<Compress>; 7],
    compressed: Vec<u8>,
    /// Compresses every message, even one that becomes larger.
    is_always: bool,
}

impl Deflater {
    /// The window size unless the peer requests a smaller one.
    pub(super) const WINDOW_BITS_MAX: u8 = 15;
    /// The smallest window of the compressor. A peer that requests a smaller one receives
    /// uncompressed messages, which every peer must accept.
    pub(super) const WINDOW_BITS_MIN: u8 = 9;

    /// Creates a compressor that allocates nothing until it compresses a message.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a compressor that also compresses messages that are short or do not become smaller.
    /// Conformance tests use it, because they need every message compressed.
    pub fn always() -> Self {
        Self { is_always: true, ..Self::default() }
    }

    /// Returns `payload` compressed with a window of `window_bits`, if that makes it smaller.
    pub(super) fn compress(&mut self, payload: &[u8], window_bits: u8) -> Option<&[u8]> {
        self.compress_behind(&[], payload, window_bits)
    }

    /// Returns `payload` compressed behind `context`, which the peer has, if that makes it smaller.
    pub(super) fn compress_behind(
        &mut self,
        context: &[u8],
        payload: &[u8],
        window_bits: u8,
    ) -> Option<&[u8]> {
        // A short message shrinks only if an earlier one was like it.
        let pays = payload.len() >= COMPRESSED_BYTES_MIN || self.is_always || !context.is_empty();
        if !pays || !(Self::WINDOW_BITS_MIN..=Self::WINDOW_BITS_MAX).contains(&window_bits) {
            return None;
        }
        if payload.is_empty() {
            return self.is_always.then_some(&EMPTY_MESSAGE);
        }
        let compressor = self.by_window_bits[usize::from(window_bits - Self::WINDOW_BITS_MIN)]
            .get_or_insert_with(|| Compress::new_with_window_bits(LEVEL, false, window_bits));
        compressor.reset();
        if !context.is_empty() {
            compressor.set_dictionary(context).ok()?;
        }
        self.compressed.clear();
        if self.compressed.capacity() > KEPT_BYTES_MAX.max(payload.len()) {
            self.compressed = Vec::new();
        }
        // The buffer has room for the payload's length only: output that does not fit is not
        // smaller.
        self.compressed.reserve_exact(payload.len());
        let begin = compressor.total_in();
        loop {
            let rest = &payload[(compressor.total_in() - begin) as usize..];
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
        let message = self.compressed.strip_suffix(&SYNC_FLUSH_TAIL)?;
        (message.len() < payload.len() || self.is_always).then_some(message)
    }
}

impl fmt::Debug for Deflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made = self.by_window_bits.iter().flatten().count();
        f.debug_struct("Deflater").field("made", &made).finish_non_exhaustive()
    }
}

/// The bytes that end each sync flush. A message omits them.
pub(super) const SYNC_FLUSH_TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// The empty message (RFC 7692 section 7.2.3.6).
const EMPTY_MESSAGE: [u8; 1] = [0];

/// The shortest payload that is compressed. Shorter ones shrink by less than a tenth, for 3 us of
/// work.
const COMPRESSED_BYTES_MIN: usize = 128;

/// The largest output buffer that is kept for the next message; a larger one is freed.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// Level 1: 3 us for 300 bytes of JSON and 8 us for 4 KiB, a third of the time of level 6. The
/// result is larger by 14 % and by 52 %.
const LEVEL: Compression = Compression::fast();
