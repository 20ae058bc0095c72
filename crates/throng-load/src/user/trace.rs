//! What a user that is watched does and sees, beside its [records](super::record::Record).

use throng_proto::http::CookieRefusal;
use throng_proto::websocket::DeflateAgreement;

use crate::program::{IncomingMessage, VariableScope};

/// Event of a user that is watched. Other users give none.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TraceEvent<'a> {
    /// The user begins its present op, with these values of what it expects.
    OpBegun(VariableScope<'a>),
    /// It sends this, which is in the output already.
    Sent(Payload<'a>),
    /// This arrived.
    Received(Payload<'a>),
    /// A message arrived that is kept for the next `expect`.
    Kept,
    /// A message arrived that answers nothing.
    Discarded,
    /// An `expect` takes a message that was kept.
    TakenFromKept(IncomingMessage<'a>),
    /// Its iteration ends, with these values.
    Stored(&'a [Vec<u8>]),
    /// An answer to a request that timed out, as it seems.
    SetAside,
    /// The server has sent the status 408: it closes an idle connection.
    IdleEnded,
    /// A cookie of an answer, of this name, is not kept.
    CookieRefused(Option<&'a str>, CookieRefusal),
    /// The answer came before the server had the whole request.
    AnsweredEarly,
}

/// Unit of what a connection carries.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload<'a> {
    /// Bytes of a stream.
    Bytes(&'a [u8]),
    /// A message of a WebSocket.
    Message(IncomingMessage<'a>),
    /// The head of an HTTP request or response, or what a server sends in its place.
    Head(&'a [u8]),
    /// The body of an HTTP response: its beginning, or all of it, and its length.
    Body(&'a [u8], u64),
    /// A ping or pong of a WebSocket.
    Control(&'static str),
    /// The server's consent to compression.
    Deflate(DeflateAgreement),
    /// The close frame of a user.
    CloseFrame,
}
