//! Growth of buffers that collect data which arrives in pieces.

/// Appends `piece` to `buffer`, whose final length the peer declared as `declared` bytes.
pub(crate) fn append(buffer: &mut Vec<u8>, piece: &[u8], declared: usize) {
    let capacity = capacity(buffer, piece.len(), declared);
    if capacity > buffer.capacity() {
        buffer.reserve_exact(capacity - buffer.len());
    }
    buffer.extend_from_slice(piece);
}

/// Returns the capacity of `buffer` for `more` bytes. The buffer grows to twice its length, and
/// never beyond the declared length. So a peer that declares much and sends little costs only what
/// it sends, and a peer that sends everything does not cost twice as much.
pub(crate) fn capacity(buffer: &Vec<u8>, more: usize, declared: usize) -> usize {
    let needed = buffer.len() + more;
    if needed <= buffer.capacity() {
        return buffer.capacity();
    }
    declared.min(needed.saturating_mul(2)).max(needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_grows_with_the_received_bytes_and_stops_at_the_declared_length() {
        // Miri runs a part of them.
        let bytes = |count: usize| if cfg!(miri) { count / 64 } else { count };
        let large = bytes(8 << 20);
        for (declared, piece) in [(large, 1_400), (large, 65_536), (bytes(100_000), 1), (7, 3)] {
            let mut buffer = Vec::new();
            let mut grown = 0;
            while buffer.len() < declared {
                let (before, length) = (buffer.capacity(), piece.min(declared - buffer.len()));
                append(&mut buffer, &vec![7; length], declared);
                grown += usize::from(buffer.capacity() > before);
                assert!(buffer.capacity() <= (2 * buffer.len()).min(declared));
            }
            assert_eq!(buffer.capacity(), declared);
            assert!(grown <= 25, "{grown} times");
        }
    }

    #[test]
    fn bytes_beyond_the_declared_length_are_kept() {
        let mut buffer = Vec::new();
        append(&mut buffer, b"hello", 2);
        assert_eq!(buffer, b"hello");
    }
}
