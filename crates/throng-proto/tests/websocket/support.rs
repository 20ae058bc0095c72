//! A harness around a session.

use throng_base::Instant;
use throng_proto::websocket::{
    ClientEvent, ClientHandshake, Scratch, ServerEvent, WebSocketClient, WebSocketLimits,
    WebSocketServer, offered_subprotocols,
};
use throng_proto::{Input, Session};

/// Limits that are small enough for tests to reach them.
pub(crate) const LIMITS: WebSocketLimits = WebSocketLimits {
    head_bytes_max: 1_000,
    body_bytes_max: 100,
    frame_bytes_max: 200_000,
    message_bytes_max: 300_000,
    inflate_ratio_max: 100,
    handshake_timeout_ms: 10_000,
    message_timeout_ms: 60_000,
    close_timeout_ms: 5_000,
};

pub(crate) const REQUEST: &str = "GET /socket?vsn=2.0.0 HTTP/1.1\r\nHost: a\r\n\
    Upgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

/// Returns [`REQUEST`] with more header fields.
pub(crate) fn request(fields: &str) -> String {
    REQUEST.replace("Host", &format!("{fields}Host"))
}

/// One session with its core's scratch, the time, and its output.
pub(crate) struct Harness<S> {
    pub(crate) session: S,
    pub(crate) scratch: Scratch,
    pub(crate) now: Instant,
    /// The events, each as a short line.
    pub(crate) events: Vec<String>,
    pub(crate) out: Vec<u8>,
}

/// The text form of a session's events, and the immediate reaction of the application.
pub(crate) trait DescribeEvents: Session<Scratch = Scratch> + Sized {
    fn describe(event: Self::Event<'_>) -> String;
    /// Reacts to an event, as a handler would.
    fn react(&mut self, _event: &Self::Event<'_>, _out: &mut Vec<u8>) {}
}

impl<S: DescribeEvents> Harness<S> {
    pub(crate) fn new(session: S) -> Self {
        let scratch = Scratch::new(LIMITS, 1);
        Self { session, scratch, now: Instant::ZERO, events: Vec::new(), out: Vec::new() }
    }

    /// Delivers one receive and drains the session.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> &mut Self {
        let mut bytes = bytes.to_vec();
        let mut input = Input::new(&mut bytes);
        while let Some(event) =
            self.session.next(self.now, &mut input, &mut self.scratch, &mut self.out)
        {
            self.session.react(&event, &mut self.out);
            self.events.push(S::describe(event));
            assert!(self.events.len() < 100_000, "an event a byte at most");
        }
        assert!(input.is_empty(), "a session without further events has consumed its input");
        self
    }

    /// Moves the time forward, and runs the deadline if it has passed.
    pub(crate) fn wait_until(&mut self, millis: u64) -> &mut Self {
        self.now = Instant::from_nanos(millis * 1_000_000);
        if self.session.deadline() <= self.now {
            self.session.handle_timeout(self.now, &mut self.out);
            self.receive(b"");
        }
        self
    }

    /// Takes the bytes that the session sends.
    pub(crate) fn sent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

/// Creates a server that accepts every upgrade at once and responds to every other request with its
/// body.
pub(crate) fn server(deflate: bool) -> Harness<AcceptingServer> {
    let server = WebSocketServer::new(Instant::ZERO, &LIMITS);
    Harness::new(AcceptingServer { server, deflate })
}

/// Creates a server after the upgrade.
pub(crate) fn open_server(deflate: bool) -> Harness<AcceptingServer> {
    let mut harness = server(deflate);
    let offer = if deflate { "Sec-WebSocket-Extensions: permessage-deflate\r\n" } else { "" };
    harness.receive(request(offer).as_bytes());
    assert!(harness.session.server.is_open());
    assert_eq!(harness.session.server.is_deflated(), deflate);
    harness.events.clear();
    harness.out.clear();
    harness
}

/// Creates a client after the handshake.
pub(crate) fn open_client() -> Harness<WebSocketClient> {
    let mut harness = connecting_client(&HANDSHAKE);
    harness.receive(RESPONSE.as_bytes());
    assert!(harness.session.is_open());
    harness.events.clear();
    harness
}

/// Creates a client that has sent its handshake.
pub(crate) fn connecting_client(handshake: &ClientHandshake<'_>) -> Harness<WebSocketClient> {
    let mut harness = Harness::new(WebSocketClient::new());
    let mut request = Vec::new();
    harness.session.begin(handshake, &mut request);
    harness
}

/// The example of RFC 6455 section 1.3.
pub(crate) const HANDSHAKE: ClientHandshake<'_> = ClientHandshake {
    host: "a:1",
    path_and_query: "/chat?x=1",
    headers: &[],
    subprotocols: &[],
    deflate: &[],
    key: *b"the sample nonce",
};

pub(crate) const RESPONSE: &str = "HTTP/1.1 101 Yes\r\n\
    Upgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// Encodes a frame. The mask changes every byte of the payload.
pub(crate) fn frame(first: u8, payload: &[u8], is_masked: bool) -> Vec<u8> {
    let mut out = vec![first];
    let flag = if is_masked { 0x80 } else { 0 };
    match payload.len() {
        short @ 0..126 => out.push(flag | short as u8),
        medium @ 126..0x1_0000 => {
            out.push(flag | 126);
            out.extend((medium as u16).to_be_bytes());
        }
        long => {
            out.push(flag | 127);
            out.extend((long as u64).to_be_bytes());
        }
    }
    let mask = [0x37, 0xfa, 0x21, 0x3d];
    if is_masked {
        out.extend(mask);
        out.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, key)| byte ^ key));
    } else {
        out.extend(payload);
    }
    out
}

/// Encodes a masked frame, as a client sends it.
pub(crate) fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    frame(first, payload, true)
}

pub(crate) struct AcceptingServer {
    pub(crate) server: WebSocketServer,
    deflate: bool,
}

impl Session for AcceptingServer {
    type Event<'a> = ServerEvent<'a>;
    type Scratch = Scratch;

    fn next<'a, 'i: 'a>(
        &mut self,
        now: Instant,
        input: &mut Input<'i>,
        scratch: &'a mut Scratch,
        out: &mut Vec<u8>,
    ) -> Option<ServerEvent<'a>> {
        self.server.next(now, input, scratch, out)
    }

    fn deadline(&self) -> Instant {
        self.server.deadline()
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.server.handle_timeout(now, out);
    }
}

impl DescribeEvents for AcceptingServer {
    fn describe(event: ServerEvent<'_>) -> String {
        match event {
            ServerEvent::Request(request) => {
                let body = String::from_utf8_lossy(request.body);
                format!("{} {} {body}", request.method, request.target).trim_end().to_owned()
            }
            ServerEvent::Text(text) => line("text", text.as_bytes()),
            ServerEvent::Binary(bytes) => line("binary", bytes),
            ServerEvent::Ping(payload) => line("ping", payload),
            ServerEvent::Pong(payload) => line("pong", payload),
            ServerEvent::Closed { code, reason } => {
                format!("closed {code:?} {reason}").trim_end().to_owned()
            }
            ServerEvent::Failed(violation) => format!("failed {violation:?}"),
        }
    }

    fn react(&mut self, event: &ServerEvent<'_>, out: &mut Vec<u8>) {
        let ServerEvent::Request(request) = event else { return };
        if request.path() == "/late" {
            return;
        }
        if request.header("upgrade").is_none() {
            let _ = self.server.respond(200, &[], request.body, out);
            return;
        }
        match self.server.check_upgrade(request) {
            Ok(upgrade) => {
                let subprotocol = offered_subprotocols(request).next();
                self.server.accept(&upgrade, subprotocol, &[("server", "t")], self.deflate, out);
            }
            Err(refusal) => {
                let _ = self.server.refuse(&refusal, out);
            }
        }
    }
}

impl DescribeEvents for WebSocketClient {
    fn describe(event: ClientEvent<'_>) -> String {
        match event {
            ClientEvent::Opened { subprotocol, deflate: None } => {
                format!("opened {subprotocol:?}")
            }
            ClientEvent::Opened { deflate: Some(agreed), .. } => format!(
                "opened, contexts: server {}, client {}",
                agreed.server_takes_over, agreed.client_takes_over
            ),
            ClientEvent::Refused(response) => format!("refused {}", response.status),
            ClientEvent::Text(text) => line("text", text.as_bytes()),
            ClientEvent::Binary(bytes) => line("binary", bytes),
            ClientEvent::Ping(payload) => line("ping", payload),
            ClientEvent::Pong(payload) => line("pong", payload),
            ClientEvent::Closed { code, reason } => format!("closed {code:?} {reason}"),
            ClientEvent::Failed(violation) => format!("failed {violation:?}"),
        }
    }
}

/// Describes a long payload by its length and a checksum.
fn line(kind: &str, payload: &[u8]) -> String {
    if payload.len() > 100 {
        let sum = payload.iter().fold(0u32, |sum, &byte| sum.rotate_left(3) ^ u32::from(byte));
        return format!("{kind} {} bytes {sum:x}", payload.len());
    }
    format!("{kind} {}", String::from_utf8_lossy(payload)).trim_end().to_owned()
}
