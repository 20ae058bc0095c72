//! Encoded messages: sends them as WebSocket frames, or keeps them for the next answer to a
//! long-poll.

use throng_proto::phoenix::FrameKind;
use throng_proto::websocket::Opcode;

use super::client::Client;
use super::client_state::Mode;
use super::core_state::CoreState;
use super::longpoll::inbox::Entry;
use super::longpoll::session::{keep, push};

/// Sends the message in the core's buffer.
pub(crate) fn send(conn: &mut Client<'_>, core: &mut CoreState, kind: FrameKind) {
    let CoreState { frame, deflater, .. } = core;
    if let Mode::Poll(_) = conn.state().mode {
        // A long-poll's answer cannot contain binary messages.
        if kind == FrameKind::Text {
            push(conn, std::str::from_utf8(frame).unwrap_or_default());
        }
        return shrink(frame);
    }
    let (session, out) = conn.session();
    match kind {
        // Encoders append UTF-8 only.
        FrameKind::Text => {
            let text = std::str::from_utf8(frame).unwrap_or_default();
            session.text(text, Some(deflater), out);
        }
        FrameKind::Binary => session.binary(frame, Some(deflater), out),
    }
    shrink(frame);
}

/// Frees a core's buffer if a long message has made it large.
pub(crate) fn shrink(buffer: &mut Vec<u8>) {
    if buffer.capacity() > KEPT_BYTES {
        *buffer = Vec::new();
    }
}

/// Messages that were cut out, to be sent later.
pub(crate) enum Tail {
    Frames(Vec<u8>),
    Messages(Vec<Entry>),
}

/// Returns a mark behind everything sent so far.
pub(crate) fn mark(conn: &mut Client<'_>) -> usize {
    let waiting = conn.state().extra.as_ref().and_then(|extra| extra.poll.as_ref());
    match waiting.map(|poll| poll.inbox.mark()) {
        Some(messages) => messages,
        None => conn.out().len(),
    }
}

/// Cuts out everything sent since `mark`.
pub(crate) fn cut(conn: &mut Client<'_>, mark: usize) -> Tail {
    match conn.state().extra.as_mut().and_then(|extra| extra.poll.as_mut()) {
        Some(poll) => Tail::Messages(poll.inbox.cut(mark)),
        None => Tail::Frames(conn.out().split_off(mark)),
    }
}

/// Sends messages that were cut out.
pub(crate) fn append(conn: &mut Client<'_>, tail: Tail) {
    match tail {
        Tail::Frames(mut frames) => conn.out().append(&mut frames),
        Tail::Messages(messages) => {
            messages.into_iter().for_each(|message| keep(conn, message));
        }
    }
}

/// Returns the opcode of the frame for a message.
pub(crate) const fn opcode(kind: FrameKind) -> Opcode {
    match kind {
        FrameKind::Text => Opcode::Text,
        FrameKind::Binary => Opcode::Binary,
    }
}

/// The capacity that a core keeps of the buffers for encoding messages and decoding base64.
const KEPT_BYTES: usize = 64 << 10;
