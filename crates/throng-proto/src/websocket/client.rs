//! The client session: one upgrade request, then frames.

use throng_base::Instant;

use crate::http::{self, Response};
use crate::websocket::context::DeflateWindow;
use crate::websocket::endpoint::Endpoint;
use crate::websocket::header::Role;
use crate::websocket::opening_handshake::{HandshakeResponse, OpeningHandshake};
use crate::websocket::read::PeerEvent;
use crate::websocket::reassembly::Reassembly;
use crate::websocket::server::millis;
use crate::websocket::{
    DeflateAgreement, DeflateOffer, Deflater, Opcode, Scratch, Violation, upgrade,
};
use crate::{Input, Session};

/// An event from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEvent<'a> {
    /// The handshake is done.
    Opened {
        /// The subprotocol that the server chose.
        subprotocol: Option<&'a str>,
        /// What was agreed about compression; `None` without it.
        deflate: Option<DeflateAgreement>,
    },
    /// The server responded with a status other than 101: close the connection. The body of the
    /// response is not read.
    Refused(Response<'a>),
    /// A text message.
    Text(&'a str),
    /// A binary message.
    Binary(&'a [u8]),
    /// A ping. The session has answered it already.
    Ping(&'a [u8]),
    /// A pong.
    Pong(&'a [u8]),
    /// The server sent a close frame, first or in answer to ours. The session has appended its
    /// answer if one is due. Close the connection, or let the server close it, as RFC 6455 section
    /// 7.1.1 prefers.
    Closed {
        /// The server's close code, if it sent one.
        code: Option<u16>,
        /// The server's close reason; often empty.
        reason: &'a str,
    },
    /// The server broke a rule or a limit. The session has appended a close frame if one is due.
    /// Close the connection.
    Failed(Violation),
}

/// The parameters of the upgrade request.
#[derive(Clone, Copy, Debug)]
pub struct ClientHandshake<'a> {
    /// The `host` header: name or address, and the port unless it is 80.
    pub host: &'a str,
    /// The request target: `/socket/websocket?vsn=2.0.0`.
    pub path_and_query: &'a str,
    /// Additional header fields.
    pub headers: &'a [(&'a str, &'a str)],
    /// The offered subprotocols, in order of preference.
    pub subprotocols: &'a [&'a str],
    /// The offers of permessage-deflate, in order of preference. None for no compression.
    pub deflate: &'a [DeflateOffer],
    /// 16 random bytes (RFC 6455 section 4.1).
    pub key: [u8; 16],
}

/// The state of a client connection: 24 bytes. It owns heap memory only during the handshake and
/// while a message is incomplete, and the contexts that it takes over: at most 32 KiB for what it
/// received compressed, and 8 KiB for what it sent.
///
/// It has no deadline for the handshake: the caller decides how long a connect may take.
#[derive(Debug)]
pub struct WebSocketClient {
    /// The deadline; [`REARM`] makes the next call that receives the time and the limits set it.
    deadline: Instant,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    New,
    Handshake(Box<OpeningHandshake>),
    Frames { endpoint: Endpoint, unfinished: Option<Box<Reassembly>> },
}

const REARM: Instant = Instant::ZERO;

impl WebSocketClient {
    /// Creates a session before its handshake.
    pub const fn new() -> Self {
        Self { deadline: Instant::FAR, phase: Phase::New }
    }

    /// Appends the request of the handshake (RFC 6455 section 4.1).
    pub fn begin(&mut self, handshake: &ClientHandshake<'_>, out: &mut Vec<u8>) {
        let key = upgrade::encode_key(handshake.key);
        // Base64 is ASCII.
        let key = str::from_utf8(&key).unwrap_or_default();
        let subprotocols = handshake.subprotocols.join(", ");
        out.extend_from_slice(b"GET ");
        // Bytes that would end the target are removed.
        out.extend(handshake.path_and_query.split(['\r', '\n', ' ']).flat_map(str::bytes));
        out.extend_from_slice(b" HTTP/1.1\r\n");
        http::write_fields(
            &[
                ("host", handshake.host),
                ("upgrade", "websocket"),
                ("connection", "Upgrade"),
                ("sec-websocket-key", key),
                ("sec-websocket-version", "13"),
            ],
            out,
        );
        if !handshake.deflate.is_empty() {
            let offers: Vec<_> = handshake.deflate.iter().map(DeflateOffer::to_string).collect();
            http::write_fields(&[("sec-websocket-extensions", &offers.join(", "))], out);
        }
        if !subprotocols.is_empty() {
            http::write_fields(&[("sec-websocket-protocol", &subprotocols)], out);
        }
        http::write_fields(handshake.headers, out);
        out.extend_from_slice(b"\r\n");
        let opening =
            OpeningHandshake::new(upgrade::accept_value(key), handshake.deflate, subprotocols);
        self.phase = Phase::Handshake(Box::new(opening));
    }

    /// Reports whether the upgrade request was sent and the response has not arrived.
    pub fn is_in_handshake(&self) -> bool {
        matches!(self.phase, Phase::Handshake(_))
    }

    /// Returns what was received of an incomplete response to the upgrade request, before the
    /// present input.
    pub fn response_so_far(&self) -> &[u8] {
        match &self.phase {
            Phase::Handshake(opening) => opening.received(),
            Phase::New | Phase::Frames { .. } => &[],
        }
    }

    /// Returns the bytes that were received of an incomplete message; `None` if none has begun.
    pub fn unfinished_bytes(&self) -> Option<usize> {
        match &self.phase {
            Phase::Frames { unfinished: Some(unfinished), .. } => unfinished.message_bytes(),
            Phase::Frames { .. } | Phase::New | Phase::Handshake(_) => None,
        }
    }

    /// Reports whether the connection carries frames and no close frame has been sent.
    pub fn is_open(&self) -> bool {
        self.endpoint().is_some_and(Endpoint::is_open)
    }

    /// Reports whether the server accepts messages that were compressed with the largest window.
    pub fn is_deflated(&self) -> bool {
        self.endpoint().is_some_and(Endpoint::is_deflated)
    }

    /// Appends a text message, if the connection is open. The message is compressed if there is a
    /// deflater and the server accepts compression.
    pub fn text(
        &mut self,
        payload: &str,
        mask: [u8; 4],
        deflater: Option<&mut Deflater>,
        out: &mut Vec<u8>,
    ) {
        self.write_message(Opcode::Text, payload.as_bytes(), mask, deflater, out);
    }

    /// Appends a binary message, if the connection is open. It is compressed like [`Self::text`].
    pub fn binary(
        &mut self,
        payload: &[u8],
        mask: [u8; 4],
        deflater: Option<&mut Deflater>,
        out: &mut Vec<u8>,
    ) {
        self.write_message(Opcode::Binary, payload, mask, deflater, out);
    }

    /// Appends a ping with at most 125 bytes of `payload`.
    pub fn ping(&self, payload: &[u8], mask: [u8; 4], out: &mut Vec<u8>) {
        if let Some(endpoint) = self.endpoint() {
            endpoint.write_ping(payload, Some(mask), out);
        }
    }

    /// Appends a pong that no ping asked for, with at most 125 bytes of `payload` (RFC 6455 section
    /// 5.5.3).
    pub fn pong(&self, payload: &[u8], mask: [u8; 4], out: &mut Vec<u8>) {
        if let Some(endpoint) = self.endpoint() {
            endpoint.write_pong(payload, Some(mask), out);
        }
    }

    /// Appends a close frame with at most 123 bytes of `reason`, once. [`ClientEvent::Closed`]
    /// follows when the server answers it, [`ClientEvent::Failed`] when it does not answer within
    /// `close_timeout_ms`.
    pub fn close(&mut self, code: u16, reason: &str, mask: [u8; 4], out: &mut Vec<u8>) {
        if let Phase::Frames { endpoint, .. } = &mut self.phase
            && endpoint.write_close(code, reason, Some(mask), out)
        {
            self.deadline = REARM;
        }
    }

    fn write_message(
        &mut self,
        opcode: Opcode,
        payload: &[u8],
        mask: [u8; 4],
        deflater: Option<&mut Deflater>,
        out: &mut Vec<u8>,
    ) {
        if let Phase::Frames { endpoint, unfinished } = &mut self.phase {
            endpoint.write_in_context(opcode, payload, mask, deflater, unfinished, out);
        }
    }

    const fn endpoint(&self) -> Option<&Endpoint> {
        match &self.phase {
            Phase::Frames { endpoint, .. } => Some(endpoint),
            Phase::New | Phase::Handshake(_) => None,
        }
    }
}

/// Returns how the client compresses, and how the server does.
const fn windows(agreement: DeflateAgreement) -> [DeflateWindow; 2] {
    let DeflateAgreement { client_window_bits, server_window_bits, .. } = agreement;
    [
        DeflateWindow { bits: client_window_bits, takes_over: agreement.client_takes_over },
        DeflateWindow { bits: server_window_bits, takes_over: agreement.server_takes_over },
    ]
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
        let Phase::Frames { endpoint, unfinished } = &mut self.phase else {
            return self.next_response(input, scratch);
        };
        if self.deadline == REARM {
            self.deadline = now + millis(scratch.limits.close_timeout_ms);
        }
        endpoint.next(Role::Client, unfinished, input, scratch, out).map(|event| match event {
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
        if let Phase::Frames { endpoint, .. } = &mut self.phase {
            endpoint.handle_timeout();
        }
    }
}

impl WebSocketClient {
    #[cold]
    fn next_response<'a, 'i: 'a>(
        &mut self,
        input: &mut Input<'i>,
        scratch: &'a mut Scratch,
    ) -> Option<ClientEvent<'a>> {
        let Phase::Handshake(opening) = &mut self.phase else {
            input.take_all();
            return None;
        };
        let read =
            opening.read_response(input, &mut scratch.buffers, scratch.limits.head_bytes_max);
        let answer = read.transpose()?.and_then(|head| opening.check_response(head));
        let (endpoint, event) = match answer {
            Ok(HandshakeResponse::Opened { subprotocol, deflate }) => {
                let [own, servers] = deflate.map_or([DeflateWindow::NONE; 2], windows);
                (Endpoint::new(own, servers), ClientEvent::Opened { subprotocol, deflate })
            }
            Ok(HandshakeResponse::Refused(response)) => {
                (Endpoint::closed(), ClientEvent::Refused(response))
            }
            Err(violation) => (Endpoint::closed(), ClientEvent::Failed(violation)),
        };
        self.phase = Phase::Frames { endpoint, unfinished: None };
        Some(event)
    }
}
