//! WebSockets: a [`WebSocketHandler`] answers messages, and everything else is done here.
//!
//! Upgrades, origins, pings, close codes, limits, silent clients and the goodbye of a server that
//! drains are the same for all WebSocket servers. What differs is what a message means.

use std::sync::Arc;
use std::time::Duration;

use throng_base::Instant;
use throng_measure::{Merge, ServerCounters};
use throng_proto::http::Request;
use throng_proto::websocket::{
    Deflater, Opcode, Scratch, ServerEvent, WebSocketLimits, WebSocketServer, encode_deflated,
    encode_frame,
};
use throng_pubsub::{Dialect, Membership, Publication, Rulebook, Subscription, TopicRules};

use crate::{
    CheckOrigin, ConnectRefusal, Connection, ConnectionId, DisconnectReason, Handler,
    SharedHandler, linger,
};

/// The behaviour of a WebSocket server. Each core has its own handler, so that nothing locks.
///
/// A method must not block: it holds up every connection of its core. A panic ends its connection
/// with close code 1006, and no other connection.
///
/// ```
/// use throng_server::{Message, Peer, WebSocketHandler};
///
/// struct Echo;
///
/// impl WebSocketHandler for Echo {
///     type State = ();
///
///     fn message(&mut self, peer: &mut Peer<'_, Self>, message: Message<'_>) {
///         peer.send(message);
///     }
/// }
/// ```
pub trait WebSocketHandler: Sized + 'static {
    /// Data of each connection. Small: there are millions.
    type State: Default;

    /// Name of the server in reports.
    const NAME: &'static str = "websocket";

    /// Decides whether a client may connect, after its upgrade and its origin were found right.
    /// May fill the connection's state from the request. Default: every client may.
    ///
    /// # Errors
    /// The answer to a client that may not connect.
    fn connect(
        &mut self,
        _request: &Request<'_>,
        _state: &mut Self::State,
    ) -> Result<(), ConnectRefusal> {
        Ok(())
    }

    /// Called once the WebSocket is open. Default: does nothing.
    fn open(&mut self, _peer: &mut Peer<'_, Self>) {}

    /// Called with each whole message.
    fn message(&mut self, peer: &mut Peer<'_, Self>, message: Message<'_>);

    /// Called when a WebSocket that was open has ended. Nothing more can be sent to it.
    /// Default: does nothing.
    fn closed(&mut self, _peer: &mut Peer<'_, Self>, _why: DisconnectReason) {}
}

/// A message of a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// UTF-8 text, which was checked.
    Text(&'a str),
    /// Bytes.
    Binary(&'a [u8]),
}

/// Options of a WebSocket server.
#[derive(Clone, Debug, Default)]
pub struct WebSocketOptions {
    /// Limits of handshakes and messages. Requests with a body are refused, whatever
    /// `body_bytes_max` says.
    pub limits: WebSocketLimits,
    /// Origins whose pages may connect. Default: the pages of this host.
    pub check_origin: CheckOrigin,
    /// Name of the server in the addresses of its pages. Default: any address, and `localhost`.
    pub host: Option<String>,
    /// The connections have TLS, so the addresses of pages begin with `https://`. Default false.
    pub https: bool,
    /// Compresses messages for clients that offer it. Default false: short messages gain little.
    pub deflate: bool,
    /// Rules for published messages that a slow subscriber cannot take in time.
    pub rules: TopicRules,
    /// Closes a client that sends nothing, not even a pong, for this long. Default: never.
    pub idle_timeout: Option<Duration>,
}

/// The handler of a server that runs a [`WebSocketHandler`].
#[derive(Debug)]
pub struct WebSockets<W> {
    handler: W,
    options: WebSocketOptions,
    deflater: Deflater,
    counters: ServerCounters,
}

/// A client's WebSocket, for the length of one call.
pub struct Peer<'a, W: WebSocketHandler> {
    conn: Connection<'a, WebSockets<W>>,
    deflater: Option<&'a mut Deflater>,
}

/// A connection's data.
#[derive(Debug, Default)]
pub struct PeerState<S> {
    own: S,
    /// The WebSocket was opened, so its end is reported.
    was_opened: bool,
    /// The reason for the end, where the connection itself does not know it.
    ended_by: Option<EndedBy>,
}

/// A reason to end a WebSocket by a close of the connection.
#[derive(Clone, Copy, Debug)]
enum EndedBy {
    CloseFrame,
    IdleTimeout,
}

impl<W: WebSocketHandler> Peer<'_, W> {
    /// Returns the name of the connection, which is good on every core and thread.
    pub fn id(&self) -> ConnectionId {
        self.conn.id()
    }

    /// Returns the data that the handler keeps for the connection.
    pub fn state(&mut self) -> &mut W::State {
        &mut self.conn.state().own
    }

    /// Sends a message once the handler returns. Everything that one call sends leaves together.
    pub fn send<'m>(&mut self, message: impl Into<Message<'m>>) {
        let deflater = self.deflater.as_deref_mut();
        let (session, out) = self.conn.session();
        match message.into() {
            Message::Text(text) => session.text(text, deflater, out),
            Message::Binary(bytes) => session.binary(bytes, deflater, out),
        }
    }

    /// Closes the WebSocket with a close code (RFC 6455, section 7.4) and a reason of at most 123
    /// bytes. The connection ends when the client has answered, or after `close_timeout_ms`.
    pub fn close(&mut self, code: u16, reason: &str) {
        send_close(&mut self.conn, code, reason);
    }

    /// Subscribes the client to `topic`: it receives every message that is published from now on.
    /// Two subscriptions to one topic receive each message twice. All end with the connection.
    pub fn subscribe(&mut self, topic: &str) -> Membership {
        let is_deflated = self.conn.protocol().is_deflated();
        let dialect = if is_deflated { DEFLATED } else { PLAIN };
        self.conn.subscribe(topic, Subscription { dialect, ..Subscription::default() })
    }

    /// Ends a subscription.
    pub fn unsubscribe(&mut self, membership: Membership) {
        self.conn.unsubscribe(membership);
    }

    /// Publishes a message to the subscribers of `topic` on all cores, this client included if it
    /// is one.
    pub fn publish<'m>(&mut self, topic: impl Into<Arc<str>>, message: impl Into<Message<'m>>) {
        self.conn.publish(publication(topic, message), None);
    }

    /// Publishes a message to the subscribers of `topic` on all cores, except this client.
    pub fn publish_to_others<'m>(
        &mut self,
        topic: impl Into<Arc<str>>,
        message: impl Into<Message<'m>>,
    ) {
        let own = self.conn.id();
        self.conn.publish(publication(topic, message), Some(own));
    }

    /// Returns the bytes that wait in this process because the client does not read.
    pub fn pending_bytes(&self) -> usize {
        self.conn.pending_bytes()
    }

    /// Returns the client's address, by a system call.
    pub fn peer_addr(&self) -> Option<std::net::SocketAddr> {
        self.conn.peer_addr()
    }
}

/// Makes a publication for [`ServerHandle::publish`](crate::ServerHandle::publish): a message to
/// the subscribers of `topic` from any thread.
pub fn publication<'m>(topic: impl Into<Arc<str>>, message: impl Into<Message<'m>>) -> Publication {
    let (opcode, payload) = match message.into() {
        Message::Text(text) => (Opcode::Text, text.as_bytes()),
        Message::Binary(bytes) => (Opcode::Binary, bytes),
    };
    let body = PublishedMessage { opcode, payload: payload.into() };
    Publication::new(topic.into(), body).with_body_bytes(payload.len())
}

/// The body of a publication.
struct PublishedMessage {
    opcode: Opcode,
    payload: Box<[u8]>,
}

impl<'a> From<&'a str> for Message<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for Message<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a [u8]> for Message<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Binary(bytes)
    }
}

impl<W: WebSocketHandler> WebSockets<W> {
    /// Wraps one core's handler.
    pub fn new(mut options: WebSocketOptions, handler: W) -> Self {
        options.limits.body_bytes_max = 0;
        let (deflater, counters) = (Deflater::new(), ServerCounters::default());
        Self { handler, options, deflater, counters }
    }

    /// Calls the handler with a peer.
    fn call(
        &mut self,
        conn: &mut Connection<'_, Self>,
        call: impl FnOnce(&mut W, &mut Peer<'_, W>),
    ) {
        let deflater = self.options.deflate.then_some(&mut self.deflater);
        let mut peer = Peer { conn: conn.reborrow(), deflater };
        call(&mut self.handler, &mut peer);
        let sent = peer.conn.sent;
        conn.sent += sent;
        // Nothing follows a close frame, whatever the handler subscribed to after it.
        if !conn.protocol().is_open() {
            conn.unsubscribe_all();
        }
    }

    /// Opens the WebSocket, or answers why it stays closed.
    fn upgrade(&mut self, conn: &mut Connection<'_, Self>, request: &Request<'_>) {
        let WebSocketOptions { check_origin, host, https, deflate, idle_timeout, .. } =
            &self.options;
        let checked = conn.protocol().check_upgrade(request);
        let is_allowed =
            checked.is_ok() && check_origin.allows_request(*https, host.as_deref(), request);
        let refused = match &checked {
            Ok(_) if is_allowed => self.handler.connect(request, &mut conn.state().own).err(),
            Ok(_) => {
                Some(ConnectRefusal::default().with_body("pages of this origin may not connect"))
            }
            Err(_) => None,
        };
        let (session, out) = conn.session();
        let stays_open = match (checked, refused) {
            (Ok(upgrade), None) => {
                session.accept(&upgrade, None, &[], *deflate, out);
                if let Some(span) = *idle_timeout {
                    conn.set_timeout(span);
                }
                conn.state().was_opened = true;
                return self.call(conn, |handler, peer| handler.open(peer));
            }
            (Ok(_), Some(ConnectRefusal { status, body })) => {
                self.counters.connects_refused += 1;
                session.respond(status, &[], body.as_bytes(), out)
            }
            (Err(refusal), _) => session.refuse(&refusal, out),
        };
        if !stays_open {
            conn.close();
        }
    }
}

impl<W: WebSocketHandler> Handler for WebSockets<W> {
    type Session = WebSocketServer;
    type State = PeerState<W::State>;
    type Message = std::convert::Infallible;
    const NAME: &'static str = W::NAME;

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
            ServerEvent::Request(request) => self.upgrade(conn, &request),
            // The client may send until it has read our close frame.
            ServerEvent::Text(_) | ServerEvent::Binary(_) if !conn.protocol().is_open() => {}
            ServerEvent::Text(text) => {
                self.call(conn, |handler, peer| handler.message(peer, Message::Text(text)));
            }
            ServerEvent::Binary(bytes) => {
                self.call(conn, |handler, peer| handler.message(peer, Message::Binary(bytes)));
            }
            ServerEvent::Ping(_) | ServerEvent::Pong(_) => {}
            ServerEvent::Closed { .. } => {
                conn.state().ended_by.get_or_insert(EndedBy::CloseFrame);
                conn.close();
            }
            ServerEvent::Failed(violation) => {
                conn.unsubscribe_all();
                linger::count(violation, &mut self.counters);
                linger::end(conn, violation, &self.options.limits);
            }
        }
    }

    fn draining(&mut self, conn: &mut Connection<'_, Self>) {
        if conn.protocol().is_open() {
            let reason = goodbye(conn.other_nodes());
            send_close(conn, GOING_AWAY, &reason);
        } else {
            conn.close();
        }
    }

    /// Sends a close frame after the idle timeout. If the client has sent bytes since, sets the
    /// timer to the rest. Closes the connection if the close frame has been sent already.
    fn timeout(&mut self, conn: &mut Connection<'_, Self>) {
        let is_open = conn.protocol().is_open();
        let Some(span) = self.options.idle_timeout.filter(|_| is_open) else { return conn.close() };
        match conn.idle_left(span) {
            Some(left) => conn.set_timeout(left),
            None => {
                self.counters.idle_timeouts += 1;
                conn.state().ended_by = Some(EndedBy::IdleTimeout);
                send_close(conn, PROTOCOL_ERROR, "idle timeout: no bytes received");
            }
        }
    }

    fn close(&mut self, conn: &mut Connection<'_, Self>, why: DisconnectReason) {
        let why = match conn.state().ended_by {
            Some(EndedBy::CloseFrame) => DisconnectReason::PeerFinished,
            Some(EndedBy::IdleTimeout) => DisconnectReason::Idle,
            None => why,
        };
        if conn.state().was_opened {
            self.call(conn, |handler, peer| handler.closed(peer, why));
        }
    }

    fn count(&self, counters: &mut ServerCounters) {
        counters.merge(&self.counters);
    }

    fn render(&mut self, publication: &Publication, dialect: Dialect, out: &mut Vec<u8>) {
        let Some(PublishedMessage { opcode, payload }) = publication.body() else { return };
        match dialect {
            DEFLATED => encode_deflated(*opcode, payload, &mut self.deflater, out),
            _ => encode_frame(*opcode, payload, out),
        }
    }
}

/// The body of a publication crosses to other nodes as its opcode and its payload.
impl<W: WebSocketHandler> SharedHandler for WebSockets<W> {
    fn encode(publication: &Publication, out: &mut Vec<u8>) -> bool {
        let Some(PublishedMessage { opcode, payload }) = publication.body() else { return false };
        out.push(u8::from(*opcode == Opcode::Binary));
        out.extend_from_slice(payload);
        true
    }

    fn decode(topic: &str, body: &[u8]) -> Option<Publication> {
        let (opcode, payload) = body.split_first()?;
        let message = match opcode {
            0 => Message::Text(str::from_utf8(payload).ok()?),
            1 => Message::Binary(payload),
            _ => return None,
        };
        Some(publication(topic, message))
    }
}

/// Returns the reason in the close frame of a server that drains: where the client may go, as many
/// whole addresses as fit.
fn goodbye<'a>(other_nodes: impl Iterator<Item = &'a str>) -> String {
    let mut reason = "the server ends".to_owned();
    for (place, address) in other_nodes.enumerate() {
        let before = if place == 0 { "; go to " } else { " " };
        if reason.len() + before.len() + address.len() > CLOSE_REASON_BYTES_MAX {
            break;
        }
        reason.push_str(before);
        reason.push_str(address);
    }
    reason
}

/// Sends a close frame and unsubscribes the client, so that nothing follows the frame. The client's
/// own close frame ends the connection.
fn send_close<W: WebSocketHandler>(
    conn: &mut Connection<'_, WebSockets<W>>,
    code: u16,
    reason: &str,
) {
    conn.unsubscribe_all();
    conn.clear_timeout();
    let (session, out) = conn.session();
    session.close(code, reason, out);
}

/// Close code of a server that shuts down, RFC 6455 section 7.4.1.
const GOING_AWAY: u16 = 1001;
/// Close code for an idle client, the same as that of channels.
const PROTOCOL_ERROR: u16 = 1002;
/// Bytes of the reason in a close frame at most, RFC 6455 section 5.5.
const CLOSE_REASON_BYTES_MAX: usize = 123;
const PLAIN: Dialect = Dialect::new(0);
const DEFLATED: Dialect = Dialect::new(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goodbye_names_the_nodes_that_fit() {
        assert_eq!(goodbye([].into_iter()), "the server ends");
        let two = ["10.0.0.2:4000", "10.0.0.3:4000"];
        assert_eq!(goodbye(two.into_iter()), "the server ends; go to 10.0.0.2:4000 10.0.0.3:4000");
        let long = goodbye(std::iter::repeat_n("chat.example.com:4000", 20));
        assert!(long.len() <= CLOSE_REASON_BYTES_MAX && long.ends_with("com:4000"), "{long}");
    }
}
