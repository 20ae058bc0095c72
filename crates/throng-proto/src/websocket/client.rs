//! The client's end of a connection: one request, then frames.

use throng_base::Instant;

use crate::http::{self, Response};
use crate::websocket::header::Role;
use crate::websocket::link::Endpoint;
use crate::websocket::opening::{Answer, Opening};
use crate::websocket::read::PeerEvent;
use crate::websocket::reassembly::Reassembly;
use crate::websocket::server::millis;
use crate::websocket::{Deflater, Opcode, Scratch, Violation, extension, upgrade};
use crate::{Input, Session};

/// What a server said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEvent<'a> {
    /// The handshake is done.
    Opened {
        /// The subprotocol that the server chose.
        subprotocol: Option<&'a str>,
    },
    /// The server answered with something else than 101: close the connection. Of a body nothing is read.
    Refused(Response<'a>),
    /// A text message.
    Text(&'a str),
    /// A binary message.
    Binary(&'a [u8]),
    /// A ping. It has been answered already.
    Ping(&'a [u8]),
    /// A pong.
    Pong(&'a [u8]),
    /// The server has closed, or has answered our close. What it is owed has been appended: close the
    /// connection, or let the server do it (RFC 6455 section 7.1.1 would have it so).
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

/// A connection's state: 24 bytes. It owns heap only during the handshake and while a message is unfinished.
///
/// It has no deadline for the handshake: how long a connect may take is for whoever connects to say.
#[derive(Debug)]
pub struct WebSocketClient {
    /// [`REARM`] when the next call that knows the time and the limits is to set it.
    deadline: Instant,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    New,
    Opening(Box<Opening>),
    Frames { link: Endpoint, unfinished: Option<Box<Reassembly>> },
}

const REARM: Instant = Instant::ZERO;

impl WebSocketClient {
    /// A connection on which nothing was said.
    pub const fn new() -> Self {
        Self { deadline: Instant::FAR, phase: Phase::New }
    }

    /// Appends the request of the handshake (RFC 6455 section 4.1).
    pub fn begin(&mut self, handshake: &ClientHandshake<'_>, out: &mut Vec<u8>) {
        let key = upgrade::encode_key(handshake.key);
        // The alphabet of base64 is ASCII.
        let key = str::from_utf8(&key).unwrap_or_default();
        let subprotocols = handshake.subprotocols.join(", ");
        out.extend_from_slice(b"GET ");
        // What would end the target is left out of it.
        out.extend(handshake.path_and_query.split(['\r', '\n', ' ']).flat_map(str::bytes));
        out.extend_from_slice(b" HTTP/1.1\r\n");
        http::fields(
            &[
                ("host", handshake.host),
                ("upgrade", "websocket"),
                ("connection", "Upgrade"),
                ("sec-websocket-key", key),
                ("sec-websocket-version", "13"),
            ],
            out,
        );
        if handshake.deflate {
            http::fields(&[("sec-websocket-extensions", extension::OFFER)], out);
        }
        if !subprotocols.is_empty() {
            http::fields(&[("sec-websocket-protocol", &subprotocols)], out);
        }
        http::fields(handshake.headers, out);
        out.extend_from_slice(b"\r\n");
        let opening = Opening::new(upgrade::accept_of(key), handshake.deflate, subprotocols);
        self.phase = Phase::Opening(Box::new(opening));
    }

    /// Whether the upgrade was asked for and is not answered yet.
    pub fn is_opening(&self) -> bool {
        matches!(self.phase, Phase::Opening(_))
    }

    /// Whether frames go in and out, and no close frame has been sent.
    pub fn is_open(&self) -> bool {
        self.link().is_some_and(Endpoint::is_open)
    }

    /// Whether the server takes compressed messages.
    pub fn is_deflated(&self) -> bool {
        self.link().is_some_and(Endpoint::is_deflated)
    }

    /// Appends a text message; compressed if there is a deflater and the server takes it. Nothing unless it is open.
    pub fn text(
        &self,
        payload: &str,
        mask: [u8; 4],
        deflater: Option<&mut Deflater>,
        out: &mut Vec<u8>,
    ) {
        if let Some(link) = self.link() {
            link.message(Opcode::Text, payload.as_bytes(), Some(mask), deflater, out);
        }
    }

    /// Appends a binary message. As [`Self::text`].
    pub fn binary(
        &self,
        payload: &[u8],
        mask: [u8; 4],
        deflater: Option<&mut Deflater>,
        out: &mut Vec<u8>,
    ) {
        if let Some(link) = self.link() {
            link.message(Opcode::Binary, payload, Some(mask), deflater, out);
        }
    }

    /// Appends a ping; of `payload` at most 125 bytes are sent.
    pub fn ping(&self, payload: &[u8], mask: [u8; 4], out: &mut Vec<u8>) {
        if let Some(link) = self.link() {
            link.ping(payload, Some(mask), out);
        }
    }

    /// Appends a close frame, once; of `reason` at most 123 bytes are sent. [`ClientEvent::Closed`] follows when the
    /// server has answered, [`ClientEvent::Failed`] when it does not within `close_timeout_ms`.
    pub fn close(&mut self, code: u16, reason: &str, mask: [u8; 4], out: &mut Vec<u8>) {
        if let Phase::Frames { link, .. } = &mut self.phase
            && link.close(code, reason, Some(mask), out)
        {
            self.deadline = REARM;
        }
    }

    const fn link(&self) -> Option<&Endpoint> {
        match &self.phase {
            Phase::Frames { link, .. } => Some(link),
            Phase::New | Phase::Opening(_) => None,
        }
    }
}

impl Default for WebSocketClient {
    fn default() -> Self {
        Self::new()
    }
}

impl Session for WebSocketClient {
    type Event<'a> = ClientEvent<'a>;
    type Scratch = Scratch;

    #[inline]
    fn next<'a, 'i: 'a>(
        &mut self,
        now: Instant,
        input: &mut Input<'i>,
        scratch: &'a mut Scratch,
        out: &mut Vec<u8>,
    ) -> Option<ClientEvent<'a>> {
        let Phase::Frames { link, unfinished } = &mut self.phase else {
            return self.next_answer(input, scratch);
        };
        if self.deadline == REARM {
            self.deadline = now + millis(scratch.limits.close_timeout_ms);
        }
        link.next(Role::Client, unfinished, input, scratch, out).map(|said| match said {
            PeerEvent::Text(text) => ClientEvent::Text(text),
            PeerEvent::Binary(bytes) => ClientEvent::Binary(bytes),
            PeerEvent::Ping(payload) => ClientEvent::Ping(payload),
            PeerEvent::Pong(payload) => ClientEvent::Pong(payload),
            PeerEvent::Closed { code, reason } => {
                self.deadline = Instant::FAR;
                ClientEvent::Closed { code, reason }
            }
            PeerEvent::Failed(violation) => {
                self.deadline = Instant::FAR;
                ClientEvent::Failed(violation)
            }
        })
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn handle_timeout(&mut self, now: Instant, _out: &mut Vec<u8>) {
        if self.deadline == REARM || now < self.deadline {
            return;
        }
        self.deadline = Instant::FAR;
        if let Phase::Frames { link, .. } = &mut self.phase {
            link.expire();
        }
    }
}

impl WebSocketClient {
    #[cold]
    fn next_answer<'a, 'i: 'a>(
        &mut self,
        input: &mut Input<'i>,
        scratch: &'a mut Scratch,
    ) -> Option<ClientEvent<'a>> {
        let Phase::Opening(opening) = &mut self.phase else {
            input.take_all();
            return None;
        };
        let read = opening.read(input, &mut scratch.room.whole, scratch.limits.head_bytes_max);
        let answer = read.transpose()?.and_then(|head| opening.check(head));
        let (link, event) = match answer {
            Ok(Answer::Opened { subprotocol, bits }) => {
                (Endpoint::new(bits), ClientEvent::Opened { subprotocol })
            }
            Ok(Answer::Refused(response)) => (Endpoint::done(), ClientEvent::Refused(response)),
            Err(violation) => (Endpoint::done(), ClientEvent::Failed(violation)),
        };
        self.phase = Phase::Frames { link, unfinished: None };
        Some(event)
    }
}
