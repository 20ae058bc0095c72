//! One core of a server: what the engine tells it, and what it tells the handler.

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
use crate::events::{EventSink, handler_panicked};
use crate::fanout::Fanout;
use crate::registry::Registry;
use crate::{
    AcceptTopology, Connection, DisconnectReason, EventOf, Handler, HandlerContext, ServerConfig,
};

/// The server as an app of the engine, generic over the driver: Linux, or the simulation.
pub struct ServerApp<H: Handler, D: Driver> {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) handler: H,
    pub(crate) acceptor: Acceptor<D::Fd>,
    /// The registry of `dispatch`, on core 0.
    pub(crate) registry: Option<Registry>,
    pub(crate) counters: ServerCounters,
    pub(crate) fanout: Fanout,
    /// Connections without a socket that are to begin.
    spawned: Vec<H::State>,
    /// How many of those there are.
    pub(crate) detached: usize,
    pub(crate) events: EventSink,
    /// Connections that have not been told yet that the server is about to end.
    draining: Vec<Key>,
    /// The message for the connection that is being nudged.
    inbox: Option<H::Message>,
    /// Connections that arrive are closed: the server ends.
    pub(crate) is_closing: bool,
    /// All connections have been told, or are about to be, that the server is about to end; who arrives is told, too.
    is_draining: bool,
}

/// What a server keeps for a connection.
pub struct Slot<C> {
    /// When something was heard of it last; or when it took bytes while more waited, if its timer has looked then.
    pub(crate) heard: Instant,
    /// When the handler wants to be called.
    pub(crate) timeout: Instant,
    pub(crate) memberships: Memberships,
    /// Whether it was closed for being idle.
    is_idle: bool,
    /// Whether it never had a socket.
    pub(crate) is_detached: bool,
    pub(crate) own: C,
}

impl<C> Slot<C> {
    fn new(own: C) -> Self {
        Self {
            heard: Instant::ZERO,
            timeout: Instant::FAR,
            memberships: Memberships::default(),
            is_idle: false,
            is_detached: false,
            own,
        }
    }

    /// The earlier of what the handler wants and of the end of its idle time.
    pub(crate) fn deadline(&self, idle_timeout: Option<Duration>) -> Deadline {
        match self.timeout.min(self.idle_at(idle_timeout)) {
            Instant::FAR => Deadline::Never,
            moment => Deadline::Coarse(moment),
        }
    }

    /// When its idle time ends. Nothing is ever heard of one without a socket, so it has none.
    fn idle_at(&self, idle_timeout: Option<Duration>) -> Instant {
        let idle_timeout = idle_timeout.filter(|_| !self.is_detached);
        idle_timeout.map_or(Instant::FAR, |idle| self.heard + idle)
    }
}

impl<H, D> ServerApp<H, D>
where
    H: Handler,
    D: Driver<Mail = CoreMessage<H::Message>>,
{
    /// A core's app. It listens once it is told to by [`Mail::listen`].
    pub fn new(config: Arc<ServerConfig>, handler: H) -> Self {
        let events = EventSink::new(config.events.clone(), config.epoch);
        Self {
            fanout: Fanout::new(handler.topics()),
            config,
            handler,
            spawned: Vec::new(),
            detached: 0,
            acceptor: Acceptor::default(),
            registry: None,
            counters: ServerCounters::default(),
            events,
            draining: Vec::new(),
            inbox: None,
            is_closing: false,
            is_draining: false,
        }
    }

    /// The handler, to look at.
    pub fn handler(&self) -> &H {
        &self.handler
    }

    /// What this core has counted.
    pub fn report(&mut self, cx: &mut CoreContext<D, Self>) -> CoreReport {
        let mut server = self.counters.clone();
        server.closed += self.acceptor.ended as u64;
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

    /// Connections that have sockets.
    pub(crate) fn connections(&self, cx: &CoreContext<D, Self>) -> usize {
        cx.len() - self.detached
    }

    /// Lets the handler act on a connection.
    pub(crate) fn handle(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        act: impl FnOnce(&mut H, &mut Connection<'_, H>),
    ) {
        let idle_timeout = self.config.idle_timeout;
        let Self { fanout, spawned, is_draining, .. } = self;
        let is_draining = *is_draining;
        let mut connection =
            Connection { wire: conn, idle_timeout, fanout, spawned, is_draining, sent: 0 };
        act(&mut self.handler, &mut connection);
        self.counters.messages_sent += connection.sent;
    }

    /// Lets the handler act for the whole core. What panics there harms nobody else.
    fn context(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        act: impl FnOnce(&mut H, &mut HandlerContext<'_, H>),
    ) {
        let Self { handler, fanout, .. } = self;
        let acted = catch_unwind(AssertUnwindSafe(|| {
            act(handler, &mut HandlerContext { ops: cx, fanout });
        }));
        if let Err(panic) = acted {
            // Counted as any other.
            cx.catch_panic(|| resume_unwind(panic));
            self.events.panicked(cx.now(), || handler_panicked::<H>(cx.core()));
        }
    }

    /// A connection that belonged to `core`, or was to, is no more.
    pub(crate) fn ended(&mut self, driver: &mut D, core: CoreId) {
        self.counters.closed += 1;
        self.acceptor.has_freed = true;
        self.acceptor.give(driver);
        if self.config.accept == AcceptTopology::Dispatch {
            self.tell_registry(driver, CoreMessageKind::End(core));
        }
    }

    pub(crate) fn tell_registry(&self, driver: &mut D, kind: CoreMessageKind<H::Message>) {
        // Control mail is never refused.
        let _ = driver.send_message(REGISTRY_CORE, CoreMessage(kind), MessagePriority::Control);
    }

    fn deliver(&mut self, cx: &mut CoreContext<D, Self>, key: Key, message: H::Message) {
        let listens = |conn: &mut Conn<'_, D, Self>| conn.is_open() || conn.state().is_detached;
        let is_open = cx.with(key, listens).unwrap_or(false);
        if is_open {
            // By way of the engine, which catches what panics. It comes at once: nothing else is queued now.
            self.inbox = Some(message);
            cx.notify(key);
        } else {
            self.context(cx, |handler, core| handler.undelivered(core, message));
        }
    }

    /// Begins the connections without sockets that callbacks have asked for.
    fn spawn(&mut self, cx: &mut CoreContext<D, Self>) {
        while let Some(own) = self.spawned.pop() {
            let now = cx.now();
            let Some(session) = cx.catch_panic(|| self.handler.session(now)) else { continue };
            self.detached += 1;
            let slot = Slot { is_detached: true, ..Slot::new(own) };
            let key = cx.insert(session, slot);
            cx.with(key, |conn| self.handle(conn, H::open));
            if self.is_draining {
                self.draining.push(key);
            }
        }
    }

    /// Tells some of the connections that the server is about to end.
    fn drain(&mut self, cx: &mut CoreContext<D, Self>) {
        let kept = self.draining.len().saturating_sub(DRAINED_OF_TURN);
        for key in self.draining.split_off(kept) {
            cx.with(key, |conn| self.handle(conn, H::draining));
        }
    }

    fn registry_mail(&mut self, cx: &mut CoreContext<D, Self>, kind: &CoreMessageKind<H::Message>) {
        let Some(registry) = &mut self.registry else { return };
        registry.heard(|| cx.driver().messages_waiting());
        let go = match *kind {
            CoreMessageKind::Ask(acceptor) => registry.ask(acceptor),
            CoreMessageKind::End(core) => registry.ended(core),
            _ => None,
        };
        if let Some(go) = go {
            let _ = cx.send_message(
                go.acceptor,
                CoreMessage(CoreMessageKind::Go(go.to)),
                MessagePriority::Control,
            );
        }
    }

    /// The server goes on; who has not been told of its end yet is not told any more.
    fn begin_again(&mut self) {
        self.is_closing = false;
        self.is_draining = false;
        self.draining.clear();
    }

    fn control(&mut self, cx: &mut CoreContext<D, Self>, control: Control) {
        match control {
            Control::Listen { addr, shared_with_all, reply } => {
                self.begin_again();
                let listening = self.listen(cx, addr, shared_with_all);
                let _ = reply.send((cx.core(), listening.map(Some)));
            }
            Control::Expect { reply } => {
                self.begin_again();
                let _ = reply.send((cx.core(), Ok(None)));
                self.acceptor.expects = Some(reply);
            }
            Control::Suspend { reply } => {
                self.suspend(cx);
                let _ = reply.send(cx.core());
            }
            Control::Drain => {
                self.is_draining = true;
                self.draining = cx.keys();
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
    D: Driver<Mail = CoreMessage<H::Message>>,
{
    type Session = H::Session;
    type State = Slot<H::State>;

    fn scratch(&self) -> <H::Session as Session>::Scratch {
        self.handler.scratch()
    }

    fn started(&mut self, cx: &mut CoreContext<D, Self>) {
        let cores = cx.driver().cores();
        // One place of the table is the listener's.
        let room = cx.driver().fd_room().map_or(usize::MAX, |room| room.saturating_sub(1));
        self.acceptor.started(cx.core(), cores, room);
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
            self.arrived(cx, fd);
        }
        while let Some(listener) = cx.driver().take_shared() {
            self.listener_arrived(cx, listener);
        }
    }

    fn woken(&mut self, _desk: &mut CoreContext<D, Self>) {
        // Perhaps a permit came back; the end of the turn looks.
        self.acceptor.was_named = true;
    }

    fn message(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        CoreMessage(kind): CoreMessage<H::Message>,
    ) {
        match kind {
            CoreMessageKind::Message(key, message) => self.deliver(cx, key, message),
            CoreMessageKind::Core(message) => {
                self.context(cx, |handler, core| handler.mail(core, message));
            }
            CoreMessageKind::Publish(publication, except) => {
                self.fanout.counters.publishes_received += 1;
                self.fanout.publish_here(&publication, except);
            }
            CoreMessageKind::Relay(publication) => self.fanout.publish(&publication, None),
            CoreMessageKind::Ask(_) | CoreMessageKind::End(_) => self.registry_mail(cx, &kind),
            CoreMessageKind::Go(to) => self.go(cx, to),
            CoreMessageKind::Control(control) => self.control(cx, control),
        }
    }

    fn due(&self) -> Instant {
        let draining = if self.draining.is_empty() { Instant::FAR } else { Instant::ZERO };
        self.acceptor.due().min(self.fanout.due()).min(draining)
    }

    fn run_due(&mut self, cx: &mut CoreContext<D, Self>) {
        self.drain(cx);
        self.retry(cx);
        self.fan_out(cx);
    }

    fn turn_ended(&mut self, cx: &mut CoreContext<D, Self>) {
        if let Some(registry) = &mut self.registry {
            registry.turn_ended();
        }
        self.spawn(cx);
        self.context(cx, H::turn_ended);
        self.after_turn(cx);
    }

    fn opened(&mut self, conn: &mut Conn<'_, D, Self>) {
        let now = conn.now();
        conn.state().heard = now;
        if self.config.idle_timeout.is_some() {
            let deadline = conn.state().deadline(self.config.idle_timeout);
            conn.set_deadline(deadline);
        }
        self.handle(conn, H::open);
        if self.is_draining {
            // It was on its way here, from another core or in the accept queue.
            let key = conn.key();
            self.draining.push(key);
        }
    }

    fn event(&mut self, conn: &mut Conn<'_, D, Self>, event: EventOf<'_, H>) {
        let now = conn.now();
        conn.state().heard = now;
        self.counters.messages_received += 1;
        self.handle(conn, |handler, conn| handler.event(conn, event));
    }

    fn drained(&mut self, conn: &mut Conn<'_, D, Self>) {
        self.handle(conn, H::drained);
    }

    fn notified(&mut self, conn: &mut Conn<'_, D, Self>) {
        if let Some(message) = self.inbox.take() {
            self.handle(conn, |handler, conn| handler.message(conn, message));
        }
    }

    fn deadline(&mut self, conn: &mut Conn<'_, D, Self>) {
        let (now, idle_timeout) = (conn.now(), self.config.idle_timeout);
        // Nothing is received while bytes wait for it: that it takes some of them is all that it can say. Once it has
        // taken them all, what it said meanwhile is received at once.
        let taken_at = conn.taken_at();
        let slot = conn.state();
        slot.heard = slot.heard.max(taken_at);
        if slot.idle_at(idle_timeout) <= now {
            slot.is_idle = true;
            self.counters.idle_timeouts += 1;
            return conn.close();
        }
        // What was heard meanwhile has put the end off, and nothing else did: the timer is set again here.
        let is_timeout = slot.timeout <= now;
        if is_timeout {
            slot.timeout = Instant::FAR;
        }
        let deadline = slot.deadline(idle_timeout);
        conn.set_deadline(deadline);
        if is_timeout {
            self.handle(conn, H::timeout);
        }
    }

    fn closed(&mut self, conn: &mut Conn<'_, D, Self>, reason: CloseReason) -> AfterClose {
        // Booked at the end of the turn, whether the handler panics or not: its permit is another connection's only
        // once the handler has heard of the end.
        let is_detached = conn.state().is_detached;
        if is_detached {
            self.detached -= 1;
        } else {
            self.acceptor.ended += 1;
        }
        self.fanout.hub.unsubscribe_all(&mut conn.state().memberships);
        let core = conn.core();
        let why = match reason {
            CloseReason::Requested if conn.state().is_idle => DisconnectReason::Idle,
            CloseReason::Requested => DisconnectReason::Asked,
            CloseReason::Finished => DisconnectReason::Finished,
            CloseReason::Failed(errno) | CloseReason::ConnectFailed(errno) => {
                self.counters.resets += 1;
                DisconnectReason::Failed(errno)
            }
            CloseReason::Overflow => DisconnectReason::Overflow,
            CloseReason::Panicked => {
                self.events.panicked(conn.now(), || handler_panicked::<H>(core));
                DisconnectReason::Panicked
            }
        };
        self.handle(conn, |handler, conn| handler.close(conn, why));
        // Whatever it joined as it closed.
        self.fanout.hub.unsubscribe_all(&mut conn.state().memberships);
        AfterClose::Free
    }
}

impl<C: Default> Default for Slot<C> {
    fn default() -> Self {
        Self::new(C::default())
    }
}

/// Connections that one turn tells that the server is about to end, so that their answers are read, too.
const DRAINED_OF_TURN: usize = 256;
/// Where the registry of `dispatch` lives.
const REGISTRY_CORE: CoreId = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_keeps_for_a_connection_is_24_bytes_and_the_handlers_own() {
        assert_eq!(size_of::<Slot<()>>(), 24);
    }
}
