//! Frames (RFC 6455 section 5.2).

use crate::websocket::Deflater;

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// UTF-8 text.
    Text = 1,
    /// Bytes.
    Binary = 2,
    /// The end of the connection.
    Close = 8,
    /// A question whether the peer is there.
    Ping = 9,
    /// The answer to it.
    Pong = 10,
}

/// Appends one whole frame as a server sends it: unmasked, so that all receivers of a broadcast can share it.
pub fn encode_frame(_opcode: Opcode, _payload: &[u8], _out: &mut Vec<u8>) {
    todo!()
}

/// Appends one whole compressed frame as a server sends it. Every session whose `is_deflated()` holds can take it.
pub fn encode_deflated(
    _opcode: Opcode,
    _payload: &[u8],
    _deflater: &mut Deflater,
    _out: &mut Vec<u8>,
) {
    todo!()
}
