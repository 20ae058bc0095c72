//! What a callback may do for the whole core: the [`Desk`], everything of a core but its app.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use throng_base::wheel::{Timer, Timers, Wheel};
use throng_base::{Instant, Key, Slab};
use throng_driver::{
    CoreId, Driver, Errno, Interest, MailboxFull, MessagePriority, SocketClose, Token,
};
use throng_report::CoreCounters;

use crate::apply;
use crate::arrival::{Arrival, StampSampler};
use crate::budget::{Budget, InputBacklog};
use crate::conn::Conn;
use crate::core::CoreLimits;
use crate::entry::{Entry, PackedDeadline, SocketState};
use crate::timers::TimerQueue;
use crate::{App, CloseReason};

/// Everything of a core but its app.
pub struct CoreContext<D: Driver, A: App<D>> {
    pub(crate) table: EntryTable<D, A>,
    pub(crate) timers: TimerQueue,
    pub(crate) io: CoreIo<D>,
}

/// The part of the context that a connection's callback may use too.
pub(crate) struct CoreIo<D: Driver> {
    pub(crate) driver: D,
    pub(crate) now: Instant,
    pub(crate) out: Vec<u8>,
    pub(crate) effects: VecDeque<Effect>,
    /// Entries that may have more to read.
    pub(crate) ready: VecDeque<Key>,
    /// What was received of them and not processed.
    pub(crate) backlog: InputBacklog,
    /// Work that connections may still have done in this turn.
    pub(crate) budget: Budget,
    pub(crate) sampler: StampSampler,
    /// Of the bytes that the present event was read from.
    pub(crate) arrival: Arrival,
    pub(crate) counters: CoreCounters,
    pub(crate) limits: CoreLimits,
    pub(crate) stopped: bool,
}

/// What is to be done once the present callback has returned.
#[derive(Debug)]
pub(crate) enum Effect {
    Opened(Key),
    Notified(Key),
    Drained(Key),
    Close(Key, CloseReason, SocketClose),
    Closed(Key, CloseReason),
}

impl<D: Driver> CoreIo<D> {
    /// Receives into `buffer`; asks when the bytes arrived if the app wants to know.
    pub(crate) fn recv(
        &mut self,
        fd: &D::Fd,
        buffer: &mut [u8],
        wants_arrival: bool,
    ) -> Result<(usize, Arrival), Errno> {
        if !wants_arrival {
            return Ok((self.driver.recv(fd, buffer)?, Arrival::UNKNOWN));
        }
        let Some(weight) = self.sampler.next_weight() else {
            return Ok((self.driver.recv(fd, buffer)?, Arrival::NotSampled));
        };
        let (received, at) = self.driver.recv_stamped(fd, buffer)?;
        let arrival = at.map_or(Arrival::Unknown { weight }, |at| Arrival::Stamped { at, weight });
        Ok((received, arrival))
    }

    pub(crate) fn send_message(
        &mut self,
        to: CoreId,
        mail: D::Mail,
        kind: MessagePriority,
    ) -> Result<(), MailboxFull<D::Mail>> {
        let posted = self.driver.send_message(to, mail, kind);
        self.counters.mail_dropped += u64::from(posted.is_err());
        posted
    }
}

impl<D: Driver, A: App<D>> CoreContext<D, A> {
    pub(crate) fn new(driver: D, limits: CoreLimits) -> Self {
        let now = driver.now();
        let io = CoreIo {
            driver,
            now,
            out: Vec::new(),
            effects: VecDeque::new(),
            ready: VecDeque::new(),
            backlog: InputBacklog::default(),
            budget: Budget::new(limits.turn_work_bytes_max),
            sampler: StampSampler::default(),
            arrival: Arrival::UNKNOWN,
            counters: CoreCounters::default(),
            limits,
            stopped: false,
        };
        Self { table: EntryTable(Slab::new()), timers: TimerQueue::new(Wheel::new(now)), io }
    }

    /// The time, as of the present event.
    pub fn now(&self) -> Instant {
        self.io.now
    }

    /// Which core this is.
    pub fn core(&self) -> CoreId {
        self.io.driver.core()
    }

    /// The world below.
    pub fn driver(&mut self) -> &mut D {
        &mut self.io.driver
    }

    /// What the loop counted, gauges included. The longest turn is the longest since it was asked for last.
    pub fn counters(&mut self) -> CoreCounters {
        let slots = u64::from(self.table.0.len());
        let counters = &mut self.io.counters;
        let turn_us_most = std::mem::take(&mut counters.turn_us_most);
        CoreCounters { slots, turn_us_most, ..counters.clone() }
    }

    /// Connections and users in the table.
    pub fn len(&self) -> usize {
        self.table.0.len() as usize
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.table.0.is_empty()
    }

    /// Who is in the table.
    pub fn keys(&self) -> Vec<Key> {
        self.table.0.keys().collect()
    }

    /// What the app keeps for `key`.
    pub fn state(&mut self, key: Key) -> Option<&mut A::State> {
        self.table.0.get_mut(key).map(|entry| &mut entry.state)
    }

    /// The entry that lives at a place of the table now; for apps whose users change keys with each connection.
    pub fn key_at(&self, index: u32) -> Option<Key> {
        self.table.0.key_at(index)
    }

    /// Takes an established socket into the table; [`App::opened`] follows.
    ///
    /// # Errors
    /// The socket again, and why it cannot be watched (`fs.epoll.max_user_watches`, memory).
    pub fn adopt(
        &mut self,
        fd: D::Fd,
        session: A::Session,
        state: A::State,
    ) -> Result<Key, (D::Fd, Errno)> {
        let key = self.insert(session, state);
        if let Err(errno) = self.io.driver.register(&fd, Token::connection(key), Interest::Read) {
            apply::free(self, key);
            return Err((fd, errno));
        }
        if let Some(entry) = self.table.0.get_mut(key) {
            entry.socket = SocketState::Open(fd);
        }
        self.io.effects.push_back(Effect::Opened(key));
        Ok(key)
    }

    /// Puts an entry without a socket into the table.
    pub fn insert(&mut self, session: A::Session, state: A::State) -> Key {
        self.table.0.insert(Entry {
            socket: SocketState::Detached,
            timer: Timer::default(),
            deadline: PackedDeadline::NEVER,
            timer_sequence: 0,
            has_unread: false,
            is_ready_queued: false,
            peer_finished: false,
            wants_arrival: false,
            session,
            state,
        })
    }

    /// Takes an entry without a socket out of the table; nothing is called.
    pub fn remove(&mut self, key: Key) -> Option<A::State> {
        let entry = self.table.0.get(key)?;
        debug_assert!(entry.socket.fd().is_none(), "an entry with a socket is closed, not removed");
        self.timers.cancel(&mut self.table, key);
        self.table.0.remove(key).map(|entry| entry.state)
    }

    /// Has [`App::nudged`] called for `key` once the present callback has returned.
    pub fn notify(&mut self, key: Key) {
        self.io.effects.push_back(Effect::Notified(key));
    }

    /// Closes `key` once the present callback has returned; [`App::closed`] follows.
    pub fn close(&mut self, key: Key, how: SocketClose) {
        self.io.effects.push_back(Effect::Close(key, CloseReason::Requested, how));
    }

    /// Lets `f` act on one connection from outside its own callbacks. None when it is gone, or when `f` panics, which
    /// ends the connection.
    pub fn with<R>(&mut self, key: Key, f: impl FnOnce(&mut Conn<'_, D, A>) -> R) -> Option<R> {
        let mut conn = Conn::new(self.table.0.get_mut(key)?, &mut self.io, key);
        let shielded = catch_unwind(AssertUnwindSafe(|| f(&mut conn)));
        let verdict = conn.actions;
        match &shielded {
            Ok(_) => apply::apply(self, key, verdict),
            Err(_) => apply::panicked(self, key),
        }
        shielded.ok()
    }

    /// Runs code that is not the app's own, outside the callbacks of a connection: what a state does when it is made,
    /// what a message does when it is dropped. None when it panics, which is counted and ends nothing; a
    /// panic of the app itself in one of the core's callbacks is a defect, and ends the core.
    pub fn catch_panic<R>(&mut self, run: impl FnOnce() -> R) -> Option<R> {
        let shielded = catch_unwind(AssertUnwindSafe(run));
        self.io.counters.panics += u64::from(shielded.is_err());
        shielded.ok()
    }

    /// Leaves what there is to read of `key` to the next turn.
    pub(crate) fn defer(&mut self, key: Key) {
        let Some(entry) = self.table.0.get_mut(key) else { return };
        if !std::mem::replace(&mut entry.is_ready_queued, true) {
            self.io.counters.reads_deferred += 1;
            self.io.ready.push_back(key);
        }
    }

    /// Puts `mail` into another core's mailbox.
    ///
    /// # Errors
    /// Bulk mail comes back, counted, when the mailbox is full.
    pub fn post(
        &mut self,
        to: CoreId,
        mail: D::Mail,
        kind: MessagePriority,
    ) -> Result<(), MailboxFull<D::Mail>> {
        self.io.send_message(to, mail, kind)
    }

    /// Ends the core after this turn.
    pub fn stop(&mut self) {
        self.io.stopped = true;
    }
}

/// The entries, as the wheel sees them.
pub(crate) struct EntryTable<D: Driver, A: App<D>>(
    pub(crate) Slab<Entry<D::Fd, A::Session, A::State>>,
);

impl<D: Driver, A: App<D>> Timers for EntryTable<D, A> {
    fn timer(&mut self, index: u32) -> &mut Timer {
        // An entry leaves the wheel before it leaves the table.
        &mut self.0.at(index).expect("the wheel names occupied places").timer
    }
}
