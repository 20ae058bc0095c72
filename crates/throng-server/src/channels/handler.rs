//! The handler of a core: routes the events of connections and the messages of other cores.

use std::sync::Arc;

use throng_base::Instant;
use throng_measure::{Merge, ServerCounters};
use throng_proto::phoenix::{self, PhoenixPayload, json, names};
use throng_proto::websocket::{Scratch, ServerEvent, Violation, WebSocketServer as Session};
use throng_pubsub::presence::Diff;
use throng_pubsub::{Dialect, Publication, Rulebook};

use super::broadcast::{self, Broadcast};
use super::channel::LeaveReason;
use super::client::{
    ChannelHandler, Client, GOING_AWAY, PROTOCOL_ERROR, SERVICE_RESTART, SOCKET_ID,
};
use super::client_state::{ClientState, Mode};
use super::core_state::CoreState;
use super::frame;
use super::http;
use super::longpoll;
use super::longpoll::exchange::{SessionAnswer, SessionRequest};
use super::message::{ChannelMessage, ChannelMessageKind};
use crate::{DisconnectReason, Handler, HandlerContext, InterceptAction, SharedHandler, linger};

impl ChannelHandler {
    /// Handles a broadcast that the channel intercepts, that a long-poll session keeps, or that
    /// goes to the socket's id. A channel that intercepts some events receives all broadcasts here.
    /// Those that it does not intercept are declined, so that their topic's policy applies to them.
    fn deliver(
        &mut self,
        conn: &mut Client<'_>,
        publication: &Publication,
        tag: u16,
    ) -> InterceptAction {
        let Some(vsn) = conn.state().mode.vsn() else { return InterceptAction::Handled };
        let Some(broadcast) = publication.body::<Broadcast>() else {
            return InterceptAction::Handled;
        };
        if tag == SOCKET_ID {
            if broadcast.event() == DISCONNECT {
                self.end(conn, GOING_AWAY, LeaveReason::Closed);
            }
            return InterceptAction::Handled;
        }
        let topic = publication.topic();
        let Some(joined) = conn.state().find(topic) else { return InterceptAction::Handled };
        let route = &self.core.config.routes[usize::from(joined.topic.route)];
        if !route.intercepts(broadcast.event()) {
            if !conn.state().is_poll() {
                return InterceptAction::Declined;
            }
            broadcast::send_to(conn, &mut self.core, vsn, publication);
            return InterceptAction::Handled;
        }
        let Some(mut joined) = conn.state().take(topic) else { return InterceptAction::Handled };
        let outcome = self.call(conn, vsn, &mut joined, None, |channel, socket| {
            channel.handle_out(broadcast.event(), broadcast.payload(), socket);
        });
        self.apply_outcome(conn, vsn, joined, outcome);
        InterceptAction::Handled
    }

    /// Handles a violation of the protocol, which the session has answered.
    fn failed(&mut self, conn: &mut Client<'_>, violation: Violation) {
        linger::count(violation, &mut self.core.counters);
        if let Mode::AwaitingSession { .. } = conn.state().mode {
            // The session is about to answer, and learns that the connection has ended.
            return conn.close();
        }
        self.end(conn, violation.code(), LeaveReason::Closed);
        linger::end(conn, violation, &self.core.config.limits);
    }

    /// Tells the client which other nodes it may go to: `{"nodes": ["10.0.0.2:4000"]}`, as an event
    /// of the topic `phoenix`, which no channel has. phoenix.js gives it to `socket.onMessage`.
    fn tell_other_nodes(&mut self, conn: &mut Client<'_>) {
        let Some(vsn) = conn.state().mode.vsn() else { return };
        let mut nodes = Vec::new();
        for address in conn.other_nodes() {
            nodes.push(if nodes.is_empty() { b'[' } else { b',' });
            json::write_string(address, &mut nodes);
        }
        if nodes.is_empty() {
            return;
        }
        let list = format!("{{\"nodes\":{}]}}", String::from_utf8(nodes).unwrap_or_default());
        self.write(conn, |out| {
            let payload = PhoenixPayload::Json(&list);
            phoenix::push(vsn, None, names::PHOENIX, DRAIN, payload, out)
        });
        longpoll::flush(self, conn);
    }

    /// Ends a WebSocket after the idle timeout, or sets the timer to the rest.
    fn check_idle(&mut self, conn: &mut Client<'_>) {
        match conn.idle_left(self.core.config.timeout) {
            Some(left) => conn.set_timeout(left),
            None => {
                self.core.counters.idle_timeouts += 1;
                self.end(conn, PROTOCOL_ERROR, LeaveReason::Closed);
            }
        }
    }
}

impl Handler for ChannelHandler {
    type Session = Session;
    type State = ClientState;
    type Message = ChannelMessage;
    const NAME: &'static str = "channels";

    fn session(&mut self, now: Instant) -> Session {
        Session::new(now, &self.core.config.limits)
    }

    fn scratch(&self) -> Scratch {
        let path = format!("{}/longpoll", self.core.config.path);
        Scratch::new(self.core.config.limits, 0).with_bodies_at(&path)
    }

    fn topics(&self) -> Rulebook {
        self.core.config.topics.clone()
    }

    fn share_topics(&mut self, node: u16) {
        self.core.presence.set_node(node);
    }

    fn open(&mut self, conn: &mut Client<'_>) {
        if conn.state().is_poll() {
            http::subscribe_to_id(conn);
            longpoll::begin(self, conn);
        }
    }

    fn event(&mut self, conn: &mut Client<'_>, event: ServerEvent<'_>) {
        match (event, conn.state().mode) {
            (ServerEvent::Text(text), Mode::Socket(vsn)) => self.text(conn, vsn, text),
            (ServerEvent::Binary(bytes), Mode::Socket(vsn)) => self.binary(conn, vsn, bytes),
            (ServerEvent::Request(request), Mode::Http) => http::request(self, conn, &request),
            (ServerEvent::Closed { .. }, _) => conn.close(),
            (ServerEvent::Failed(violation), _) => self.failed(conn, violation),
            (ServerEvent::Ping(_) | ServerEvent::Pong(_), _) => {}
            // Frames in flight when the close frame was sent.
            (ServerEvent::Text(_) | ServerEvent::Binary(_) | ServerEvent::Request(_), _) => {}
        }
    }

    fn message(&mut self, conn: &mut Client<'_>, ChannelMessage(kind): ChannelMessage) {
        match kind {
            ChannelMessageKind::Info { topic, serial, info } => {
                self.info(conn, &topic, serial, info)
            }
            ChannelMessageKind::Request(request) => longpoll::handle_request(self, conn, request),
            ChannelMessageKind::ClientDisconnected { from } => {
                longpoll::client_disconnected(conn, from)
            }
            ChannelMessageKind::MessagesReturned { messages } => {
                longpoll::messages_returned(conn, messages)
            }
            ChannelMessageKind::Answer(answer) => return longpoll::handle_answer(conn, answer),
            ChannelMessageKind::SessionGone { request } => {
                return longpoll::session_gone(self, conn, request);
            }
            ChannelMessageKind::SessionReplaced => {
                return self.end(conn, GOING_AWAY, LeaveReason::Closed);
            }
            ChannelMessageKind::Presence { .. } => {}
        }
        self.run_infos(conn);
        longpoll::flush(self, conn);
    }

    fn undelivered(
        &mut self,
        core: &mut HandlerContext<'_, Self>,
        ChannelMessage(kind): ChannelMessage,
    ) {
        match kind {
            ChannelMessageKind::Request(SessionRequest { from, .. }) => {
                core.send_unbounded(
                    from.connection,
                    ChannelMessage(ChannelMessageKind::SessionGone { request: from.request }),
                );
            }
            ChannelMessageKind::Answer(SessionAnswer { session, body, .. }) => {
                longpoll::give_back(body, |message| core.send_unbounded(session, message));
            }
            _ => {}
        }
    }

    fn core_message(
        &mut self,
        core: &mut HandlerContext<'_, Self>,
        ChannelMessage(kind): ChannelMessage,
    ) {
        if let ChannelMessageKind::Presence { diff, publication } = kind {
            self.core.presence.apply(&diff);
            core.publish_here(&publication);
        }
    }

    fn turn_ended(&mut self, core: &mut HandlerContext<'_, Self>) {
        for diff in self.core.presence.drain() {
            let topic = Arc::clone(diff.topic());
            let publication = Arc::new(Broadcast::presence(&diff).publication(topic));
            core.publish_here(&publication);
            core.share_presence(&diff);
            let own = core.core();
            for other in (0..core.cores()).filter(|&other| other != own) {
                let (diff, publication) = (Arc::clone(&diff), Arc::clone(&publication));
                core.send_to_core(
                    other,
                    ChannelMessage(ChannelMessageKind::Presence { diff, publication }),
                );
            }
        }
    }

    fn timeout(&mut self, conn: &mut Client<'_>) {
        let mode = conn.state().mode;
        match mode {
            Mode::Socket(_) => self.check_idle(conn),
            Mode::AwaitingSession { is_poll, .. } => longpoll::timed_out(conn, is_poll),
            Mode::Poll(_) if longpoll::timeout(conn) => {
                self.end(conn, GOING_AWAY, LeaveReason::Closed)
            }
            Mode::Closing => conn.close(),
            Mode::Poll(_) | Mode::Http => {}
        }
    }

    fn render(&mut self, publication: &Publication, dialect: Dialect, out: &mut Vec<u8>) {
        let CoreState { frame, deflater, .. } = &mut self.core;
        broadcast::render(publication, dialect, frame, deflater, out);
        frame::shrink(frame);
    }

    fn delivery(
        &mut self,
        conn: &mut Client<'_>,
        publication: &Publication,
        tag: u16,
    ) -> InterceptAction {
        let intercepted = self.deliver(conn, publication, tag);
        if intercepted == InterceptAction::Handled {
            self.run_infos(conn);
            longpoll::flush(self, conn);
        }
        intercepted
    }

    fn count(&self, counters: &mut ServerCounters) {
        counters.merge(&self.core.counters);
        counters.poll_bytes += self.core.poll_memory.used() as u64;
    }

    fn draining(&mut self, conn: &mut Client<'_>) {
        match conn.state().mode {
            Mode::Socket(_) | Mode::Poll(_) => {
                self.tell_other_nodes(conn);
                self.end(conn, SERVICE_RESTART, LeaveReason::Draining)
            }
            Mode::Http => conn.close(),
            // The session is notified too, and answers.
            Mode::AwaitingSession { .. } | Mode::Closing => {}
        }
    }

    fn close(&mut self, conn: &mut Client<'_>, _why: DisconnectReason) {
        self.end_channels(conn, LeaveReason::Closed);
        longpoll::connection_ended(conn);
        if conn.state().is_poll() {
            longpoll::close(conn, LeaveReason::Closed);
            self.core.counters.poll_sessions -= 1;
        }
    }
}

impl SharedHandler for ChannelHandler {
    fn encode(publication: &Publication, out: &mut Vec<u8>) -> bool {
        publication.body::<Broadcast>().is_some_and(|broadcast| broadcast.encode_shared(out))
    }

    fn decode(topic: &str, body: &[u8]) -> Option<Publication> {
        Broadcast::decode_shared(body).map(|broadcast| broadcast.publication(topic))
    }

    fn presence_messages(diff: &Arc<Diff>, cores: usize) -> Vec<ChannelMessage> {
        let publication = Arc::new(Broadcast::presence(diff).publication(Arc::clone(diff.topic())));
        let message = || {
            let (diff, publication) = (Arc::clone(diff), Arc::clone(&publication));
            ChannelMessage(ChannelMessageKind::Presence { diff, publication })
        };
        std::iter::repeat_with(message).take(cores).collect()
    }
}

/// The event that tells a client where to go before the server ends.
const DRAIN: &str = "drain";
/// The event that closes the connections of a socket's id.
const DISCONNECT: &str = "disconnect";
