//! The bytes that a client of the chat writes and reads.

/// The opening handshake of RFC 6455's example, and lines of its answer.
pub(crate) const HANDSHAKE: &str = "GET /any/path HTTP/1.1\r\nHost: chat\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Version: 13\r\n\r\n";
pub(crate) const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// Makes a text message of a client, with a mask of zeros.
pub(crate) fn text(payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x81];
    match payload.len() {
        short @ 0..126 => frame.push(0x80 | short as u8),
        long => {
            frame.push(0x80 | 126);
            frame.extend((long as u16).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

/// Takes the first whole frame of a server: opcode and payload.
pub(crate) fn take(bytes: &mut Vec<u8>) -> Option<(u8, Vec<u8>)> {
    let (opcode, short) = (*bytes.first()? & 0x0f, usize::from(*bytes.get(1)?));
    let (head, length) = match short {
        126 => (4, usize::from(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]))),
        127 => panic!("a frame of more than 64 KiB"),
        short => (2, short),
    };
    if bytes.len() < head + length {
        return None;
    }
    let frame: Vec<u8> = bytes.drain(..head + length).collect();
    Some((opcode, frame[head..].to_vec()))
}

/// Takes the head of an HTTP answer.
pub(crate) fn take_head(bytes: &mut Vec<u8>) -> Option<String> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    Some(String::from_utf8(bytes.drain(..end).collect()).unwrap())
}
