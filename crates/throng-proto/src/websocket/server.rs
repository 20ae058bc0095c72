//! The server's end of a connection: HTTP until a request is accepted as a WebSocket, then frames.

use std::io::Write as _;
use std::time::Duration;

use throng_base::Instant;

use crate::http::{self, Bounds, Fault, Partial, Persistence, Request, ResponseExpectation};
use crate::websocket::header::Role;
use crate::websocket::link::Endpoint;
use crate::websocket::read::PeerEvent;
use crate::websocket::reassembly::Reassembly;
use crate::websocket::{
    Deflater, Opcode, Refusal, Scratch, UpgradeRequest, Violation, WebSocketLimits, upgrade,
};
use crate::{Input, Session};

/// What a client said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEvent<'a> {
    /// A whole request. Answer it with [`Server::respond`], [`Server::refuse`] or [`Server::accept`], now or later;
    /// the next one is not read before.
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
pub struct WebSocketServer {
    /// [`REARM`] when the next call that knows the time and the limits is to set it.
    deadline: Instant,
    unfinished: Option<Box<Reassembly>>,
    phase: Phase,
}

/// What follows from the head of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerHead {
    /// Whether its body is to be sent: none is behind the answer to `HEAD`.
    pub wants_body: bool,
    /// Whether the connection stays open; if not, close it once the answer is sent.
    pub stays_open: bool,
}

#[derive(Debug)]
enum Phase {
    /// Requests are read one at a time.
    Http {
        /// The request that is not answered yet.
        awaited: Option<ResponseExpectation>,
        is_expired: bool,
    },
    Frames(Endpoint),
}

/// A deadline in the past: the engine calls back at once, with the time.
const REARM: Instant = Instant::ZERO;

impl WebSocketServer {
    /// A connection that was accepted at `now`: its first request is due after `handshake_timeout_ms`.
    pub fn new(now: Instant, limits: &WebSocketLimits) -> Self {
        Self {
            deadline: now + millis(limits.handshake_timeout_ms),
            unfinished: None,
            phase: Phase::Http { awaited: None, is_expired: false },
        }
    }

    /// Appends the answer to the request that was not answered yet; `content-length` and `connection` are written
    /// here. `false`: the connection does not stay open (the client asked for that, is HTTP/1.0, or has
    /// failed in the meantime); close it once the answer is sent.
    #[must_use]
    pub fn respond(
        &mut self,
        status: u16,
        headers: &[(&str, &str)],
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> bool {
        let AnswerHead { wants_body, stays_open } =
            self.respond_head(status, headers, body.len(), out);
        if wants_body {
            out.extend_from_slice(body);
        }
        stays_open
    }

    /// Appends the head of the answer, as [`Self::respond`] does: a body of `length` bytes is for
    /// the caller to send, if it is wanted.
    #[must_use]
    pub fn respond_head(
        &mut self,
        status: u16,
        headers: &[(&str, &str)],
        length: usize,
        out: &mut Vec<u8>,
    ) -> AnswerHead {
        let Some(awaited) = self.take_awaited() else {
            let stays_open = matches!(self.phase, Phase::Http { .. });
            return AnswerHead { wants_body: false, stays_open };
        };
        let ended = if awaited.keep_alive { Persistence::Stays } else { Persistence::Closes };
        http::write_answer(status, headers, length, ended, out);
        if awaited.keep_alive {
            self.deadline = REARM;
        } else {
            self.end();
        }
        AnswerHead { wants_body: !awaited.head_only, stays_open: awaited.keep_alive }
    }

    /// The answer to the request that was not answered yet is the last one on this connection, whatever the client wants.
    pub fn answer_last(&mut self) {
        if let Phase::Http { awaited: Some(awaited), .. } = &mut self.phase {
            awaited.keep_alive = false;
        }
    }

    /// Whether `request` asks for a WebSocket as RFC 6455 section 4.2.1 wants it.
    pub fn check_upgrade(&self, request: &Request<'_>) -> Result<UpgradeRequest, Refusal> {
        let is_11 =
            matches!(self.phase, Phase::Http { awaited: Some(awaited), .. } if awaited.is_11);
        upgrade::check(request, is_11)
    }

    /// Answers a request that cannot be upgraded. As [`Self::respond`].
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
        self.respond(refusal.status, headers, refusal.what.as_bytes(), out)
    }

    /// Appends the answer 101: from here on, frames. `headers` are added to it. With `deflate`, messages are
    /// compressed if the client offers that.
    pub fn accept(
        &mut self,
        upgrade: &UpgradeRequest,
        subprotocol: Option<&str>,
        headers: &[(&str, &str)],
        deflate: bool,
        out: &mut Vec<u8>,
    ) {
        if self.take_awaited().is_none() {
            return;
        }
        out.extend_from_slice(
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
              sec-websocket-accept: ",
        );
        out.extend_from_slice(&upgrade.accept);
        out.extend_from_slice(b"\r\n");
        let agreed = upgrade.deflate.filter(|_| deflate);
        if let Some(agreed) = agreed {
            agreed.append(out);
        }
        if let Some(subprotocol) = subprotocol {
            http::fields(&[("sec-websocket-protocol", subprotocol)], out);
        }
        http::fields(headers, out);
        out.extend_from_slice(b"\r\n");
        // Frames that came early wait for a call.
        self.deadline = if self.unfinished.is_none() { Instant::FAR } else { REARM };
        self.phase = Phase::Frames(Endpoint::new(agreed.map_or(0, |agreed| agreed.bits)));
    }

    /// Whether frames go in and out, and no close frame has been sent.
    pub fn is_open(&self) -> bool {
        self.link().is_some_and(Endpoint::is_open)
    }

    /// Whether the client takes frames of [`super::encode_deflated`]. One that asked for a smaller window
    /// does not; [`Self::text`] compresses for it all the same.
    pub fn is_deflated(&self) -> bool {
        self.link().is_some_and(Endpoint::is_deflated)
    }

    /// Appends a text message; compressed if there is a deflater and the client takes it. Nothing unless it is open.
    pub fn text(&self, payload: &str, deflater: Option<&mut Deflater>, out: &mut Vec<u8>) {
        if let Some(link) = self.link() {
            link.message(Opcode::Text, payload.as_bytes(), None, deflater, out);
        }
    }

    /// Appends a binary message. As [`Self::text`].
    pub fn binary(&self, payload: &[u8], deflater: Option<&mut Deflater>, out: &mut Vec<u8>) {
        if let Some(link) = self.link() {
            link.message(Opcode::Binary, payload, None, deflater, out);
        }
    }

    /// Appends a ping; of `payload` at most 125 bytes are sent.
    pub fn ping(&self, payload: &[u8], out: &mut Vec<u8>) {
        if let Some(link) = self.link() {
            link.ping(payload, None, out);
        }
    }

    /// Appends a close frame, once; of `reason` at most 123 bytes are sent. [`ServerEvent::Closed`] follows when the
    /// client has answered, [`ServerEvent::Failed`] when it does not within `close_timeout_ms`.
    pub fn close(&mut self, code: u16, reason: &str, out: &mut Vec<u8>) {
        if let Phase::Frames(link) = &mut self.phase
            && link.close(code, reason, None, out)
        {
            self.deadline = REARM;
        }
    }

    const fn link(&self) -> Option<&Endpoint> {
        match &self.phase {
            Phase::Frames(link) => Some(link),
            Phase::Http { .. } => None,
        }
    }

    fn take_awaited(&mut self) -> Option<ResponseExpectation> {
        match &mut self.phase {
            Phase::Http { awaited, .. } => {
                debug_assert!(awaited.is_some(), "an answer to no request");
                awaited.take()
            }
            // The connection has failed while the answer was thought over.
            Phase::Frames(_) => None,
        }
    }

    fn end(&mut self) {
        *self = Self {
            deadline: Instant::FAR,
            unfinished: None,
            phase: Phase::Frames(Endpoint::done()),
        };
    }
}

/// A connection that was accepted just now: its time counts from the first call that knows it.
impl Default for WebSocketServer {
    fn default() -> Self {
        Self {
            deadline: REARM,
            unfinished: None,
            phase: Phase::Http { awaited: None, is_expired: false },
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
                Phase::Frames(link) if link.is_closing() => {
                    now + millis(scratch.limits.close_timeout_ms)
                }
                Phase::Frames(_) => Instant::FAR,
            };
        }
        let message_timeout_ms = scratch.limits.message_timeout_ms;
        let Phase::Frames(link) = &mut self.phase else {
            return self.next_request(now, input, scratch, out);
        };
        let said = link.next(Role::Server, &mut self.unfinished, input, scratch, out);
        // Nothing is unfinished and nothing was: so it is nearly always.
        if self.unfinished.is_some() || self.deadline != Instant::FAR {
            let is_whole = matches!(said, Some(PeerEvent::Text(_) | PeerEvent::Binary(_)));
            self.time_message(now + millis(message_timeout_ms), is_whole);
        }
        said.map(|said| match said {
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
                    append_fault(Fault::Timeout, out);
                }
            }
            Phase::Frames(link) => link.expire(),
        }
    }
}

impl WebSocketServer {
    /// Gives a message that has begun its time, which whatever is said in its midst does not move, and takes it back
    /// from one that is whole.
    #[cold]
    fn time_message(&mut self, until: Instant, is_whole: bool) {
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
        let Phase::Http { awaited, is_expired } = &mut self.phase else { return None };
        let Scratch { limits, room, body_path, .. } = scratch;
        if *is_expired {
            self.end();
            return Some(ServerEvent::Failed(Violation::Http(Fault::Timeout)));
        }
        if awaited.is_some() {
            if input.is_empty() {
                return None;
            }
            let unfinished = self.unfinished.get_or_insert_default();
            if unfinished.early.keep(input.take_all()) <= limits.head_bytes_max {
                return None;
            }
            // An HTTP status would be taken for the answer that is awaited.
            self.end();
            return Some(ServerEvent::Failed(Violation::Impatient));
        }
        let bounds = Bounds {
            head_bytes_max: limits.head_bytes_max,
            body_bytes_max: limits.body_bytes_max,
            body_path: body_path.as_deref(),
        };
        let mut begun = Partial::default();
        let partial = self.unfinished.as_mut().map_or(&mut begun, |kept| &mut kept.early);
        match http::read_request(partial, input, &mut room.whole, bounds, out) {
            Ok(Some((request, expected))) => {
                *awaited = Some(expected);
                self.deadline = Instant::FAR;
                self.unfinished.take_if(|kept| kept.is_empty());
                Some(ServerEvent::Request(request))
            }
            Ok(None) => {
                if !begun.is_empty() {
                    self.unfinished = Some(Box::new(Reassembly::of_early(begun)));
                    self.deadline = now + millis(limits.handshake_timeout_ms);
                }
                None
            }
            Err(fault) => {
                append_fault(fault, out);
                self.end();
                Some(ServerEvent::Failed(Violation::Http(fault)))
            }
        }
    }
}

/// The last answer on this connection.
fn append_fault(fault: Fault, out: &mut Vec<u8>) {
    let mut body = Vec::new();
    let _ = write!(body, "{fault}");
    let headers = [("content-type", "text/plain")];
    http::write_response(fault.status(), &headers, &body, false, out);
}

pub(super) fn millis(count: u32) -> Duration {
    Duration::from_millis(u64::from(count))
}
