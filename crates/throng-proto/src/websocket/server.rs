//! The server's end of a connection: HTTP until a request is accepted as a WebSocket, then frames.

use throng_base::Instant;

use crate::http::Request;
use crate::websocket::{Deflater, Limits, Refusal, Scratch, Upgrade, Violation};
use crate::{Input, Session};

/// What a client said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEvent<'a> {
    /// A whole request. Answer it with [`Server::respond`] or [`Server::accept`], now or later.
    Request(Request<'a>),
    /// A text message.
    Text(&'a str),
    /// A binary message.
    Binary(&'a [u8]),
    /// A ping. It has been answered already.
    Ping(&'a [u8]),
    /// A pong.
    Pong(&'a [u8]),
    /// The client has closed, or has answered our close. What it is owed has been appended: close the connection.
    Closed {
        /// Its close code; none where it gave none.
        code: Option<u16>,
        /// Its reason; often empty.
        reason: &'a str,
    },
    /// The client broke a rule or a limit. What it is owed has been appended: close the connection.
    Failed(Violation),
}

/// A connection's state: 24 bytes. It owns heap only while a request or a message is unfinished.
#[derive(Debug)]
pub struct Server {
    deadline: Instant,
}

impl Server {
    /// A connection that was accepted at `now`: its first request is due after `handshake_timeout_ms`.
    pub fn new(now: Instant, limits: &Limits) -> Self {
        let _ = limits;
        Self { deadline: now }
    }

    /// Appends the answer to the oldest unanswered request. `false`: the connection does not stay
    /// open (the client asked for that, or is HTTP/1.0); close it once the answer is sent.
    #[must_use]
    pub fn respond(
        &mut self,
        _status: u16,
        _headers: &[(&str, &str)],
        _body: &[u8],
        _out: &mut Vec<u8>,
    ) -> bool {
        todo!()
    }

    /// Whether `request` asks for a WebSocket as RFC 6455 section 4.2.1 wants it.
    pub fn check_upgrade(&self, _request: &Request<'_>) -> Result<Upgrade, Refusal> {
        todo!()
    }

    /// Appends the answer 101: from here on, frames. `headers` are added to it. With `deflate`, messages may be
    /// compressed if the client offered that.
    pub fn accept(
        &mut self,
        _upgrade: &Upgrade,
        _subprotocol: Option<&str>,
        _headers: &[(&str, &str)],
        _deflate: bool,
        _out: &mut Vec<u8>,
    ) {
        todo!()
    }

    /// Answers a request that cannot be upgraded. As [`Self::respond`].
    #[must_use]
    pub fn refuse(&mut self, _refusal: &Refusal, _out: &mut Vec<u8>) -> bool {
        todo!()
    }

    /// Whether frames go in and out, and no close frame has been sent.
    pub fn is_open(&self) -> bool {
        todo!()
    }

    /// Whether the client takes frames of [`super::encode_deflated`].
    pub fn is_deflated(&self) -> bool {
        todo!()
    }

    /// Appends a text message; compressed if there is a deflater and the client takes it. Nothing after a close.
    pub fn text(&self, _payload: &str, _deflater: Option<&mut Deflater>, _out: &mut Vec<u8>) {
        todo!()
    }

    /// Appends a binary message. As [`Self::text`].
    pub fn binary(&self, _payload: &[u8], _deflater: Option<&mut Deflater>, _out: &mut Vec<u8>) {
        todo!()
    }

    /// Appends a ping; of `payload` at most 125 bytes are sent.
    pub fn ping(&self, _payload: &[u8], _out: &mut Vec<u8>) {
        todo!()
    }

    /// Appends a close frame, once; of `reason` at most 123 bytes are sent. [`ServerEvent::Closed`] follows when the
    /// client has answered, [`ServerEvent::Failed`] when it does not within `close_timeout_ms`.
    pub fn close(&mut self, _code: u16, _reason: &str, _out: &mut Vec<u8>) {
        todo!()
    }
}

impl Session for Server {
    type Event<'a> = ServerEvent<'a>;
    type Scratch = Scratch;

    fn next<'a, 'i: 'a>(
        &mut self,
        _now: Instant,
        _input: &mut Input<'i>,
        _scratch: &'a mut Scratch,
        _out: &mut Vec<u8>,
    ) -> Option<ServerEvent<'a>> {
        todo!()
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }
}
