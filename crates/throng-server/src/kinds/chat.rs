//! The chat: one room over WebSockets.

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

use super::{KindOptions, start_server};
use crate::{AnyServer, CheckOrigin, Connection, Handler, ServerOptions, StartError, linger};

/// A chat of one room, which every path leads to. Every message, text or binary, goes to all
/// clients, the sender included. A request without a WebSocket upgrade is answered with 426 and a
/// sentence.
#[derive(Debug)]
pub struct Chat {
    options: ChatOptions,
    room: Arc<str>,
    deflater: Deflater,
    counters: ServerCounters,
}

/// The settings of a chat.
#[derive(Clone, Debug, Default)]
pub struct ChatOptions {
    /// The limits of handshakes and messages. `body_bytes_max` is ignored: the chat accepts no
    /// request body.
    pub limits: WebSocketLimits,
    /// The pages that may connect. Default: pages of this host.
    pub check_origin: CheckOrigin,
    /// The server's name in the addresses of its pages. Default: any IP address, and `localhost`.
    pub host: Option<String>,
    /// True to compress messages for clients that offer it. Default false: short messages gain
    /// little.
    pub deflate: bool,
    /// The rules for messages to slow readers.
    pub rules: TopicRules,
    /// Time without a byte from a client, pongs included, before it gets a close frame with code
    /// 1002. Default: never.
    pub idle_timeout: Option<Duration>,
}

/// A message of a client.
struct ChatMessage {
    opcode: Opcode,
    payload: Box<[u8]>,
}

impl Chat {
    /// Creates the handler of one core.
    pub fn new(mut options: ChatOptions) -> Self {
        options.limits.body_bytes_max = 0;
        let (room, deflater) = ("chat".into(), Deflater::new());
        Self { options, room, deflater, counters: ServerCounters::default() }
    }

    /// Answers an upgrade request: subscribes the client to the room, or refuses it with a reason.
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

    /// Publishes a client's message to the room.
    fn publish(&self, conn: &mut Connection<'_, Self>, opcode: Opcode, payload: &[u8]) {
        let message = ChatMessage { opcode, payload: payload.into() };
        let publication =
            Publication::new(Arc::clone(&self.room), message).with_body_bytes(payload.len());
        conn.publish(publication, None);
    }

    /// Sends a close frame and unsubscribes the client, so that nothing follows the frame. The
    /// client's own close frame ends the connection.
    fn send_close(&self, conn: &mut Connection<'_, Self>, code: u16, reason: &str) {
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
        // A server masks no frames: the seed is not used.
        Scratch::new(self.options.limits, 0)
    }

    fn topics(&self) -> Rulebook {
        Rulebook::all(self.options.rules)
    }

    fn event(&mut self, conn: &mut Connection<'_, Self>, event: ServerEvent<'_>) {
        match event {
            ServerEvent::Request(request) => self.admit(conn, &request),
            ServerEvent::Text(text) => self.publish(conn, Opcode::Text, text.as_bytes()),
            ServerEvent::Binary(bytes) => self.publish(conn, Opcode::Binary, bytes),
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
        if conn.protocol().is_open() {
            self.send_close(conn, GOING_AWAY, "the server ends");
        } else {
            conn.close();
        }
    }

    /// Sends a close frame after the idle timeout. If the client has sent bytes since, sets the
    /// timer to the rest. Closes the connection if the close frame has been sent already.
    fn timeout(&mut self, conn: &mut Connection<'_, Self>) {
        let is_open = conn.protocol().is_open();
        let Some(span) = self.options.idle_timeout.filter(|_| is_open) else { return conn.close() };
        match span.checked_sub(conn.now().since(conn.last_activity())) {
            Some(left) if !left.is_zero() => conn.set_timeout(left),
            _ => {
                self.counters.idle_timeouts += 1;
                self.send_close(conn, PROTOCOL_ERROR, "idle timeout: no bytes received");
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

/// Close code of a server that shuts down, RFC 6455 section 7.4.1.
const GOING_AWAY: u16 = 1001;
/// Close code for an idle client, the same as that of channels.
const PROTOCOL_ERROR: u16 = 1002;
const PLAIN: Dialect = Dialect::new(0);
const DEFLATED: Dialect = Dialect::new(1);

pub(super) fn start(options: &KindOptions) -> Result<Arc<dyn AnyServer>, StartError> {
    let KindOptions { server, websocket, .. } = options;
    let chat = ChatOptions {
        limits: websocket.limits(WebSocketLimits::default()),
        check_origin: websocket.check_origin.clone(),
        host: websocket.host.clone(),
        deflate: websocket.deflate,
        rules: websocket.rules,
        idle_timeout: server.idle_timeout,
    };
    // The chat applies the idle timeout itself: it sends a close frame first.
    let server = ServerOptions { idle_timeout: None, ..server.clone() };
    start_server(&server, move |_| Chat::new(chat.clone()))
}
