//! Everyone hears everyone, over WebSockets.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use throng_base::Instant;
use throng_proto::http::Request;
use throng_proto::websocket::{
    Deflater, Opcode, Scratch, ServerEvent, WebSocketLimits, WebSocketServer, encode_deflated,
    encode_frame,
};
use throng_pubsub::{Dialect, Publication, Rulebook, Subscription, TopicRules};
use throng_report::{Merge, ServerCounters};

use crate::{CheckOrigin, Connection, Handler, linger};

/// A chat of one room. Any path leads into it; every message, text or binary, goes to everyone, its sender included.
/// What is no WebSocket is answered with 426 and a sentence.
#[derive(Debug)]
pub struct Chat {
    options: ChatOptions,
    room: Arc<str>,
    deflater: Deflater,
    counters: ServerCounters,
}

/// What a chat allows.
#[derive(Clone, Debug, Default)]
pub struct ChatOptions {
    /// The limits of handshakes and messages. It takes no bodies of requests, whatever
    /// `body_bytes_max` says.
    pub limits: WebSocketLimits,
    /// Whose pages may connect. Default: those of this host.
    pub check_origin: CheckOrigin,
    /// What the server is called in the addresses of its pages. Default: any address, and
    /// `localhost`.
    pub host: Option<String>,
    /// Whether messages are compressed for those who offer it. Default false: short messages gain little.
    pub deflate: bool,
    /// What becomes of messages that somebody is too slow for.
    pub rules: TopicRules,
    /// How long somebody may say nothing, not even a pong, before being told so and closed: for good by default.
    pub idle_timeout: Option<Duration>,
}

/// What somebody said.
struct ChatMessage {
    opcode: Opcode,
    payload: Box<[u8]>,
}

impl Chat {
    /// One core's part of the chat.
    pub fn new(mut options: ChatOptions) -> Self {
        options.limits.body_bytes_max = 0;
        let (room, deflater) = ("chat".into(), Deflater::new());
        Self { options, room, deflater, counters: ServerCounters::default() }
    }

    /// Lets a client into the room, or says why not.
    fn admit(&mut self, conn: &mut Connection<'_, Self>, request: &Request<'_>) {
        let ChatOptions { check_origin, host, deflate, idle_timeout, .. } = &self.options;
        let is_allowed = check_origin.allows_request(host.as_deref(), request);
        let (session, out) = conn.session();
        let stays_open = match session.check_upgrade(request) {
            Ok(_) if !is_allowed => {
                self.counters.connects_refused += 1;
                session.respond(403, &[], b"pages of this origin may not connect", out)
            }
            Ok(upgrade) => {
                session.accept(&upgrade, None, &[], *deflate, out);
                let dialect = if session.is_deflated() { DEFLATED } else { PLAIN };
                conn.subscribe(&self.room, Subscription { dialect, ..Subscription::default() });
                return idle_timeout.map_or((), |span| conn.set_timeout(span));
            }
            Err(refusal) => session.refuse(&refusal, out),
        };
        if !stays_open {
            conn.close();
        }
    }

    fn say(&self, conn: &mut Connection<'_, Self>, opcode: Opcode, payload: &[u8]) {
        let said = ChatMessage { opcode, payload: payload.into() };
        let publication = Publication::new(Arc::clone(&self.room), said).of_bytes(payload.len());
        conn.publish(publication, None);
    }

    /// Sends a close frame, which nothing follows, to whoever is in the room; the answer ends the connection.
    fn dismiss(&self, conn: &mut Connection<'_, Self>, code: u16, reason: &str) {
        conn.unsubscribe_all();
        conn.clear_timeout();
        let (session, out) = conn.session();
        session.close(code, reason, out);
    }
}

impl Handler for Chat {
    type Session = WebSocketServer;
    type State = ();
    type Message = Infallible;
    const NAME: &'static str = "chat";

    fn session(&mut self, now: Instant) -> WebSocketServer {
        WebSocketServer::new(now, &self.options.limits)
    }

    fn scratch(&self) -> Scratch {
        // A server masks nothing, so that the seed does not matter.
        Scratch::new(self.options.limits, 0)
    }

    fn topics(&self) -> Rulebook {
        Rulebook::all(self.options.rules)
    }

    fn event(&mut self, conn: &mut Connection<'_, Self>, event: ServerEvent<'_>) {
        match event {
            ServerEvent::Request(request) => self.admit(conn, &request),
            ServerEvent::Text(text) => self.say(conn, Opcode::Text, text.as_bytes()),
            ServerEvent::Binary(bytes) => self.say(conn, Opcode::Binary, bytes),
            ServerEvent::Ping(_) | ServerEvent::Pong(_) => {}
            ServerEvent::Closed { .. } => conn.close(),
            ServerEvent::Failed(violation) => {
                conn.unsubscribe_all();
                linger::count(violation, &mut self.counters);
                linger::end(conn, violation, &self.options.limits);
            }
        }
    }

    fn draining(&mut self, conn: &mut Connection<'_, Self>) {
        match conn.protocol().is_open() {
            true => self.dismiss(conn, GOING_AWAY, "the server ends"),
            false => conn.close(),
        }
    }

    /// Nothing was heard for too long, or the timer runs for what is left; whoever was told the last word is closed.
    fn timeout(&mut self, conn: &mut Connection<'_, Self>) {
        let is_open = conn.protocol().is_open();
        let Some(span) = self.options.idle_timeout.filter(|_| is_open) else { return conn.close() };
        match span.checked_sub(conn.now().since(conn.heard())) {
            Some(left) if !left.is_zero() => conn.set_timeout(left),
            _ => {
                self.counters.idle_timeouts += 1;
                self.dismiss(conn, PROTOCOL_ERROR, "nothing was heard for too long");
            }
        }
    }

    fn count(&self, counters: &mut ServerCounters) {
        counters.merge(&self.counters);
    }

    fn render(&mut self, publication: &Publication, dialect: Dialect, out: &mut Vec<u8>) {
        let Some(ChatMessage { opcode, payload }) = publication.body() else { return };
        match dialect {
            DEFLATED => encode_deflated(*opcode, payload, &mut self.deflater, out),
            _ => encode_frame(*opcode, payload, out),
        }
    }
}

/// RFC 6455 section 7.4.1.
const GOING_AWAY: u16 = 1001;
/// The code of a silent client, as of the channels' server.
const PROTOCOL_ERROR: u16 = 1002;
const PLAIN: Dialect = Dialect::new(0);
const DEFLATED: Dialect = Dialect::new(1);
