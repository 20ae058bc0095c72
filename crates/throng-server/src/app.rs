//! The app of one core of a server: receives the engine's callbacks and calls the handler.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use throng_base::{Instant, Key};
use throng_driver::{CoreLink, MessagePriority, SocketClose, Sockets};
use throng_engine::{AfterClose, App, CloseReason, Conn, CoreContext, TransportCounters};
use throng_measure::{ServerCounters, Tally};
use throng_proto::Session;

use crate::acceptor::Acceptor;
use crate::core_message::{Control, CoreMessage, CoreMessageKind, CoreReport, ServerDriver};
use crate::events::{EventSink, handler_panic};
use crate::fanout::Fanout;
use crate::inspection::Inspection;
use crate::node_port::NodePort;
use crate::slot::Slot;
use crate::{
    Connection, ConnectionId, DisconnectReason, EventOf, Handler, HandlerContext, ServerConfig,
};

mod accept;
mod fan_out;
mod inspect;

/// The server as an app of the engine. It is generic over the driver: Linux or the simulation.
pub struct ServerApp<H: Handler, D: Sockets> {
    config: Arc<ServerConfig>,
    handler: H,
    acceptor: Acceptor<D>,
    counters: ServerCounters,
    /// Connections that their transport ended, by the name of its error.
    transport_errors: Tally,
    fanout: Fanout,
    /// States of connections without a socket that begin at the end of the turn.
    spawned: Vec<H::State>,
    /// The number of open connections without a socket.
    detached_count: usize,
    events: EventSink,
    /// Connections whose [`Handler::draining`] is still to be called.
    drain_queue: Vec<Key>,
    /// The message for the connection that is being notified.
    inbox: Option<H::Message>,
    /// True while the server drains: [`Handler::draining`] is called for connections that arrive,
    /// too.
    is_draining: bool,
    /// The addresses of other nodes, while the server drains.
    other_nodes: Arc<[Arc<str>]>,
    /// A look at this core, while one is in progress.
    inspection: Option<Box<Inspection>>,
}

impl<H: Handler, D: ServerDriver<Payload = H::Message>> ServerApp<H, D> {
    /// Makes the app of a core. It listens when it receives [`CoreMessage::listen`].
    pub fn new(config: Arc<ServerConfig>, handler: H) -> Self {
        Self {
            acceptor: Acceptor::new(&config),
            events: EventSink::new(&config),
            fanout: Fanout::new(handler.topics()),
            config,
            handler,
            spawned: Vec::new(),
            detached_count: 0,
            counters: ServerCounters::default(),
            transport_errors: Tally::default(),
            drain_queue: Vec::new(),
            inbox: None,
            is_draining: false,
            other_nodes: Arc::default(),
            inspection: None,
        }
    }

    /// Sets the way to other nodes: the core's topics are shared with them.
    pub(crate) fn share_topics(&mut self, node: Arc<NodePort>) {
        self.handler.share_topics(node.number());
        self.fanout.share_topics(node);
    }

    /// Returns the handler, for inspection.
    pub fn handler(&self) -> &H {
        &self.handler
    }

    /// Returns the counters of this core.
    pub fn report(&mut self, cx: &mut CoreContext<D, Self>) -> CoreReport {
        let mut server = self.counters.clone();
        server.open = self.connections(cx) as u64;
        self.acceptor.report(&mut server);
        self.fanout.report(&mut server);
        count_transport(&cx.transport_counters(), &mut server);
        cx.catch_panic(|| self.handler.count(&mut server));
        CoreReport {
            core: cx.core(),
            server,
            turns: cx.counters(),
            accept_errors: self.acceptor.errors().to_vec(),
            transport_errors: self.transport_errors.clone(),
        }
    }

    /// Returns the number of connections that have sockets.
    fn connections(&self, cx: &CoreContext<D, Self>) -> usize {
        cx.len() - self.detached_count
    }

    /// Calls the handler for a connection.
    fn call_handler(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        act: impl FnOnce(&mut H, &mut Connection<'_, H>),
    ) {
        let idle_timeout = self.config.idle_timeout;
        let mut connection = Connection {
            id: ConnectionId::new(conn.core(), conn.key()),
            now: conn.now(),
            ops: conn,
            idle_timeout,
            fanout: &mut self.fanout,
            spawned: &mut self.spawned,
            is_draining: self.is_draining,
            other_nodes: &self.other_nodes,
            sent: 0,
        };
        act(&mut self.handler, &mut connection);
        self.counters.messages_sent += connection.sent;
    }

    /// Calls the handler for the whole core. A panic ends no connection.
    fn call_core_handler(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        act: impl FnOnce(&mut H, &mut HandlerContext<'_, H>),
    ) {
        let Self { handler, fanout, .. } = self;
        let (core, now) = (cx.core(), cx.now());
        let acted = catch_unwind(AssertUnwindSafe(|| {
            // A control message is never refused.
            let mut post = |to, kind| {
                let _ = cx.send_message(to, CoreMessage(kind), MessagePriority::Control);
            };
            act(handler, &mut HandlerContext { core, now, fanout, post: &mut post });
        }));
        if let Err(panic) = acted {
            // Counts the panic as any other.
            cx.catch_panic(|| resume_unwind(panic));
            self.events.emit_rarely(now, || handler_panic::<H>(core));
        }
    }

    /// Calls [`Handler::message`] for an open connection, or [`Handler::undelivered`].
    fn deliver_message(&mut self, cx: &mut CoreContext<D, Self>, key: Key, message: H::Message) {
        let listens = |conn: &mut Conn<'_, D, Self>| conn.is_open() || conn.state().is_detached;
        let is_open = cx.with(key, listens).unwrap_or(false);
        if is_open {
            // The engine calls back at once, since nothing else is queued, and catches panics.
            self.inbox = Some(message);
            cx.notify(key);
        } else {
            self.call_core_handler(cx, |handler, core| handler.undelivered(core, message));
        }
    }

    /// Begins the connections without sockets that callbacks have requested.
    fn open_spawned(&mut self, cx: &mut CoreContext<D, Self>) {
        while let Some(state) = self.spawned.pop() {
            let now = cx.now();
            let Some(session) = cx.catch_panic(|| self.handler.session(now)) else { continue };
            self.detached_count += 1;
            let slot = Slot { is_detached: true, ..Slot::new(state) };
            let key = cx.insert(session, slot);
            cx.with(key, |conn| self.call_handler(conn, H::open));
            if self.is_draining {
                self.drain_queue.push(key);
            }
        }
    }

    /// Calls [`Handler::draining`] for the next connections in the queue.
    fn notify_draining(&mut self, cx: &mut CoreContext<D, Self>) {
        let kept = self.drain_queue.len().saturating_sub(DRAINED_OF_TURN);
        for key in self.drain_queue.split_off(kept) {
            cx.with(key, |conn| {
                // A connection in its handshake hears of it when it is open.
                if conn.state().was_opened() {
                    self.call_handler(conn, H::draining);
                }
            });
        }
    }

    /// Ends the drain: the server continues, and connections left in the queue are not notified.
    fn cancel_drain(&mut self) {
        self.acceptor.set_closing(false);
        self.is_draining = false;
        self.drain_queue.clear();
    }

    /// Executes a command of the server.
    fn control(&mut self, cx: &mut CoreContext<D, Self>, control: Control) {
        match control {
            Control::Listen { addr, shared_with_all, reply } => {
                self.cancel_drain();
                let listening = self.acceptor.listen(&mut self.lend(cx), addr, shared_with_all);
                let _ = reply.send((cx.core(), listening.map(Some)));
            }
            Control::ExpectListener { reply } => {
                self.cancel_drain();
                let _ = reply.send((cx.core(), Ok(None)));
                self.acceptor.expect_listener(reply);
            }
            Control::Suspend { reply } => {
                self.suspend(cx);
                let _ = reply.send(cx.core());
            }
            Control::Drain { other_nodes } => {
                self.other_nodes = other_nodes;
                self.is_draining = true;
                self.drain_queue = cx.keys();
            }
            Control::CloseAll => {
                self.acceptor.set_closing(true);
                for key in cx.keys() {
                    cx.close(key, SocketClose::Finish);
                }
            }
            Control::ConfigureTls { config, reply } => {
                if cx.configure_transport(Box::new(config)) {
                    let _ = reply.send(cx.core());
                }
            }
            Control::Collect { reply } => {
                let _ = reply.send(self.report(cx));
            }
            Control::Inspect { rows, reply } => self.begin_inspection(cx, rows, reply),
            Control::CountTopics { topics, reply } => {
                let counts_of = |topic: &Arc<str>| self.fanout.hub.counts_of(topic);
                let counts = topics.iter().map(|topic| counts_of(topic).unwrap_or_default());
                let _ = reply.send((cx.core(), counts.collect()));
            }
            Control::Stop => {
                self.acceptor.close_listener(&mut self.lend(cx));
                cx.stop();
            }
        }
    }
}

impl<H: Handler, D: ServerDriver<Payload = H::Message>> App<D> for ServerApp<H, D> {
    type Session = H::Session;
    type State = Slot<H::State>;

    fn scratch(&self) -> <H::Session as Session>::Scratch {
        self.handler.scratch()
    }

    fn started(&mut self, cx: &mut CoreContext<D, Self>) {
        let driver = cx.driver();
        self.acceptor.start(driver);
        self.fanout.started(driver.link().core(), driver.link().cores());
    }

    fn acceptable(&mut self, cx: &mut CoreContext<D, Self>, _number: u32) {
        self.accept(cx);
    }

    fn passed(&mut self, cx: &mut CoreContext<D, Self>) {
        while let Some(fd) = cx.driver().take_passed() {
            self.handoff_received(cx, fd);
        }
        while let Some(listener) = cx.driver().take_shared() {
            self.acceptor.listener_arrived(&mut self.lend(cx), listener);
        }
    }

    fn woken(&mut self, _cx: &mut CoreContext<D, Self>) {
        self.acceptor.permit_returned();
    }

    fn message(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        CoreMessage(kind): CoreMessage<H::Message>,
    ) {
        match kind {
            CoreMessageKind::Connection(key, message) => self.deliver_message(cx, key, message),
            CoreMessageKind::Handler(message) => {
                self.call_core_handler(cx, |handler, core| handler.core_message(core, message));
            }
            CoreMessageKind::Publish(publication, except) => {
                self.fanout.publish_received(&publication, except);
            }
            CoreMessageKind::Relay(publication) => self.fanout.publish(&publication, None),
            CoreMessageKind::Registry(message) => {
                self.acceptor.registry_message(cx.driver(), message)
            }
            CoreMessageKind::Placement(to) => self.placement_received(cx, to),
            CoreMessageKind::Control(control) => self.control(cx, control),
        }
    }

    fn due(&self) -> Instant {
        let draining = if self.drain_queue.is_empty() { Instant::FAR } else { Instant::ZERO };
        let inspection = self.inspection.as_ref().map_or(Instant::FAR, |it| it.due());
        self.acceptor.due().min(self.fanout.due()).min(draining).min(inspection)
    }

    fn run_due(&mut self, cx: &mut CoreContext<D, Self>) {
        self.notify_draining(cx);
        self.continue_inspection(cx);
        if self.acceptor.is_retry_due(cx.now()) {
            self.accept(cx);
        }
        self.fan_out(cx);
    }

    fn turn_ended(&mut self, cx: &mut CoreContext<D, Self>) {
        self.open_spawned(cx);
        self.call_core_handler(cx, H::turn_ended);
        self.fanout.share_topic_changes();
        self.accept_after_turn(cx);
    }

    fn opened(&mut self, conn: &mut Conn<'_, D, Self>) {
        let now = conn.now();
        conn.state().last_activity = now;
        if self.config.idle_timeout.is_some() {
            let deadline = conn.state().deadline(self.config.idle_timeout);
            conn.set_deadline(deadline);
        }
        self.call_handler(conn, H::open);
        if self.is_draining {
            // The connection was in flight to this core, or in the accept queue.
            let key = conn.key();
            self.drain_queue.push(key);
        }
    }

    fn event(&mut self, conn: &mut Conn<'_, D, Self>, event: EventOf<'_, H>) {
        let now = conn.now();
        conn.state().last_activity = now;
        self.counters.messages_received += 1;
        self.call_handler(conn, |handler, conn| handler.event(conn, event));
    }

    fn drained(&mut self, conn: &mut Conn<'_, D, Self>) {
        self.call_handler(conn, H::drained);
    }

    fn notified(&mut self, conn: &mut Conn<'_, D, Self>) {
        if let Some(message) = self.inbox.take() {
            self.call_handler(conn, |handler, conn| handler.message(conn, message));
        }
    }

    fn deadline(&mut self, conn: &mut Conn<'_, D, Self>) {
        let (now, idle_timeout) = (conn.now(), self.config.idle_timeout);
        // Nothing is received while bytes wait for the peer, so that taking some of them is its
        // only sign of activity. Once it has taken all, the bytes it has sent meanwhile are
        // received.
        let taken_at = conn.taken_at();
        let slot = conn.state();
        slot.last_activity = slot.last_activity.max(taken_at);
        if slot.idle_at(idle_timeout) <= now {
            slot.is_idle = true;
            self.counters.idle_timeouts += 1;
            return conn.close();
        }
        // Activity may have moved the idle deadline without setting the timer; it is set here.
        let is_timeout = slot.timeout <= now;
        if is_timeout {
            slot.timeout = Instant::FAR;
        }
        let deadline = slot.deadline(idle_timeout);
        conn.set_deadline(deadline);
        if is_timeout {
            self.call_handler(conn, H::timeout);
        }
    }

    fn closed(&mut self, conn: &mut Conn<'_, D, Self>, reason: CloseReason) -> AfterClose {
        // Counted whether the handler panics or not.
        let is_detached = conn.state().is_detached;
        if is_detached {
            self.detached_count -= 1;
        } else {
            self.acceptor.connection_closed();
        }
        self.fanout.hub.unsubscribe_all(&mut conn.state().memberships);
        let core = conn.core();
        let why = match reason {
            CloseReason::Requested if conn.state().is_idle => DisconnectReason::Idle,
            CloseReason::Requested => DisconnectReason::Local,
            CloseReason::Finished => DisconnectReason::PeerFinished,
            CloseReason::Failed(errno) | CloseReason::ConnectFailed(errno) => {
                self.counters.resets += 1;
                DisconnectReason::Failed(errno)
            }
            CloseReason::HandshakeTimeout => DisconnectReason::TransportFailed,
            CloseReason::TransportFailed(error) => {
                self.transport_errors.add(error.name(), 1);
                DisconnectReason::TransportFailed
            }
            CloseReason::Overflow => DisconnectReason::Overflow,
            CloseReason::Panicked => {
                self.events.emit_rarely(conn.now(), || handler_panic::<H>(core));
                DisconnectReason::Panicked
            }
        };
        if !conn.state().was_opened() {
            return AfterClose::Free;
        }
        self.call_handler(conn, |handler, conn| handler.close(conn, why));
        // Ends the memberships that the handler made in `close`.
        self.fanout.hub.unsubscribe_all(&mut conn.state().memberships);
        AfterClose::Free
    }
}

/// Adds the counters of a core's transport.
fn count_transport(transport: &TransportCounters, server: &mut ServerCounters) {
    server.tls_handshakes = transport.handshakes;
    server.tls_opened = transport.opened;
    server.tls_resumed = transport.resumed;
    server.tls_handshake_timeouts = transport.handshake_timeouts;
    server.tls_failures = transport.failures;
    server.tls_truncated = transport.truncated;
    server.tls_under_way = transport.under_way as u64;
    server.tls_part_bytes = transport.part_bytes as u64;
}

/// Connections notified of the drain in one turn at most, so that their answers are read too.
const DRAINED_OF_TURN: usize = 256;
