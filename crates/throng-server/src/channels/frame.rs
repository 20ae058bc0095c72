//! How an encoded message leaves: as a WebSocket's frame, or in the next answer to a long-poll.

use throng_proto::phoenix::Kind;
use throng_proto::websocket::{Opcode, encode_deflated, encode_frame};

use super::core::CoreState;
use super::handler::ChannelHandler;
use crate::Connection;

/// Sends the message that stands in the core's buffer.
pub(crate) fn send(conn: &mut Connection<'_, ChannelHandler>, core: &mut CoreState, kind: Kind) {
    let (session, out) = conn.session();
    if !session.is_open() {
        return;
    }
    match session.is_deflated() {
        true => encode_deflated(opcode(kind), &core.frame, &mut core.deflater, out),
        false => encode_frame(opcode(kind), &core.frame, out),
    }
}

/// The frame that carries a message.
pub(crate) const fn opcode(kind: Kind) -> Opcode {
    match kind {
        Kind::Text => Opcode::Text,
        Kind::Binary => Opcode::Binary,
    }
}
