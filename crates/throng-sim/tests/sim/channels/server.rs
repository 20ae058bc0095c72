//! Scripted server of channels. The event of a push selects the server's behaviour.
//!
//! | push | behaviour of the server |
//! |---|---|
//! | `echo` | sends a broadcast, an answer to an unknown ref, then the answer |
//! | `refuse` | answers error |
//! | `silent` | does nothing |
//! | `crash` | crashes the channel |
//! | `end` | closes the channel |
//! | `close` | closes the connection with 1011 |
//! | `garbage` | sends an invalid message |
//! | other | broadcasts to all members of the topic as [`Script::deliver`] says; then the answer |
//!
//! The server refuses joins of `private:…`, and does not answer those of `silent:…`.

use std::net::SocketAddr;

use throng_base::{Instant, Key};
use throng_driver::{ListenSpec, Listeners, SocketOptions};
use throng_engine::{AfterClose, App, CloseReason, Conn, CoreContext};
use throng_proto::phoenix::{self, PhoenixPayload, Vsn, names};
use throng_proto::websocket::{ServerEvent, WebSocketLimits, WebSocketServer};
use throng_sim::{SimDriver, SimFd};

/// Outcome of one delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deliver {
    Once,
    Never,
    Twice,
    /// Delivered after the next broadcast.
    BehindNext,
}

/// Faults of the server.
pub(crate) struct Script {
    /// Outcome of the delivery of probe `number` to user `user`.
    pub(crate) deliver: fn(number: u32, user: u64) -> Deliver,
    /// Number of heartbeats of each client that the server answers.
    pub(crate) heartbeats_answered: u32,
    /// Status of the answer to upgrades.
    pub(crate) status: Option<u16>,
}

impl Default for Script {
    fn default() -> Self {
        Self { deliver: |_, _| Deliver::Once, heartbeats_answered: u32::MAX, status: None }
    }
}

/// App of the server.
pub(crate) struct Scripted {
    script: Script,
    listener: Option<SimFd>,
    /// Broadcasts to deliver at the end of the turn: topic, payload, number of the probe.
    published: Vec<(String, String, u32)>,
    pub(crate) heartbeats: Vec<Instant>,
    /// Close codes of the clients.
    pub(crate) goodbyes: Vec<Option<u16>>,
}

/// Client of the server.
#[derive(Default)]
pub(crate) struct Client {
    user: u64,
    vsn: Option<Vsn>,
    /// Topic and ref of each channel.
    joined: Vec<(String, String)>,
    held: Vec<(String, String)>,
    heartbeats: u32,
}

impl Scripted {
    pub(crate) fn new(script: Script) -> Self {
        Self {
            script,
            listener: None,
            published: Vec::new(),
            heartbeats: Vec::new(),
            goodbyes: Vec::new(),
        }
    }

    fn handle_text(&mut self, conn: &mut Conn<'_, SimDriver<()>, Self>, text: &str) {
        let now = conn.now();
        let vsn = conn.state().vsn.unwrap_or(Vsn::V1);
        let message = phoenix::decode_text(vsn, text).expect("the generator sends messages");
        let (topic, reference) = (&*message.topic, message.r#ref.as_deref());
        let join_ref = message.join_ref.as_deref();
        let PhoenixPayload::Json(payload) = message.payload else { panic!("{message:?}") };
        let answer = |status, response| {
            let mut out = Vec::new();
            let response = PhoenixPayload::Json(response);
            phoenix::reply(vsn, join_ref, reference, topic, status, response, &mut out).unwrap();
            out
        };
        match &*message.event {
            names::HEARTBEAT => {
                self.heartbeats.push(now);
                conn.state().heartbeats += 1;
                if conn.state().heartbeats <= self.script.heartbeats_answered {
                    send_text(conn, &answer("ok", "{}"));
                }
            }
            names::JOIN if topic.starts_with("private:") => {
                send_text(conn, &answer("error", "{\"reason\":\"unauthorized\"}"));
            }
            names::JOIN if topic.starts_with("silent:") => {}
            names::JOIN => {
                let user = payload.split('"').find_map(|part| part.parse().ok());
                let client = conn.state();
                client.user = user.unwrap_or(0);
                client.joined.push((topic.to_owned(), reference.unwrap().to_owned()));
                send_text(conn, &answer("ok", "{}"));
            }
            names::LEAVE => {
                let client = conn.state();
                let place = client.joined.iter().position(|(joined, _)| joined == topic).unwrap();
                let (_, join_ref) = client.joined.remove(place);
                send_text(conn, &answer("ok", "{}"));
                let mut out = Vec::new();
                phoenix::channel_closed(vsn, Some(&join_ref), topic, &mut out);
                send_text(conn, &out);
            }
            "echo" => {
                let mut out = Vec::new();
                let noise = PhoenixPayload::Json("{\"ref\":\"1\",\"status\":\"error\"}");
                phoenix::broadcast(vsn, topic, "new_msg", noise, &mut out).unwrap();
                send_text(conn, &out);
                out.clear();
                let nobodys = Some("4000000000");
                let no = PhoenixPayload::EMPTY;
                phoenix::reply(vsn, join_ref, nobodys, topic, "error", no, &mut out).unwrap();
                send_text(conn, &out);
                send_text(conn, &answer("ok", payload));
            }
            "refuse" => send_text(conn, &answer("error", "{}")),
            "silent" => {}
            "crash" | "end" => {
                let mut out = Vec::new();
                let client = conn.state();
                let (_, join_ref) =
                    client.joined.iter().find(|(joined, _)| joined == topic).unwrap();
                match &*message.event {
                    "crash" => phoenix::channel_crashed(vsn, Some(join_ref), topic, &mut out),
                    _ => phoenix::channel_closed(vsn, Some(join_ref), topic, &mut out),
                };
                send_text(conn, &out);
            }
            "close" => {
                let (session, out) = conn.session();
                session.close(1011, "asked", out);
            }
            "garbage" => send_text(conn, b"hello"),
            _ => {
                let digits: String = payload
                    .split_once("throng_probe\":\"")
                    .map(|(_, mark)| mark[9..].chars().take_while(char::is_ascii_digit).collect())
                    .unwrap_or_default();
                let number = digits.parse().unwrap_or(0);
                self.published.push((topic.to_owned(), payload.to_owned(), number));
                send_text(conn, &answer("ok", "{}"));
            }
        }
    }

    fn deliver(&mut self, cx: &mut CoreContext<SimDriver<()>, Self>, key: Key, place: usize) {
        let (topic, payload, number) = self.published[place].clone();
        cx.with(key, |conn| {
            let client = conn.state();
            if !client.joined.iter().any(|(joined, _)| *joined == topic) {
                return;
            }
            let held = std::mem::take(&mut client.held);
            let mut frames = vec![(topic, payload)];
            match (self.script.deliver)(number, client.user) {
                Deliver::Once => {}
                Deliver::Twice => frames.push(frames[0].clone()),
                Deliver::Never => frames.clear(),
                Deliver::BehindNext => client.held = std::mem::take(&mut frames),
            }
            frames.extend(held);
            let vsn = client.vsn.unwrap_or(Vsn::V1);
            for (topic, payload) in frames {
                let mut out = Vec::new();
                let payload = PhoenixPayload::Json(&payload);
                phoenix::broadcast(vsn, &topic, "new_msg", payload, &mut out).unwrap();
                send_text(conn, &out);
            }
        });
    }
}

/// Sends `message` to the client.
fn send_text(conn: &mut Conn<'_, SimDriver<()>, Scripted>, message: &[u8]) {
    let (session, out) = conn.session();
    session.text(std::str::from_utf8(message).unwrap(), None, out);
}

impl App<SimDriver<()>> for Scripted {
    type Session = WebSocketServer;
    type State = Client;

    fn started(&mut self, cx: &mut CoreContext<SimDriver<()>, Self>) {
        let (addr, options) = (server_addr(), SocketOptions::default());
        let spec = ListenSpec { addr, backlog: 1_000, reuseport: false, options };
        let listener = cx.driver().listen(&spec).unwrap();
        cx.driver().watch(&listener, 0).unwrap();
        self.listener = Some(listener);
    }

    fn acceptable(&mut self, cx: &mut CoreContext<SimDriver<()>, Self>, _number: u32) {
        while let Ok(fd) = cx.driver().accept(self.listener.as_ref().unwrap()) {
            let session = WebSocketServer::new(cx.now(), &WebSocketLimits::default());
            assert!(cx.adopt(fd, session, Client::default()).is_ok());
        }
    }

    fn opened(&mut self, _conn: &mut Conn<'_, SimDriver<()>, Self>) {}

    fn event(&mut self, conn: &mut Conn<'_, SimDriver<()>, Self>, event: ServerEvent<'_>) {
        match event {
            ServerEvent::Request(request) => {
                if let Some(status) = self.script.status {
                    let (session, out) = conn.session();
                    let _ = session.respond(status, &[], b"", out);
                    return;
                }
                let query = request.query().unwrap_or_default();
                let vsn = query.split('&').find_map(|pair| pair.strip_prefix("vsn="));
                conn.state().vsn = Some(Vsn::from_query(vsn).unwrap());
                let (session, out) = conn.session();
                let upgrade = session.check_upgrade(&request).unwrap();
                session.accept(&upgrade, None, &[], true, out);
            }
            ServerEvent::Text(text) => self.handle_text(conn, text),
            ServerEvent::Closed { code, .. } => {
                self.goodbyes.push(code);
                conn.close();
            }
            ServerEvent::Failed(violation) => panic!("{violation}"),
            ServerEvent::Binary(_) | ServerEvent::Ping(_) | ServerEvent::Pong(_) => {}
        }
    }

    fn turn_ended(&mut self, cx: &mut CoreContext<SimDriver<()>, Self>) {
        for place in 0..self.published.len() {
            for key in cx.keys() {
                self.deliver(cx, key, place);
            }
        }
        self.published.clear();
    }

    fn closed(&mut self, _: &mut Conn<'_, SimDriver<()>, Self>, _: CloseReason) -> AfterClose {
        AfterClose::Free
    }
}

pub(crate) fn server_addr() -> SocketAddr {
    "127.0.0.1:4000".parse().unwrap()
}
