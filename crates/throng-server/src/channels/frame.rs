//! How an encoded message leaves: as a WebSocket's frame, or in the next answer to a long-poll.

use throng_proto::phoenix::Kind;
use throng_proto::websocket::Opcode;

use super::core::CoreState;
use super::handler::ChannelHandler;
use crate::Connection;

/// Sends the message that stands in the core's buffer.
pub(crate) fn send(conn: &mut Connection<'_, ChannelHandler>, core: &mut CoreState, kind: Kind) {
    let CoreState { frame, deflater, .. } = core;
    let (session, out) = conn.session();
    match kind {
        // What an encoder appends is UTF-8.
        Kind::Text => {
            let text = std::str::from_utf8(frame).unwrap_or_default();
            session.text(text, Some(deflater), out);
        }
        Kind::Binary => session.binary(frame, Some(deflater), out),
    }
}

/// The frame that carries a message.
pub(crate) const fn opcode(kind: Kind) -> Opcode {
    match kind {
        Kind::Text => Opcode::Text,
        Kind::Binary => Opcode::Binary,
    }
}
