//! The server session: HTTP until it accepts an upgrade request, then frames.

use std::io::Write as _;
use std::time::Duration;

use throng_base::Instant;

use crate::http::{
    self, PendingInput, Persistence, Request, RequestError, RequestLimits, ResponseExpectation,
};
use crate::websocket::context::DeflateWindow;
use crate::websocket::endpoint::Endpoint;
use crate::websocket::header::Role;
use crate::websocket::read::PeerEvent;
use crate::websocket::reassembly::Reassembly;
use crate::websocket::{
    Deflater, Opcode, Refusal, Scratch, UpgradeRequest, Violation, WebSocketLimits, upgrade,
};
use crate::{Input, Session};

/// An event from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEvent<'a> {
    /// A complete request. Respond with [`WebSocketServer::respond`], [`WebSocketServer::refuse`]
    /// or [`WebSocketServer::accept`], now or later; the session does not read the next request
    /// before that.
    Request(Request<'a>),
    /// A text message.
    Text(&'a str),
    /// A binary message.
    Binary(&'a [u8]),
    /// A ping. The session has answered it already.
    Ping(&'a [u8]),
    /// A pong.
    Pong(&'a [u8]),
    /// The client sent a close frame, first or in answer to ours. The session has appended its
    /// answer if one is due. Close the connection.
    Closed {
        /// The client's close code, if it sent one.
        code: Option<u16>,
        /// The client's close reason; often empty.
        reason: &'a str,
    },
    /// The client broke a rule or a limit. The session has appended a response or a close frame if
    /// one is due. Close the connection.
    Failed(Violation),
}

/// The state of a server connection: 24 bytes. It owns heap memory only while a request or a
/// message is incomplete.
#[derive(Debug)]
pub struct WebSocketServer {
    /// The deadline; [`REARM`] makes the next call that receives the time and the limits set it.
    deadline: Instant,
    unfinished: Option<Box<Reassembly>>,
    phase: Phase,
}

/// The consequences of a response head for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseOutcome {
    /// Requires the caller to send the body; the response to `HEAD` has none.
    pub sends_body: bool,
    /// Keeps the connection open; otherwise close it once the response is sent.
    pub keep_alive: bool,
}

#[derive(Debug)]
enum Phase {
    /// HTTP: requests are read one at a time.
    Http {
        /// The properties of the response that is due, if one is.
        expectation: Option<ResponseExpectation>,
        is_expired: bool,
    },
    Frames(Endpoint),
}

/// A deadline in the past, which makes the engine call back at once, with the time.
const REARM: Instant = Instant::ZERO;

impl WebSocketServer {
    /// Creates the session of a connection that was accepted at `now`. Its first request is due
    /// after `handshake_timeout_ms`.
    pub fn new(now: Instant, limits: &WebSocketLimits) -> Self {
        Self {
            deadline: now + millis(limits.handshake_timeout_ms),
            unfinished: None,
            phase: Phase::Http { expectation: None, is_expired: false },
        }
    }

    /// Appends the response to the current request; adds `content-length` and `connection`. Returns
    /// whether the connection stays open. It does not if the client closes it, speaks HTTP/1.0, or
    /// has failed in the meantime: then close it once the response is sent.
    #[must_use]
    pub fn respond(
        &mut self,
        status: u16,
        headers: &[(&str, &str)],
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> bool {
        let ResponseOutcome { sends_body, keep_alive } =
            self.respond_head(status, headers, body.len(), out);
        if sends_body {
            out.extend_from_slice(body);
        }
        keep_alive
    }

    /// Appends the head of the response like [`Self::respond`]. The caller sends the body of
    /// `length` bytes if the outcome requires it.
    #[must_use]
    pub fn respond_head(
        &mut self,
        status: u16,
        headers: &[(&str, &str)],
        length: usize,
        out: &mut Vec<u8>,
    ) -> ResponseOutcome {
        let Some(expectation) = self.take_expectation() else {
            let keep_alive = matches!(self.phase, Phase::Http { .. });
            return ResponseOutcome { sends_body: false, keep_alive };
        };
        let persistence =
            if expectation.keep_alive { Persistence::KeepAlive } else { Persistence::Close };
        http::write_response_head(status, headers, length, persistence, out);
        if expectation.keep_alive {
            self.deadline = REARM;
        } else {
            self.shut_down();
        }
        ResponseOutcome { sends_body: !expectation.head_only, keep_alive: expectation.keep_alive }
    }

    /// Makes the response to the current request the last one on this connection, whatever the
    /// client requests.
    pub fn close_after_response(&mut self) {
        if let Phase::Http { expectation: Some(expectation), .. } = &mut self.phase {
            expectation.keep_alive = false;
        }
    }

    /// Checks that `request` is a valid upgrade request (RFC 6455 section 4.2.1).
    pub fn check_upgrade(&self, request: &Request<'_>) -> Result<UpgradeRequest, Refusal> {
        let is_http_11 = match self.phase {
            Phase::Http { expectation: Some(expectation), .. } => expectation.is_http_11,
            Phase::Http { expectation: None, .. } | Phase::Frames(_) => false,
        };
        upgrade::check(request, is_http_11)
    }

    /// Responds to a request that cannot be upgraded. Returns the same as [`Self::respond`].
    #[must_use]
    pub fn refuse(&mut self, refusal: &Refusal, out: &mut Vec<u8>) -> bool {
        let headers: &[(&str, &str)] = match refusal.status {
            405 => &[("allow", "GET")],
            426 => &[
                ("upgrade", "websocket"),
                ("connection", "upgrade"),
                ("sec-websocket-version", "13"),
            ],
            _ => &[],
        };
        self.respond(refusal.status, headers, refusal.reason.as_bytes(), out)
    }

    /// Appends the response 101 with the additional `headers`; from then on the connection carries
    /// frames. With `deflate`, messages are compressed if the client offers that.
    pub fn accept(
        &mut self,
        upgrade: &UpgradeRequest,
        subprotocol: Option<&str>,
        headers: &[(&str, &str)],
        deflate: bool,
        out: &mut Vec<u8>,
    ) {
        if self.take_expectation().is_none() {
            return;
        }
        out.extend_from_slice(
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
              sec-websocket-accept: ",
        );
        out.extend_from_slice(&upgrade.accept);
        out.extend_from_slice(b"\r\n");
        let negotiated = upgrade.deflate.filter(|_| deflate);
        if let Some(negotiated) = negotiated {
            negotiated.append(out);
        }
        if let Some(subprotocol) = subprotocol {
            http::write_fields(&[("sec-websocket-protocol", subprotocol)], out);
        }
        http::write_fields(headers, out);
        out.extend_from_slice(b"\r\n");
        // Frames that arrived early wait for the next call.
        self.deadline = if self.unfinished.is_none() { Instant::FAR } else { REARM };
        let window = negotiated.map_or(DeflateWindow::NONE, |negotiated| {
            DeflateWindow::of_each_message(negotiated.window_bits)
        });
        self.phase = Phase::Frames(Endpoint::new(window, window));
    }

    /// Reports whether the connection carries frames and no close frame has been sent.
    pub fn is_open(&self) -> bool {
        self.endpoint().is_some_and(Endpoint::is_open)
    }

    /// Reports whether the client accepts the frames of [`super::encode_deflated`]. A client that
    /// requested a smaller window does not, but [`Self::text`] compresses for it.
    pub fn is_deflated(&self) -> bool {
        self.endpoint().is_some_and(Endpoint::is_deflated)
    }

    /// Appends a text message, if the connection is open. The message is compressed if there is a
    /// deflater and the client accepts compression.
    pub fn text(&self, payload: &str, deflater: Option<&mut Deflater>, out: &mut Vec<u8>) {
        if let Some(endpoint) = self.endpoint() {
            endpoint.write_message(Opcode::Text, payload.as_bytes(), None, deflater, out);
        }
    }

    /// Appends a binary message, if the connection is open. It is compressed like [`Self::text`].
    pub fn binary(&self, payload: &[u8], deflater: Option<&mut Deflater>, out: &mut Vec<u8>) {
        if let Some(endpoint) = self.endpoint() {
            endpoint.write_message(Opcode::Binary, payload, None, deflater, out);
        }
    }

    /// Appends a ping with at most 125 bytes of `payload`.
    pub fn ping(&self, payload: &[u8], out: &mut Vec<u8>) {
        if let Some(endpoint) = self.endpoint() {
            endpoint.write_ping(payload, None, out);
        }
    }

    /// Appends a close frame with at most 123 bytes of `reason`, once. [`ServerEvent::Closed`]
    /// follows when the client answers it, [`ServerEvent::Failed`] when it does not answer within
    /// `close_timeout_ms`.
    pub fn close(&mut self, code: u16, reason: &str, out: &mut Vec<u8>) {
        if let Phase::Frames(endpoint) = &mut self.phase
            && endpoint.write_close(code, reason, None, out)
        {
            self.deadline = REARM;
        }
    }

    const fn endpoint(&self) -> Option<&Endpoint> {
        match &self.phase {
            Phase::Frames(endpoint) => Some(endpoint),
            Phase::Http { .. } => None,
        }
    }

    fn take_expectation(&mut self) -> Option<ResponseExpectation> {
        match &mut self.phase {
            Phase::Http { expectation, .. } => {
                debug_assert!(expectation.is_some(), "a response without a request");
                expectation.take()
            }
            // The connection failed before the application responded.
            Phase::Frames(_) => None,
        }
    }

    fn shut_down(&mut self) {
        *self = Self {
            deadline: Instant::FAR,
            unfinished: None,
            phase: Phase::Frames(Endpoint::closed()),
        };
    }
}

/// Creates the session of a connection that was accepted just now. Its time counts from the first
/// call that receives the time.
impl Default for WebSocketServer {
    fn default() -> Self {
        Self {
            deadline: REARM,
            unfinished: None,
            phase: Phase::Http { expectation: None, is_expired: false },
        }
    }
}

impl Session for WebSocketServer {
    type Event<'a> = ServerEvent<'a>;
    type Scratch = Scratch;

    #[inline]
    fn next<'a, 'i: 'a>(
        &mut self,
        now: Instant,
        input: &mut Input<'i>,
        scratch: &'a mut Scratch,
        out: &mut Vec<u8>,
    ) -> Option<ServerEvent<'a>> {
        if self.deadline == REARM {
            self.deadline = match &self.phase {
                Phase::Http { .. } => now + millis(scratch.limits.handshake_timeout_ms),
                Phase::Frames(endpoint) if endpoint.is_closing() => {
                    now + millis(scratch.limits.close_timeout_ms)
                }
                Phase::Frames(_) => Instant::FAR,
            };
        }
        let message_timeout_ms = scratch.limits.message_timeout_ms;
        let Phase::Frames(endpoint) = &mut self.phase else {
            return self.next_request(now, input, scratch, out);
        };
        let event = endpoint.next(Role::Server, &mut self.unfinished, input, scratch, out);
        // Nearly always nothing is incomplete, now or before.
        if self.unfinished.is_some() || self.deadline != Instant::FAR {
            let is_whole = matches!(event, Some(PeerEvent::Text(_) | PeerEvent::Binary(_)));
            self.update_message_deadline(now + millis(message_timeout_ms), is_whole);
        }
        event.map(|event| match event {
            PeerEvent::Text(text) => ServerEvent::Text(text),
            PeerEvent::Binary(bytes) => ServerEvent::Binary(bytes),
            PeerEvent::Ping(payload) => ServerEvent::Ping(payload),
            PeerEvent::Pong(payload) => ServerEvent::Pong(payload),
            PeerEvent::Closed { code, reason } => {
                self.deadline = Instant::FAR;
                ServerEvent::Closed { code, reason }
            }
            PeerEvent::Failed(violation) => {
                self.deadline = Instant::FAR;
                ServerEvent::Failed(violation)
            }
        })
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Vec<u8>) {
        if self.deadline == REARM || now < self.deadline {
            return;
        }
        self.deadline = Instant::FAR;
        match &mut self.phase {
            Phase::Http { is_expired, .. } => {
                *is_expired = true;
                if self.unfinished.is_some() {
                    append_error_response(RequestError::Timeout, out);
                }
            }
            Phase::Frames(endpoint) => endpoint.handle_timeout(),
        }
    }
}

impl WebSocketServer {
    /// Starts the deadline of a message that has begun, and clears it once the message is complete.
    /// Frames in between do not move it.
    #[cold]
    fn update_message_deadline(&mut self, until: Instant, is_whole: bool) {
        if !self.is_open() {
            return;
        }
        if self.unfinished.is_none() || is_whole {
            self.deadline = Instant::FAR;
        } else if self.deadline == Instant::FAR {
            self.deadline = until;
        }
    }

    #[cold]
    fn next_request<'a, 'i: 'a>(
        &mut self,
        now: Instant,
        input: &mut Input<'i>,
        scratch: &'a mut Scratch,
        out: &mut Vec<u8>,
    ) -> Option<ServerEvent<'a>> {
        let Phase::Http { expectation, is_expired } = &mut self.phase else { return None };
        let Scratch { limits, buffers, body_path, .. } = scratch;
        if *is_expired {
            self.shut_down();
            return Some(ServerEvent::Failed(Violation::Http(RequestError::Timeout)));
        }
        if expectation.is_some() {
            if input.is_empty() {
                return None;
            }
            let unfinished = self.unfinished.get_or_insert_default();
            if unfinished.early.append(input.take_all()) <= limits.head_bytes_max {
                return None;
            }
            // The client would take an HTTP status for the response that it waits for.
            self.shut_down();
            return Some(ServerEvent::Failed(Violation::DataBeforeResponse));
        }
        let request_limits = RequestLimits {
            head_bytes_max: limits.head_bytes_max,
            body_bytes_max: limits.body_bytes_max,
            body_path: body_path.as_deref(),
        };
        let mut started = PendingInput::default();
        let partial = self.unfinished.as_mut().map_or(&mut started, |kept| &mut kept.early);
        match http::read_request(partial, input, &mut buffers.reassembled, request_limits, out) {
            Ok(Some((request, expected))) => {
                *expectation = Some(expected);
                self.deadline = Instant::FAR;
                self.unfinished.take_if(|kept| kept.is_empty());
                Some(ServerEvent::Request(request))
            }
            Ok(None) => {
                if !started.is_empty() {
                    self.unfinished = Some(Box::new(Reassembly::with_early(started)));
                    self.deadline = now + millis(limits.handshake_timeout_ms);
                }
                None
            }
            Err(error) => {
                append_error_response(error, out);
                self.shut_down();
                Some(ServerEvent::Failed(Violation::Http(error)))
            }
        }
    }
}

/// Appends the last response on this connection.
fn append_error_response(error: RequestError, out: &mut Vec<u8>) {
    let mut body = Vec::new();
    let _ = write!(body, "{error}");
    let headers = [("content-type", "text/plain")];
    http::write_response(error.status(), &headers, &body, false, out);
}

pub(super) fn millis(count: u32) -> Duration {
    Duration::from_millis(u64::from(count))
}
