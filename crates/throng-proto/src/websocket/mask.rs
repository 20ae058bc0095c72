//! Masking (RFC 6455 section 5.3).

/// XORs `bytes` with `mask`. `at` is the position of the first byte in its payload. Masking twice
/// restores the bytes.
pub(super) fn apply(mask: [u8; 4], at: usize, bytes: &mut [u8]) {
    let mut block = [0; 16];
    for (index, byte) in block.iter_mut().enumerate() {
        *byte = mask[(at + index) % 4];
    }
    let mut blocks = bytes.chunks_exact_mut(16);
    // The compiler turns sixteen independent bytes into one vector instruction.
    for chunk in &mut blocks {
        for (byte, key) in chunk.iter_mut().zip(block) {
            *byte ^= key;
        }
    }
    for (byte, key) in blocks.into_remainder().iter_mut().zip(block) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_and_offset_is_masked_byte_by_byte() {
        let mask = [1, 2, 4, 8];
        for at in 0..6 {
            // Miri runs a few of the lengths.
            for length in (0..70).step_by(if cfg!(miri) { 3 } else { 1 }) {
                let mut bytes = vec![0x80; length];
                apply(mask, at, &mut bytes);
                let expected: Vec<u8> =
                    (0..length).map(|index| 0x80 ^ mask[(at + index) % 4]).collect();
                assert_eq!(bytes, expected, "{length} bytes at {at}");
            }
        }
    }
}
