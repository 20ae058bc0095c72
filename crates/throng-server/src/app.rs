//! One core of a server: what the engine tells it, and what it tells the handler.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use throng_base::{Instant, Key};
use throng_driver::{CloseHow, CoreId, Driver, MailKind};
use throng_engine::{After, App, CloseReason, Conn, Deadline, Desk};
use throng_proto::Session;
use throng_pubsub::Memberships;
use throng_report::ServerCounters;

use crate::acceptor::Acceptor;
use crate::events::{Teller, handler_panicked};
use crate::fanout::Fanout;
use crate::mail::{Control, CoreReport, Mail, Parcel};
use crate::registry::Registry;
use crate::{Accept, Connection, Corewide, Ended, EventOf, Handler, ServerConfig};

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
    spawned: Vec<H::Conn>,
    /// How many of those there are.
    pub(crate) detached: usize,
    pub(crate) teller: Teller,
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
    D: Driver<Mail = Mail<H::Message>>,
{
    /// A core's app. It listens once it is told to by [`Mail::listen`].
    pub fn new(config: Arc<ServerConfig>, handler: H) -> Self {
        let teller = Teller::new(config.events.clone(), config.epoch);
        Self {
            fanout: Fanout::new(handler.topics()),
            config,
            handler,
            spawned: Vec::new(),
            detached: 0,
            acceptor: Acceptor::default(),
            registry: None,
            counters: ServerCounters::default(),
            teller,
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
    pub fn report(&mut self, desk: &mut Desk<D, Self>) -> CoreReport {
        let mut server = self.counters.clone();
        server.closed += self.acceptor.ended as u64;
        server.open = self.connections(desk) as u64;
        server.paused_cores = u64::from(self.acceptor.is_paused());
        self.fanout.report(&mut server);
        desk.shield(|| self.handler.count(&mut server));
        if let Some(registry) = &mut self.registry {
            server.registry_mailbox_most = registry.take_mailbox_most();
        }
        CoreReport {
            core: desk.core(),
            server,
            turns: desk.counters(),
            accept_errors: self.acceptor.errors.clone(),
        }
    }

    /// Connections that have sockets.
    pub(crate) fn connections(&self, desk: &Desk<D, Self>) -> usize {
        desk.len() - self.detached
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
    fn corewide(
        &mut self,
        desk: &mut Desk<D, Self>,
        act: impl FnOnce(&mut H, &mut Corewide<'_, H>),
    ) {
        let Self { handler, fanout, .. } = self;
        let acted = catch_unwind(AssertUnwindSafe(|| {
            act(handler, &mut Corewide { floor: desk, fanout });
        }));
        if let Err(panic) = acted {
            // Counted as any other.
            desk.shield(|| resume_unwind(panic));
            self.teller.panicked(desk.now(), || handler_panicked::<H>(desk.core()));
        }
    }

    /// A connection that belonged to `core`, or was to, is no more.
    pub(crate) fn ended(&mut self, driver: &mut D, core: CoreId) {
        self.counters.closed += 1;
        self.acceptor.has_freed = true;
        self.acceptor.give(driver);
        if self.config.accept == Accept::Dispatch {
            self.tell_registry(driver, Parcel::End(core));
        }
    }

    pub(crate) fn tell_registry(&self, driver: &mut D, parcel: Parcel<H::Message>) {
        // Control mail is never refused.
        let _ = driver.post(REGISTRY_CORE, Mail(parcel), MailKind::Control);
    }

    fn deliver(&mut self, desk: &mut Desk<D, Self>, key: Key, message: H::Message) {
        let listens = |conn: &mut Conn<'_, D, Self>| conn.is_open() || conn.state().is_detached;
        let is_open = desk.with(key, listens).unwrap_or(false);
        if is_open {
            // By way of the engine, which catches what panics. It comes at once: nothing else is queued now.
            self.inbox = Some(message);
            desk.nudge(key);
        } else {
            self.corewide(desk, |handler, core| handler.undelivered(core, message));
        }
    }

    /// Begins the connections without sockets that callbacks have asked for.
    fn spawn(&mut self, desk: &mut Desk<D, Self>) {
        while let Some(own) = self.spawned.pop() {
            let now = desk.now();
            let Some(session) = desk.shield(|| self.handler.session(now)) else { continue };
            self.detached += 1;
            let slot = Slot { is_detached: true, ..Slot::new(own) };
            let key = desk.insert(session, slot);
            desk.with(key, |conn| self.handle(conn, H::open));
            if self.is_draining {
                self.draining.push(key);
            }
        }
    }

    /// Tells some of the connections that the server is about to end.
    fn drain(&mut self, desk: &mut Desk<D, Self>) {
        let kept = self.draining.len().saturating_sub(DRAINED_OF_TURN);
        for key in self.draining.split_off(kept) {
            desk.with(key, |conn| self.handle(conn, H::draining));
        }
    }

    fn registry_mail(&mut self, desk: &mut Desk<D, Self>, parcel: &Parcel<H::Message>) {
        let Some(registry) = &mut self.registry else { return };
        registry.heard(|| desk.driver().mail_waiting());
        let go = match *parcel {
            Parcel::Ask(acceptor) => registry.ask(acceptor),
            Parcel::End(core) => registry.ended(core),
            _ => None,
        };
        if let Some(go) = go {
            let _ = desk.post(go.acceptor, Mail(Parcel::Go(go.to)), MailKind::Control);
        }
    }

    /// The server goes on; who has not been told of its end yet is not told any more.
    fn begin_again(&mut self) {
        self.is_closing = false;
        self.is_draining = false;
        self.draining.clear();
    }

    fn control(&mut self, desk: &mut Desk<D, Self>, control: Control) {
        match control {
            Control::Listen { addr, shared_with_all, reply } => {
                self.begin_again();
                let listening = self.listen(desk, addr, shared_with_all);
                let _ = reply.send((desk.core(), listening.map(Some)));
            }
            Control::Expect { reply } => {
                self.begin_again();
                let _ = reply.send((desk.core(), Ok(None)));
                self.acceptor.expects = Some(reply);
            }
            Control::Suspend { reply } => {
                self.suspend(desk);
                let _ = reply.send(desk.core());
            }
            Control::Drain => {
                self.is_draining = true;
                self.draining = desk.keys();
            }
            Control::CloseAll => {
                self.is_closing = true;
                for key in desk.keys() {
                    desk.close(key, CloseHow::Finish);
                }
            }
            Control::Collect { reply } => {
                let _ = reply.send(self.report(desk));
            }
            Control::Stop => {
                self.close_listener(desk);
                desk.stop();
            }
        }
    }
}

impl<H, D> App<D> for ServerApp<H, D>
where
    H: Handler,
    D: Driver<Mail = Mail<H::Message>>,
{
    type Session = H::Session;
    type State = Slot<H::Conn>;

    fn scratch(&self) -> <H::Session as Session>::Scratch {
        self.handler.scratch()
    }

    fn started(&mut self, desk: &mut Desk<D, Self>) {
        let cores = desk.driver().cores();
        // One place of the table is the listener's.
        let room = desk.driver().fd_room().map_or(usize::MAX, |room| room.saturating_sub(1));
        self.acceptor.started(desk.core(), cores, room);
        self.fanout.started(desk.core(), cores);
        if self.config.accept == Accept::Dispatch && desk.core() == REGISTRY_CORE {
            self.registry = Some(Registry::new(cores, room));
        }
    }

    fn acceptable(&mut self, desk: &mut Desk<D, Self>, _number: u32) {
        self.accept(desk);
    }

    fn passed(&mut self, desk: &mut Desk<D, Self>) {
        while let Some(fd) = desk.driver().take_passed() {
            self.arrived(desk, fd);
        }
        while let Some(listener) = desk.driver().take_shared() {
            self.listener_arrived(desk, listener);
        }
    }

    fn woken(&mut self, _desk: &mut Desk<D, Self>) {
        // Perhaps a permit came back; the end of the turn looks.
        self.acceptor.was_named = true;
    }

    fn mail(&mut self, desk: &mut Desk<D, Self>, Mail(parcel): Mail<H::Message>) {
        match parcel {
            Parcel::Message(key, message) => self.deliver(desk, key, message),
            Parcel::Core(message) => {
                self.corewide(desk, |handler, core| handler.mail(core, message));
            }
            Parcel::Publish(publication, except) => {
                self.fanout.counters.publishes_received += 1;
                self.fanout.publish_here(&publication, except);
            }
            Parcel::Relay(publication) => self.fanout.publish(&publication, None),
            Parcel::Ask(_) | Parcel::End(_) => self.registry_mail(desk, &parcel),
            Parcel::Go(to) => self.go(desk, to),
            Parcel::Control(control) => self.control(desk, control),
        }
    }

    fn due(&self) -> Instant {
        let draining = if self.draining.is_empty() { Instant::FAR } else { Instant::ZERO };
        self.acceptor.due().min(self.fanout.due()).min(draining)
    }

    fn run_due(&mut self, desk: &mut Desk<D, Self>) {
        self.drain(desk);
        self.retry(desk);
        self.fan_out(desk);
    }

    fn turn_ended(&mut self, desk: &mut Desk<D, Self>) {
        if let Some(registry) = &mut self.registry {
            registry.turn_ended();
        }
        self.spawn(desk);
        self.corewide(desk, H::turn_ended);
        self.after_turn(desk);
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

    fn nudged(&mut self, conn: &mut Conn<'_, D, Self>) {
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

    fn closed(&mut self, conn: &mut Conn<'_, D, Self>, reason: CloseReason) -> After {
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
            CloseReason::Asked if conn.state().is_idle => Ended::Idle,
            CloseReason::Asked => Ended::Asked,
            CloseReason::Finished => Ended::Finished,
            CloseReason::Failed(errno) | CloseReason::ConnectFailed(errno) => {
                self.counters.resets += 1;
                Ended::Failed(errno)
            }
            CloseReason::Overflow => Ended::Overflow,
            CloseReason::Panicked => {
                self.teller.panicked(conn.now(), || handler_panicked::<H>(core));
                Ended::Panicked
            }
        };
        self.handle(conn, |handler, conn| handler.close(conn, why));
        // Whatever it joined as it closed.
        self.fanout.hub.unsubscribe_all(&mut conn.state().memberships);
        After::Free
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
