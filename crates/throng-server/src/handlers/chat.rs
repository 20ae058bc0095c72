//! Everyone hears everyone, over WebSockets.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use throng_base::Instant;
use throng_proto::websocket::{
    Deflater, Limits, Opcode, Scratch, Server, ServerEvent, encode_deflated, encode_frame,
};
use throng_pubsub::{Dialect, Publication, Rulebook, Subscription, TopicRules};
use throng_report::ServerCounters;

use crate::{Connection, Handler, linger};

/// A chat of one room. Any path leads into it; every message, text or binary, goes to everyone, its sender included.
/// What is no WebSocket is answered with 426 and a sentence.
#[derive(Debug)]
pub struct Chat {
    options: ChatOptions,
    room: Arc<str>,
    deflater: Deflater,
    idle_timeouts: u64,
}

/// What a chat allows.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChatOptions {
    /// The limits of handshakes and messages.
    pub limits: Limits,
    /// Whether messages are compressed for those who offer it. Default false: short messages gain little.
    pub deflate: bool,
    /// What becomes of messages that somebody is too slow for.
    pub rules: TopicRules,
    /// How long somebody may say nothing, not even a pong, before being told so and closed: for good by default.
    pub idle_timeout: Option<Duration>,
}

/// What somebody said.
struct Said {
    opcode: Opcode,
    payload: Box<[u8]>,
}

impl Chat {
    /// One core's part of the chat.
    pub fn new(options: ChatOptions) -> Self {
        Self { options, room: "chat".into(), deflater: Deflater::new(), idle_timeouts: 0 }
    }

    fn say(&self, conn: &mut Connection<'_, Self>, opcode: Opcode, payload: &[u8]) {
        let said = Said { opcode, payload: payload.into() };
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
    type Session = Server;
    type Conn = ();
    type Message = Infallible;
    const NAME: &'static str = "chat";

    fn session(&mut self, now: Instant) -> Server {
        Server::new(now, &self.options.limits)
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
            ServerEvent::Request(request) => {
                let (session, out) = conn.session();
                match session.check_upgrade(&request) {
                    Ok(upgrade) => {
                        session.accept(&upgrade, None, &[], self.options.deflate, out);
                        let dialect = if session.is_deflated() { DEFLATED } else { PLAIN };
                        let subscription = Subscription { dialect, ..Subscription::default() };
                        conn.subscribe(&self.room, subscription);
                        if let Some(span) = self.options.idle_timeout {
                            conn.set_timeout(span);
                        }
                    }
                    Err(refusal) => {
                        if !session.refuse(&refusal, out) {
                            conn.close();
                        }
                    }
                }
            }
            ServerEvent::Text(text) => self.say(conn, Opcode::Text, text.as_bytes()),
            ServerEvent::Binary(bytes) => self.say(conn, Opcode::Binary, bytes),
            ServerEvent::Ping(_) | ServerEvent::Pong(_) => {}
            ServerEvent::Closed { .. } => conn.close(),
            ServerEvent::Failed(violation) => {
                conn.unsubscribe_all();
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
                self.idle_timeouts += 1;
                self.dismiss(conn, PROTOCOL_ERROR, "nothing was heard for too long");
            }
        }
    }

    fn count(&self, counters: &mut ServerCounters) {
        counters.idle_timeouts += self.idle_timeouts;
    }

    fn render(&mut self, publication: &Publication, dialect: Dialect, out: &mut Vec<u8>) {
        let Some(Said { opcode, payload }) = publication.body() else { return };
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
