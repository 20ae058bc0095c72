//! A session and what it said.

use throng_base::Instant;
use throng_proto::websocket::{
    ClientEvent, ClientHandshake, Scratch, ServerEvent, WebSocketClient, WebSocketLimits,
    WebSocketServer, offered_subprotocols,
};
use throng_proto::{Input, Session};

/// Small enough that tests reach them.
pub(crate) const LIMITS: WebSocketLimits = WebSocketLimits {
    head_bytes_max: 1_000,
    body_bytes_max: 100,
    frame_bytes_max: 200_000,
    message_bytes_max: 300_000,
    handshake_timeout_ms: 10_000,
    message_timeout_ms: 60_000,
    close_timeout_ms: 5_000,
};

pub(crate) const REQUEST: &str = "GET /socket?vsn=2.0.0 HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

/// [`REQUEST`] with more header fields.
pub(crate) fn request(fields: &str) -> String {
    REQUEST.replace("Host", &format!("{fields}Host"))
}

/// One session with its core's scratch, the time, and what came of it.
pub(crate) struct Talk<S> {
    pub(crate) session: S,
    pub(crate) scratch: Scratch,
    pub(crate) now: Instant,
    /// Each event as a short line.
    pub(crate) said: Vec<String>,
    pub(crate) out: Vec<u8>,
}

/// How a session's events are written down, and what the application does at once.
pub(crate) trait Told: Session<Scratch = Scratch> + Sized {
    fn tell(event: Self::Event<'_>) -> String;
    /// After an event, as a handler would.
    fn react(&mut self, _event: &Self::Event<'_>, _out: &mut Vec<u8>) {}
}

impl<S: Told> Talk<S> {
    pub(crate) fn new(session: S) -> Self {
        let scratch = Scratch::new(LIMITS, 1);
        Self { session, scratch, now: Instant::ZERO, said: Vec::new(), out: Vec::new() }
    }

    /// One receive, drained.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> &mut Self {
        let mut bytes = bytes.to_vec();
        let mut input = Input::new(&mut bytes);
        while let Some(event) =
            self.session.next(self.now, &mut input, &mut self.scratch, &mut self.out)
        {
            self.session.react(&event, &mut self.out);
            self.said.push(S::tell(event));
            assert!(self.said.len() < 100_000, "an event a byte at most");
        }
        assert!(input.is_empty(), "nothing is left when there is nothing more to say");
        self
    }

    /// The engine's timer, and what follows from it.
    pub(crate) fn wait_until(&mut self, millis: u64) -> &mut Self {
        self.now = Instant::from_nanos(millis * 1_000_000);
        if self.session.deadline() <= self.now {
            self.session.handle_timeout(self.now, &mut self.out);
            self.receive(b"");
        }
        self
    }

    /// What is to be sent, taken.
    pub(crate) fn sent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

/// A server that accepts every upgrade at once, and answers every other request with its body.
pub(crate) fn server(deflate: bool) -> Talk<Accepting> {
    let server = WebSocketServer::new(Instant::ZERO, &LIMITS);
    Talk::new(Accepting { server, deflate })
}

/// One that has been accepted.
pub(crate) fn open_server(deflate: bool) -> Talk<Accepting> {
    let mut talk = server(deflate);
    let offer = if deflate { "Sec-WebSocket-Extensions: permessage-deflate\r\n" } else { "" };
    talk.receive(request(offer).as_bytes());
    assert!(talk.session.server.is_open());
    assert_eq!(talk.session.server.is_deflated(), deflate);
    talk.said.clear();
    talk.out.clear();
    talk
}

/// A client whose handshake was answered.
pub(crate) fn open_client() -> Talk<WebSocketClient> {
    let mut talk = begun_client(&HANDSHAKE);
    talk.receive(ANSWER.as_bytes());
    assert!(talk.session.is_open());
    talk.said.clear();
    talk
}

/// A client whose handshake was sent.
pub(crate) fn begun_client(handshake: &ClientHandshake<'_>) -> Talk<WebSocketClient> {
    let mut talk = Talk::new(WebSocketClient::new());
    let mut request = Vec::new();
    talk.session.begin(handshake, &mut request);
    talk
}

/// The example of RFC 6455 section 1.3.
pub(crate) const HANDSHAKE: ClientHandshake<'_> = ClientHandshake {
    host: "a:1",
    path_and_query: "/chat?x=1",
    headers: &[],
    subprotocols: &[],
    deflate: false,
    key: *b"the sample nonce",
};

pub(crate) const ANSWER: &str = "HTTP/1.1 101 Yes\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// A frame; its payload is masked with bytes that change each of them.
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

/// As a client sends it.
pub(crate) fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    frame(first, payload, true)
}

pub(crate) struct Accepting {
    pub(crate) server: WebSocketServer,
    deflate: bool,
}

impl Session for Accepting {
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

impl Told for Accepting {
    fn tell(event: ServerEvent<'_>) -> String {
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

impl Told for WebSocketClient {
    fn tell(event: ClientEvent<'_>) -> String {
        match event {
            ClientEvent::Opened { subprotocol } => format!("opened {subprotocol:?}"),
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

/// Long payloads by their length and a sum.
fn line(kind: &str, payload: &[u8]) -> String {
    if payload.len() > 100 {
        let sum = payload.iter().fold(0u32, |sum, &byte| sum.rotate_left(3) ^ u32::from(byte));
        return format!("{kind} {} bytes {sum:x}", payload.len());
    }
    format!("{kind} {}", String::from_utf8_lossy(payload)).trim_end().to_owned()
}
