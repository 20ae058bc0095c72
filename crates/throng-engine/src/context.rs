//! One core's context, lent to the app's callbacks about the core.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use throng_base::wheel::Wheel;
use throng_base::{Instant, Key};
use throng_driver::{
    CoreId, CoreLink, Driver, Errno, Interest, MailboxFull, MessagePriority, SocketClose, Token,
};
use throng_measure::CoreCounters;
use throng_proto::TransportRole;

use crate::conn::Conn;
use crate::entry::{Entry, SocketState};
use crate::io::{CoreIo, Effect};
use crate::record_layer::RecordLayer;
use crate::table::EntryTable;
use crate::timers::TimerQueue;
use crate::{App, CloseReason, CoreLimits};

/// Everything of a core except its app.
pub struct CoreContext<D: Driver, A: App<D>> {
    pub(crate) table: EntryTable<D::Fd, A::Session, A::State>,
    pub(crate) timers: TimerQueue,
    pub(crate) io: CoreIo<D>,
}

impl<D: Driver, A: App<D>> CoreContext<D, A> {
    pub(crate) fn new(driver: D, limits: CoreLimits) -> Self {
        let now = driver.now();
        Self {
            table: EntryTable::new(),
            timers: TimerQueue::new(Wheel::new(now)),
            io: CoreIo::new(driver, now, limits),
        }
    }

    /// Returns the time at which the core began to process the present event.
    pub fn now(&self) -> Instant {
        self.io.now
    }

    /// Returns the number of this core.
    pub fn core(&self) -> CoreId {
        self.io.driver.link().core()
    }

    /// Returns the driver.
    pub fn driver(&mut self) -> &mut D {
        &mut self.io.driver
    }

    /// Returns the core's counters, gauges included. Each call resets the longest turn.
    pub fn counters(&mut self) -> CoreCounters {
        let slots = u64::from(self.table.entries.len());
        let counters = &mut self.io.counters;
        let turn_us_most = std::mem::take(&mut counters.turn_us_most);
        CoreCounters { slots, turn_us_most, ..counters.clone() }
    }

    /// Returns the number of entries: connections and users.
    pub fn len(&self) -> usize {
        self.table.entries.len() as usize
    }

    /// Reports whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.table.entries.is_empty()
    }

    /// Returns the keys of all entries.
    pub fn keys(&self) -> Vec<Key> {
        self.table.entries.keys().collect()
    }

    /// Returns the app's state of `key`.
    pub fn state(&mut self, key: Key) -> Option<&mut A::State> {
        self.table.entries.get_mut(key).map(|entry| &mut entry.state)
    }

    /// Returns the present key of the entry at `index`, for apps whose users change keys with each
    /// connection.
    pub fn key_at(&self, index: u32) -> Option<Key> {
        self.table.entries.key_at(index)
    }

    /// Inserts an established socket into the table; [`App::opened`] follows, after the handshake
    /// of the core's transport if it has one.
    ///
    /// # Errors
    /// The driver cannot watch the socket (no epoll watches, no memory): returns the socket and the
    /// error.
    pub fn adopt(
        &mut self,
        fd: D::Fd,
        session: A::Session,
        state: A::State,
    ) -> Result<Key, (D::Fd, Errno)> {
        let key = self.insert(session, state);
        if let Err(errno) = self.io.driver.register(&fd, Token::connection(key), Interest::Read) {
            self.free(key);
            return Err((fd, errno));
        }
        if self.io.transport.is_some() {
            self.begin_handshake(key, fd, TransportRole::Server);
            return Ok(key);
        }
        if let Some(entry) = self.table.entries.get_mut(key) {
            entry.socket = SocketState::Open(fd, RecordLayer::default());
        }
        self.io.effects.push_back(Effect::Opened(key));
        Ok(key)
    }

    /// Gives the core's transport another configuration, for the handshakes that begin from now on.
    /// Returns false if there is none, or if it takes no such configuration.
    pub fn configure_transport(&mut self, config: Box<dyn Any + Send>) -> bool {
        let context = self.io.transport.as_mut();
        context.is_some_and(|context| context.transport.configure(config))
    }

    /// Inserts an entry without a socket into the table.
    pub fn insert(&mut self, session: A::Session, state: A::State) -> Key {
        self.table.entries.insert(Entry::new(session, state))
    }

    /// Removes an entry without a socket from the table. No callback follows.
    pub fn remove(&mut self, key: Key) -> Option<A::State> {
        let entry = self.table.entries.get(key)?;
        debug_assert!(
            entry.socket.fd().is_none(),
            "close an entry that has a socket before its removal"
        );
        self.timers.cancel(&mut self.table, key);
        self.table.entries.remove(key).map(|entry| entry.state)
    }

    /// Calls [`App::notified`] for `key` after the present callback returns.
    pub fn notify(&mut self, key: Key) {
        self.io.effects.push_back(Effect::Notified(key));
    }

    /// Closes `key` after the present callback returns; [`App::closed`] follows.
    pub fn close(&mut self, key: Key, how: SocketClose) {
        self.io.effects.push_back(Effect::Close(key, CloseReason::Requested, how));
    }

    /// Runs `f` on one connection, outside the connection's own callbacks. Returns `None` if there
    /// is no such connection, or if `f` panics, which ends the connection.
    pub fn with<R>(&mut self, key: Key, f: impl FnOnce(&mut Conn<'_, D, A>) -> R) -> Option<R> {
        let mut conn = Conn::new(self.table.entries.get_mut(key)?, &mut self.io, key);
        let result = catch_unwind(AssertUnwindSafe(|| f(&mut conn)));
        let actions = conn.actions;
        match &result {
            Ok(_) => self.apply_actions(key, actions),
            Err(_) => self.close_panicked(key),
        }
        result.ok()
    }

    /// Runs foreign code outside the callbacks of a connection: a state's constructor, or a
    /// message's `Drop`. Returns `None` if it panics, which is counted and ends nothing. A panic of
    /// the app itself in a callback about the core is a defect, and ends the core.
    pub fn catch_panic<R>(&mut self, run: impl FnOnce() -> R) -> Option<R> {
        let result = catch_unwind(AssertUnwindSafe(run));
        self.io.counters.panics += u64::from(result.is_err());
        result.ok()
    }

    /// Leaves the remaining input of `key` to the next turn.
    pub(crate) fn defer(&mut self, key: Key) {
        let Some(entry) = self.table.entries.get_mut(key) else { return };
        if !std::mem::replace(&mut entry.is_ready_queued, true) {
            self.io.counters.reads_deferred += 1;
            self.io.ready.push_back(key);
        }
    }

    /// Puts `message` into the mailbox of the core `to`.
    ///
    /// # Errors
    /// A full mailbox refuses a bulk message: the message comes back, and is counted.
    pub fn send_message(
        &mut self,
        to: CoreId,
        message: D::Message,
        priority: MessagePriority,
    ) -> Result<(), MailboxFull<D::Message>> {
        self.io.send_message(to, message, priority)
    }

    /// Ends the core after this turn.
    pub fn stop(&mut self) {
        self.io.stopped = true;
    }
}
