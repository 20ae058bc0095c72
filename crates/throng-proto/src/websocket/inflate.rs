//! Decompression of messages (RFC 7692 section 7.2.2), never beyond the limit.

use std::fmt;

use flate2::{Decompress, FlushDecompress, Status};

use crate::websocket::Violation;
use crate::websocket::deflate::SYNC_FLUSH_TAIL;

/// The inflater of a core. It is created when it is first used, and then takes about 40 KB. It
/// reads every window up to 32 KiB.
#[derive(Default)]
pub(super) struct Inflater {
    inflate: Option<Decompress>,
    inflated: Vec<u8>,
}

/// A decompressed message.
#[derive(Debug)]
pub(super) struct InflatedMessage<'a> {
    pub(super) bytes: &'a [u8],
    /// The work of inflating, in bytes of input that cost as much to read.
    pub(super) work: usize,
}

impl Inflater {
    /// Inflates `payload`, which may refer to `context`, to at most `bytes_max` bytes.
    pub(super) fn inflate(
        &mut self,
        context: &[u8],
        payload: &[u8],
        bytes_max: usize,
    ) -> Result<InflatedMessage<'_>, Violation> {
        let inflate = self.inflate.get_or_insert_with(|| Decompress::new(false));
        inflate.reset(false);
        if !context.is_empty() {
            inflate.set_dictionary(context).map_err(|_| Violation::NotDeflate)?;
        }
        self.inflated.clear();
        let most = (payload.len() * 4).clamp(1 << 10, 1 << 16).min(bytes_max + 1);
        self.inflated.reserve(most);
        let mut final_blocks = 0;
        for part in [payload, &SYNC_FLUSH_TAIL] {
            inflate_part(inflate, part, &mut self.inflated, bytes_max, &mut final_blocks)?;
        }
        let work = self.inflated.len() + final_blocks * FINAL_BLOCK_WORK_BYTES;
        Ok(InflatedMessage { bytes: &self.inflated, work })
    }

    /// Frees the buffer of the last message unless it is small.
    #[inline]
    pub(super) fn shrink(&mut self, kept_bytes: usize) {
        if self.inflated.capacity() > kept_bytes {
            self.inflated = Vec::new();
        }
    }
}

impl fmt::Debug for Inflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inflater").field("made", &self.inflate.is_some()).finish_non_exhaustive()
    }
}

fn inflate_part(
    inflate: &mut Decompress,
    mut part: &[u8],
    inflated: &mut Vec<u8>,
    bytes_max: usize,
    final_blocks: &mut usize,
) -> Result<(), Violation> {
    loop {
        if inflated.len() == inflated.capacity() {
            // One byte of room beyond the limit shows that the message is longer.
            let more =
                inflated.len().clamp(1, (bytes_max + 1).saturating_sub(inflated.len()).max(1));
            inflated.reserve_exact(more);
        }
        let (consumed, produced) = (inflate.total_in(), inflated.len());
        let status = inflate
            .decompress_vec(part, inflated, FlushDecompress::Sync)
            .map_err(|_| Violation::NotDeflate)?;
        if inflated.len() > bytes_max {
            return Err(Violation::MessageTooLarge);
        }
        let consumed = (inflate.total_in() - consumed) as usize;
        part = &part[consumed..];
        if status == Status::StreamEnd {
            // A final block inside a message is legal (section 7.2.3.4). A new stream follows it.
            inflate.reset(false);
            *final_blocks += 1;
            if *final_blocks > FINAL_BLOCKS_MAX {
                return Err(Violation::NotDeflate);
            }
        } else if consumed == 0 && inflated.len() == produced {
            // No progress with room left: the inflater needs more input, and there is none.
            return if part.is_empty() { Ok(()) } else { Err(Violation::NotDeflate) };
        }
        if part.is_empty() && inflated.len() < inflated.capacity() {
            return Ok(());
        }
    }
}

/// Most final blocks in one message. A compressor writes one, or one for each fragment. Each costs
/// a microsecond, and two bytes are enough for one.
const FINAL_BLOCKS_MAX: usize = 1_000;
/// The work of a final block: a microsecond, the time to inflate a kilobyte.
const FINAL_BLOCK_WORK_BYTES: usize = 1 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::websocket::Deflater;
    use crate::websocket::context::DeflateContext;

    fn inflate(payload: &[u8]) -> Result<Vec<u8>, Violation> {
        Inflater::default().inflate(&[], payload, 1_000).map(|inflated| inflated.bytes.to_vec())
    }

    fn inflate_all(payload: &[u8], bytes_max: usize) -> Vec<u8> {
        Inflater::default().inflate(&[], payload, bytes_max).unwrap().bytes.to_vec()
    }

    #[test]
    fn final_blocks_count_as_work_without_producing_bytes() {
        let payload = [3, 0].repeat(500);
        let work = Inflater::default().inflate(&[], &payload, 1_000).unwrap().work;
        assert_eq!(work, 500 * FINAL_BLOCK_WORK_BYTES);
    }

    #[test]
    fn the_examples_of_the_rfc_are_read() {
        // RFC 7692 sections 7.2.3.1, 7.2.3.3, 7.2.3.4 and 7.2.3.5.
        for payload in [
            &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00][..],
            &[0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00],
            &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00],
            &[0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00],
        ] {
            assert_eq!(inflate(payload).unwrap(), b"Hello");
        }
        assert_eq!(inflate(&[0]).unwrap(), b"");
        assert_eq!(inflate(&[]).unwrap(), b"");
    }

    #[test]
    fn bytes_that_are_not_deflate_are_refused() {
        assert_eq!(inflate(&[0xff; 20]), Err(Violation::NotDeflate));
        assert_eq!(inflate(&[0x06, 0x12]), Err(Violation::NotDeflate));
    }

    #[test]
    fn a_message_of_too_many_final_blocks_is_refused() {
        assert_eq!(inflate(&[3, 0].repeat(FINAL_BLOCKS_MAX)).unwrap(), b"");
        assert_eq!(inflate(&[3, 0].repeat(FINAL_BLOCKS_MAX + 1)), Err(Violation::NotDeflate));
    }

    #[test]
    #[cfg_attr(miri, ignore = "hours of work for an interpreter")]
    fn a_bomb_is_stopped_at_the_limit() {
        let mut deflater = Deflater::new();
        let zeros = vec![0; 10 << 20];
        let bomb = deflater.compress(&zeros, 15).unwrap();
        assert!(bomb.len() < zeros.len() / 100, "{}", bomb.len());
        let mut inflater = Inflater::default();
        let refused = |inflater: &mut Inflater, bytes_max| {
            inflater.inflate(&[], bomb, bytes_max).err() == Some(Violation::MessageTooLarge)
        };
        assert!(refused(&mut inflater, 1 << 20));
        assert!(inflater.inflated.capacity() <= (1 << 20) + 1);
        let whole = inflater.inflate(&[], bomb, 10 << 20).unwrap();
        assert_eq!((whole.bytes.len(), whole.work), (10 << 20, 10 << 20), "exactly at the limit");
        assert!(refused(&mut inflater, (10 << 20) - 1));
    }

    #[test]
    fn every_window_round_trips() {
        // Miri runs less text and a few of the windows.
        let (count, step) = if cfg!(miri) { (300, 6) } else { (5_000, 1) };
        let text: String = (0..count).map(|number| format!("{} ", number % 70)).collect();
        let mut deflater = Deflater::new();
        for bits in (9..=15).step_by(step) {
            for _ in 0..2 {
                let compressed = deflater.compress(text.as_bytes(), bits).unwrap();
                assert!(compressed.len() < text.len() / 2);
                let back = inflate_all(compressed, 1 << 20);
                assert_eq!(back, text.as_bytes(), "{bits} bits");
            }
        }
        assert!(
            deflater.compress(text.as_bytes(), 8).is_none(),
            "the compressor has no such window"
        );
        assert!(deflater.compress(b"short", 15).is_none());
    }

    #[test]
    fn a_message_behind_its_context_is_read_with_the_same_context() {
        let text: String = (0..300).map(|number| format!("{} ", number * 7)).collect();
        let (mut deflater, mut inflater) = (Deflater::new(), Inflater::default());
        let mut context = DeflateContext::default();
        for bits in [9, 15] {
            let alone = deflater.compress(text.as_bytes(), bits).unwrap().len();
            for round in 0..40 {
                for part in [&text[..], "short", &text[round..], "", &text[..130]] {
                    let compressed =
                        deflater.compress_behind(context.bytes(), part.as_bytes(), bits);
                    let Some(compressed) = compressed else {
                        assert!(part.len() < 6 || bits == 9, "{part}");
                        continue;
                    };
                    let read = inflater.inflate(context.bytes(), compressed, 1 << 20).unwrap();
                    assert_eq!(read.bytes, part.as_bytes());
                    if bits == 15 && round > 0 && part.len() > 1_000 {
                        assert!(compressed.len() < alone / 4, "{} of {alone}", compressed.len());
                    }
                    context.append(part.as_bytes(), bits);
                }
            }
        }
        let compressed = deflater.compress_behind(context.bytes(), b"2093 2086", 15).unwrap();
        assert_eq!(inflater.inflate(&[], compressed, 100).err(), Some(Violation::NotDeflate));
    }

    #[test]
    #[cfg_attr(miri, ignore = "hours of work for an interpreter")]
    fn a_payload_that_does_not_shrink_is_compressed_only_on_demand() {
        let mut state = 1u32;
        let mut random = || {
            state = state.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
            (state >> 24) as u8
        };
        for length in [0, 1, 127, 128, 200, 1_000, 70_000, 300_000] {
            let noise: Vec<u8> = (0..length).map(|_| random()).collect();
            assert!(Deflater::new().compress(&noise, 15).is_none(), "{length} bytes");
            let mut always = Deflater::always();
            for bits in [9, 15] {
                let compressed = always.compress(&noise, bits).unwrap();
                assert_eq!(inflate_all(compressed, length), noise);
            }
        }
    }
}
