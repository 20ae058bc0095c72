//! The encoder of frames (RFC 6455 section 5.2). A message is one frame, except a message that is
//! produced while it is sent.

use crate::websocket::Deflater;
use crate::websocket::mask;

/// The opcode of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// UTF-8 text.
    Text = 1,
    /// Bytes.
    Binary = 2,
    /// Close: an empty payload, or a code in two bytes and a reason. At most 125 bytes.
    Close = 8,
    /// Ping. At most 125 bytes.
    Ping = 9,
    /// Pong, the answer to a ping. At most 125 bytes.
    Pong = 10,
}

/// Appends one complete frame as a server sends it: unmasked, so that all receivers of a broadcast
/// can share it.
pub fn encode_frame(opcode: Opcode, payload: &[u8], out: &mut Vec<u8>) {
    append(FINAL | opcode as u8, payload, None, out);
}

/// Appends one frame of a fragmented message, as a server sends it. The first frame has an opcode,
/// the others have none. No frame is compressed, so every session accepts them.
pub fn encode_fragment(opcode: Option<Opcode>, is_last: bool, payload: &[u8], out: &mut Vec<u8>) {
    let is_final = if is_last { FINAL } else { 0 };
    append(is_final | opcode.map_or(CONTINUATION, |opcode| opcode as u8), payload, None, out);
}

/// Appends one complete compressed frame as a server sends it. Every session whose `is_deflated()`
/// is true accepts it. A payload that compression does not make smaller is sent uncompressed.
pub fn encode_deflated(opcode: Opcode, payload: &[u8], deflater: &mut Deflater, out: &mut Vec<u8>) {
    append_message(opcode, payload, None, Some((deflater, Deflater::WINDOW_BITS_MAX)), out);
}

/// Appends a message. It is compressed if `deflate` gives a deflater and the bits of a window, and
/// if that makes it smaller.
pub(super) fn append_message(
    opcode: Opcode,
    payload: &[u8],
    mask: Option<[u8; 4]>,
    deflate: Option<(&mut Deflater, u8)>,
    out: &mut Vec<u8>,
) {
    let compressed =
        deflate.and_then(|(deflater, window_bits)| deflater.compress(payload, window_bits));
    match compressed {
        Some(smaller) => append_compressed(opcode, smaller, mask, out),
        None => append(FINAL | opcode as u8, payload, mask, out),
    }
}

/// Appends a message that is compressed already.
pub(super) fn append_compressed(
    opcode: Opcode,
    compressed: &[u8],
    mask: Option<[u8; 4]>,
    out: &mut Vec<u8>,
) {
    append(FINAL | DEFLATED | opcode as u8, compressed, mask, out);
}

/// Appends a close frame; a longer `reason` is truncated.
pub(super) fn append_close(
    code: Option<u16>,
    reason: &str,
    mask: Option<[u8; 4]>,
    out: &mut Vec<u8>,
) {
    let mut payload = [0; CONTROL_BYTES_MAX];
    let mut length = 0;
    if let Some(code) = code {
        let most = reason.len().min(CONTROL_BYTES_MAX - 2);
        let end = (0..=most).rev().find(|&at| reason.is_char_boundary(at)).unwrap_or(0);
        let reason = &reason.as_bytes()[..end];
        length = 2 + reason.len();
        payload[..2].copy_from_slice(&code.to_be_bytes());
        payload[2..length].copy_from_slice(reason);
    }
    append_control(Opcode::Close, &payload[..length], mask, out);
}

/// Appends a control frame; a longer `payload` is truncated.
pub(super) fn append_control(
    opcode: Opcode,
    payload: &[u8],
    mask: Option<[u8; 4]>,
    out: &mut Vec<u8>,
) {
    let payload = &payload[..payload.len().min(CONTROL_BYTES_MAX)];
    append(FINAL | opcode as u8, payload, mask, out);
}

/// The longest payload of a control frame (RFC 6455 section 5.5).
const CONTROL_BYTES_MAX: usize = 125;
const FINAL: u8 = 0x80;
const CONTINUATION: u8 = 0;
const DEFLATED: u8 = 0x40;
const MASKED: u8 = 0x80;

fn append(first: u8, payload: &[u8], mask: Option<[u8; 4]>, out: &mut Vec<u8>) {
    let flag = if mask.is_some() { MASKED } else { 0 };
    out.reserve(payload.len() + 14);
    match payload.len() {
        short @ 0..126 => out.extend_from_slice(&[first, flag | short as u8]),
        medium @ 126..0x1_0000 => {
            let [high, low] = (medium as u16).to_be_bytes();
            out.extend_from_slice(&[first, flag | 126, high, low]);
        }
        long => {
            out.extend_from_slice(&[first, flag | 127]);
            out.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    if let Some(key) = mask {
        out.extend_from_slice(&key);
    }
    let start = out.len();
    out.extend_from_slice(payload);
    if let Some(key) = mask {
        mask::apply(key, 0, &mut out[start..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc_are_written() {
        // RFC 6455 section 5.7.
        let frame = |opcode, payload: &[u8], mask| {
            let mut out = Vec::new();
            append(FINAL | opcode as u8, payload, mask, &mut out);
            out
        };
        assert_eq!(frame(Opcode::Text, b"Hello", None), b"\x81\x05Hello");
        let masked = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        assert_eq!(frame(Opcode::Text, b"Hello", Some([0x37, 0xfa, 0x21, 0x3d])), masked);
        assert_eq!(frame(Opcode::Ping, b"Hello", None), b"\x89\x05Hello");
        assert_eq!(frame(Opcode::Binary, &[0; 256], None)[..4], [0x82, 0x7e, 1, 0]);
        assert_eq!(
            frame(Opcode::Binary, &[0; 65_536], None)[..10],
            [0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0]
        );
    }

    #[test]
    fn a_fragmented_message_is_that_of_the_rfc() {
        // RFC 6455 section 5.7.
        let mut out = Vec::new();
        encode_fragment(Some(Opcode::Text), false, b"Hel", &mut out);
        encode_fragment(None, true, b"lo", &mut out);
        assert_eq!(out, b"\x01\x03Hel\x80\x02lo");
    }

    #[test]
    fn control_frames_are_truncated_to_125_bytes() {
        let mut out = Vec::new();
        append_control(Opcode::Ping, &[0; 200], None, &mut out);
        assert_eq!((out[1], out.len()), (125, 127));
        out.clear();
        append_close(Some(1000), &"é".repeat(100), None, &mut out);
        assert_eq!((out[1], out.len()), (124, 126), "no character is cut in two");
        out.clear();
        append_close(None, "never sent", None, &mut out);
        assert_eq!(out, [0x88, 0]);
    }
}
