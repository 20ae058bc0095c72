//! The app of one core of a server: receives the engine's callbacks and calls the handler.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use throng_base::{Instant, Key};
use throng_driver::{CoreId, Driver, MessagePriority, SocketClose};
use throng_engine::{AfterClose, App, CloseReason, Conn, CoreContext, Deadline};
use throng_proto::Session;
use throng_pubsub::Memberships;
use throng_report::ServerCounters;

use crate::acceptor::Acceptor;
use crate::core_message::{Control, CoreMessage, CoreMessageKind, CoreReport};
use crate::events::{EventSink, handler_panic};
use crate::fanout::Fanout;
use crate::registry::Registry;
use crate::{
    AcceptTopology, Connection, DisconnectReason, EventOf, Handler, HandlerContext, ServerConfig,
};

/// The server as an app of the engine. It is generic over the driver: Linux or the simulation.
pub struct ServerApp<H: Handler, D: Driver> {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) handler: H,
    pub(crate) acceptor: Acceptor<D::Fd>,
    /// The registry of `dispatch`, on core 0.
    pub(crate) registry: Option<Registry>,
    pub(crate) counters: ServerCounters,
    pub(crate) fanout: Fanout,
    /// States of connections without a socket that begin at the end of the turn.
    spawned: Vec<H::State>,
    /// The number of open connections without a socket.
    pub(crate) detached_count: usize,
    pub(crate) events: EventSink,
    /// Connections whose [`Handler::draining`] is still to be called.
    drain_queue: Vec<Key>,
    /// The message for the connection that is being notified.
    inbox: Option<H::Message>,
    /// True to close connections that arrive: the server is ending.
    pub(crate) is_closing: bool,
    /// True while the server drains: [`Handler::draining`] is called for connections that arrive,
    /// too.
    is_draining: bool,
}

/// The server's state of a connection.
pub struct Slot<C> {
    /// The time of the last activity: a received event, or the time when the peer took bytes that
    /// waited, if the timer has checked since.
    pub(crate) last_activity: Instant,
    /// The time at which the handler's timeout is due.
    pub(crate) timeout: Instant,
    pub(crate) memberships: Memberships,
    /// True if the connection was closed because it was idle.
    is_idle: bool,
    /// True if the connection never had a socket.
    pub(crate) is_detached: bool,
    /// The handler's state.
    pub(crate) state: C,
}

impl<C> Slot<C> {
    fn new(state: C) -> Self {
        Self {
            last_activity: Instant::ZERO,
            timeout: Instant::FAR,
            memberships: Memberships::default(),
            is_idle: false,
            is_detached: false,
            state,
        }
    }

    /// Returns the earlier of the handler's timeout and the idle timeout.
    pub(crate) fn deadline(&self, idle_timeout: Option<Duration>) -> Deadline {
        match self.timeout.min(self.idle_at(idle_timeout)) {
            Instant::FAR => Deadline::Never,
            moment => Deadline::Coarse(moment),
        }
    }

    /// Returns when the idle timeout ends. A connection without a socket receives no bytes and has
    /// none.
    fn idle_at(&self, idle_timeout: Option<Duration>) -> Instant {
        let idle_timeout = idle_timeout.filter(|_| !self.is_detached);
        idle_timeout.map_or(Instant::FAR, |idle| self.last_activity + idle)
    }
}

impl<H, D> ServerApp<H, D>
where
    H: Handler,
    D: Driver<Message = CoreMessage<H::Message>>,
{
    /// Makes the app of a core. It listens when it receives [`CoreMessage::listen`].
    pub fn new(config: Arc<ServerConfig>, handler: H) -> Self {
        let events = EventSink::new(config.events.clone(), config.epoch);
        Self {
            fanout: Fanout::new(handler.topics()),
            config,
            handler,
            spawned: Vec::new(),
            detached_count: 0,
            acceptor: Acceptor::default(),
            registry: None,
            counters: ServerCounters::default(),
            events,
            drain_queue: Vec::new(),
            inbox: None,
            is_closing: false,
            is_draining: false,
        }
    }

    /// Returns the handler, for inspection.
    pub fn handler(&self) -> &H {
        &self.handler
    }

    /// Returns the counters of this core.
    pub fn report(&mut self, cx: &mut CoreContext<D, Self>) -> CoreReport {
        let mut server = self.counters.clone();
        server.closed += self.acceptor.uncounted_closes as u64;
        server.open = self.connections(cx) as u64;
        server.paused_cores = u64::from(self.acceptor.is_paused());
        self.fanout.report(&mut server);
        cx.catch_panic(|| self.handler.count(&mut server));
        if let Some(registry) = &mut self.registry {
            server.registry_mailbox_most = registry.take_mailbox_most();
        }
        CoreReport {
            core: cx.core(),
            server,
            turns: cx.counters(),
            accept_errors: self.acceptor.errors.clone(),
        }
    }

    /// Returns the number of connections that have sockets.
    pub(crate) fn connections(&self, cx: &CoreContext<D, Self>) -> usize {
        cx.len() - self.detached_count
    }

    /// Calls the handler for a connection.
    pub(crate) fn call_handler(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        act: impl FnOnce(&mut H, &mut Connection<'_, H>),
    ) {
        let idle_timeout = self.config.idle_timeout;
        let Self { fanout, spawned, is_draining, .. } = self;
        let is_draining = *is_draining;
        let mut connection =
            Connection { ops: conn, idle_timeout, fanout, spawned, is_draining, sent: 0 };
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
        let acted = catch_unwind(AssertUnwindSafe(|| {
            act(handler, &mut HandlerContext { ops: cx, fanout });
        }));
        if let Err(panic) = acted {
            // Counts the panic as any other.
            cx.catch_panic(|| resume_unwind(panic));
            self.events.emit_panic(cx.now(), || handler_panic::<H>(cx.core()));
        }
    }

    /// Counts the end of a connection of `core`, or of one that was in flight to it, and returns
    /// its permit.
    pub(crate) fn connection_ended(&mut self, driver: &mut D, core: CoreId) {
        self.counters.closed += 1;
        self.acceptor.has_closed = true;
        self.acceptor.release_permit(driver);
        if self.config.accept == AcceptTopology::Dispatch {
            self.send_to_registry(driver, CoreMessageKind::ConnectionEnded(core));
        }
    }

    /// Sends a message to the registry of `dispatch`.
    pub(crate) fn send_to_registry(&self, driver: &mut D, kind: CoreMessageKind<H::Message>) {
        // A control message is never refused.
        let _ = driver.send_message(REGISTRY_CORE, CoreMessage(kind), MessagePriority::Control);
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
            cx.with(key, |conn| self.call_handler(conn, H::draining));
        }
    }

    /// Passes a message to the registry and sends its answer to the acceptor.
    fn registry_message(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        kind: &CoreMessageKind<H::Message>,
    ) {
        let Some(registry) = &mut self.registry else { return };
        registry.count_message(|| cx.driver().messages_waiting());
        let go = match *kind {
            CoreMessageKind::PlacementRequest(acceptor) => registry.request_placement(acceptor),
            CoreMessageKind::ConnectionEnded(core) => registry.connection_ended(core),
            _ => None,
        };
        if let Some(go) = go {
            let _ = cx.send_message(
                go.acceptor,
                CoreMessage(CoreMessageKind::Placement(go.to)),
                MessagePriority::Control,
            );
        }
    }

    /// Ends the drain: the server continues, and connections left in the queue are not notified.
    fn cancel_drain(&mut self) {
        self.is_closing = false;
        self.is_draining = false;
        self.drain_queue.clear();
    }

    /// Executes a command of the server.
    fn control(&mut self, cx: &mut CoreContext<D, Self>, control: Control) {
        match control {
            Control::Listen { addr, shared_with_all, reply } => {
                self.cancel_drain();
                let listening = self.listen(cx, addr, shared_with_all);
                let _ = reply.send((cx.core(), listening.map(Some)));
            }
            Control::ExpectListener { reply } => {
                self.cancel_drain();
                let _ = reply.send((cx.core(), Ok(None)));
                self.acceptor.listener_reply = Some(reply);
            }
            Control::Suspend { reply } => {
                self.suspend(cx);
                let _ = reply.send(cx.core());
            }
            Control::Drain => {
                self.is_draining = true;
                self.drain_queue = cx.keys();
            }
            Control::CloseAll => {
                self.is_closing = true;
                for key in cx.keys() {
                    cx.close(key, SocketClose::Finish);
                }
            }
            Control::Collect { reply } => {
                let _ = reply.send(self.report(cx));
            }
            Control::Stop => {
                self.close_listener(cx);
                cx.stop();
            }
        }
    }
}

impl<H, D> App<D> for ServerApp<H, D>
where
    H: Handler,
    D: Driver<Message = CoreMessage<H::Message>>,
{
    type Session = H::Session;
    type State = Slot<H::State>;

    fn scratch(&self) -> <H::Session as Session>::Scratch {
        self.handler.scratch()
    }

    fn started(&mut self, cx: &mut CoreContext<D, Self>) {
        let cores = cx.driver().cores();
        // The listener takes one place in the table.
        let room = cx.driver().fd_room().map_or(usize::MAX, |room| room.saturating_sub(1));
        self.acceptor.start(cx.core(), cores, room);
        self.fanout.started(cx.core(), cores);
        if self.config.accept == AcceptTopology::Dispatch && cx.core() == REGISTRY_CORE {
            self.registry = Some(Registry::new(cores, room));
        }
    }

    fn acceptable(&mut self, cx: &mut CoreContext<D, Self>, _number: u32) {
        self.accept(cx);
    }

    fn passed(&mut self, cx: &mut CoreContext<D, Self>) {
        while let Some(fd) = cx.driver().take_passed() {
            self.handoff_received(cx, fd);
        }
        while let Some(listener) = cx.driver().take_shared() {
            self.listener_arrived(cx, listener);
        }
    }

    fn woken(&mut self, _cx: &mut CoreContext<D, Self>) {
        // A permit may have been returned; the end of the turn checks.
        self.acceptor.permit_signaled = true;
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
                self.fanout.counters.publishes_received += 1;
                self.fanout.publish_here(&publication, except);
            }
            CoreMessageKind::Relay(publication) => self.fanout.publish(&publication, None),
            CoreMessageKind::PlacementRequest(_) | CoreMessageKind::ConnectionEnded(_) => {
                self.registry_message(cx, &kind)
            }
            CoreMessageKind::Placement(to) => self.placement_received(cx, to),
            CoreMessageKind::Control(control) => self.control(cx, control),
        }
    }

    fn due(&self) -> Instant {
        let draining = if self.drain_queue.is_empty() { Instant::FAR } else { Instant::ZERO };
        self.acceptor.due().min(self.fanout.due()).min(draining)
    }

    fn run_due(&mut self, cx: &mut CoreContext<D, Self>) {
        self.notify_draining(cx);
        self.retry(cx);
        self.fan_out(cx);
    }

    fn turn_ended(&mut self, cx: &mut CoreContext<D, Self>) {
        if let Some(registry) = &mut self.registry {
            registry.turn_ended();
        }
        self.open_spawned(cx);
        self.call_core_handler(cx, H::turn_ended);
        self.after_turn(cx);
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
        // The close is counted at the end of the turn, whether the handler panics or not: its
        // permit goes to another connection only after the handler's `close` has returned.
        let is_detached = conn.state().is_detached;
        if is_detached {
            self.detached_count -= 1;
        } else {
            self.acceptor.uncounted_closes += 1;
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
            CloseReason::Overflow => DisconnectReason::Overflow,
            CloseReason::Panicked => {
                self.events.emit_panic(conn.now(), || handler_panic::<H>(core));
                DisconnectReason::Panicked
            }
        };
        self.call_handler(conn, |handler, conn| handler.close(conn, why));
        // Ends the memberships that the handler made in `close`.
        self.fanout.hub.unsubscribe_all(&mut conn.state().memberships);
        AfterClose::Free
    }
}

impl<C: Default> Default for Slot<C> {
    fn default() -> Self {
        Self::new(C::default())
    }
}

/// Connections notified of the drain in one turn at most, so that their answers are read too.
const DRAINED_OF_TURN: usize = 256;
/// The core of the registry of `dispatch`.
const REGISTRY_CORE: CoreId = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_keeps_for_a_connection_is_24_bytes_and_the_handlers_own() {
        assert_eq!(size_of::<Slot<()>>(), 24);
    }
}
