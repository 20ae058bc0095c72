//! The client's end of a connection.

use throng_base::Instant;

use crate::http::Response;
use crate::websocket::{Deflater, Scratch, Violation};
use crate::{Input, Session};

/// What a server said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEvent<'a> {
    /// The handshake is done.
    Opened {
        /// The subprotocol that the server chose.
        subprotocol: Option<&'a str>,
    },
    /// The server answered with something else than 101: close the connection.
    Refused(Response<'a>),
    /// A text message.
    Text(&'a str),
    /// A binary message.
    Binary(&'a [u8]),
    /// A ping. It has been answered already.
    Ping(&'a [u8]),
    /// A pong.
    Pong(&'a [u8]),
    /// The server has closed, or has answered our close. What it is owed has been appended: close the connection.
    Closed {
        /// Its close code; none where it gave none.
        code: Option<u16>,
        /// Its reason; often empty.
        reason: &'a str,
    },
    /// The server broke a rule or a limit. What it is owed has been appended: close the connection.
    Failed(Violation),
}

/// What to ask for.
#[derive(Clone, Copy, Debug)]
pub struct ClientHandshake<'a> {
    /// The `host` header: name or address, and the port unless it is 80.
    pub host: &'a str,
    /// The target: `/socket/websocket?vsn=2.0.0`.
    pub path_and_query: &'a str,
    /// More header fields.
    pub headers: &'a [(&'a str, &'a str)],
    /// Subprotocols, most wanted first.
    pub subprotocols: &'a [&'a str],
    /// Whether to offer permessage-deflate.
    pub deflate: bool,
    /// 16 random bytes (RFC 6455 section 4.1).
    pub key: [u8; 16],
}

/// A connection's state: at most 24 bytes. It owns heap only during the handshake and while a message is unfinished.
#[derive(Debug, Default)]
pub struct Client {}

impl Client {
    /// A connection on which nothing was said.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the request of the handshake.
    pub fn begin(&mut self, _handshake: &ClientHandshake<'_>, _out: &mut Vec<u8>) {
        todo!()
    }

    /// Whether frames go in and out, and no close frame has been sent.
    pub fn is_open(&self) -> bool {
        todo!()
    }

    /// Whether the server takes compressed messages.
    pub fn is_deflated(&self) -> bool {
        todo!()
    }

    /// Appends a text message; compressed if there is a deflater and the server takes it. Nothing unless it is open.
    pub fn text(
        &self,
        _payload: &str,
        _mask: [u8; 4],
        _deflater: Option<&mut Deflater>,
        _out: &mut Vec<u8>,
    ) {
        todo!()
    }

    /// Appends a binary message. As [`Self::text`].
    pub fn binary(
        &self,
        _payload: &[u8],
        _mask: [u8; 4],
        _deflater: Option<&mut Deflater>,
        _out: &mut Vec<u8>,
    ) {
        todo!()
    }

    /// Appends a ping; of `payload` at most 125 bytes are sent.
    pub fn ping(&self, _payload: &[u8], _mask: [u8; 4], _out: &mut Vec<u8>) {
        todo!()
    }

    /// Appends a close frame, once; of `reason` at most 123 bytes are sent. [`ClientEvent::Closed`] follows when the
    /// server has answered.
    pub fn close(&mut self, _code: u16, _reason: &str, _mask: [u8; 4], _out: &mut Vec<u8>) {
        todo!()
    }
}

impl Session for Client {
    type Event<'a> = ClientEvent<'a>;
    type Scratch = Scratch;

    fn next<'a, 'i: 'a>(
        &mut self,
        _now: Instant,
        _input: &mut Input<'i>,
        _scratch: &'a mut Scratch,
        _out: &mut Vec<u8>,
    ) -> Option<ClientEvent<'a>> {
        todo!()
    }
}
