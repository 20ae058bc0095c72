//! What a callback may do: the [`Desk`] for the whole core, [`Conn`] for one connection.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use throng_base::wheel::{Timer, Timers, Wheel};
use throng_base::{Instant, Key, Slab};
use throng_driver::{
    CloseHow, ConnectSpec, CoreId, Driver, Errno, Interest, MailFull, MailKind, Token,
};
use throng_report::CoreCounters;

use crate::connection::{Entry, Link};
use crate::core::Limits;
use crate::settle;
use crate::timers::TimerQueue;
use crate::{App, CloseReason, Deadline};

/// Everything of a core but its app.
pub struct Desk<D: Driver, A: App<D>> {
    pub(crate) table: Table<D, A>,
    pub(crate) timers: TimerQueue,
    pub(crate) shell: Shell<D>,
}

/// The part of the desk that a connection's callback may use too.
pub(crate) struct Shell<D: Driver> {
    pub(crate) driver: D,
    pub(crate) now: Instant,
    pub(crate) out: Vec<u8>,
    pub(crate) effects: VecDeque<Effect>,
    /// Entries that may have more to read.
    pub(crate) ready: VecDeque<Key>,
    pub(crate) counters: CoreCounters,
    pub(crate) limits: Limits,
    pub(crate) stopped: bool,
}

/// What is to be done once the present callback has returned.
#[derive(Debug)]
pub(crate) enum Effect {
    Opened(Key),
    Nudged(Key),
    Drained(Key),
    Close(Key, CloseReason, CloseHow),
    Closed(Key, CloseReason),
}

impl<D: Driver> Shell<D> {
    fn post(&mut self, to: CoreId, mail: D::Mail, kind: MailKind) -> Result<(), MailFull<D::Mail>> {
        let posted = self.driver.post(to, mail, kind);
        self.counters.mail_dropped += u64::from(posted.is_err());
        posted
    }
}

impl<D: Driver, A: App<D>> Desk<D, A> {
    pub(crate) fn new(driver: D, limits: Limits) -> Self {
        let now = driver.now();
        let shell = Shell {
            driver,
            now,
            out: Vec::new(),
            effects: VecDeque::new(),
            ready: VecDeque::new(),
            counters: CoreCounters::default(),
            limits,
            stopped: false,
        };
        Self { table: Table(Slab::new()), timers: TimerQueue::new(Wheel::new(now)), shell }
    }

    /// The time, as of the present event.
    pub fn now(&self) -> Instant {
        self.shell.now
    }

    /// Which core this is.
    pub fn core(&self) -> CoreId {
        self.shell.driver.core()
    }

    /// The world below.
    pub fn driver(&mut self) -> &mut D {
        &mut self.shell.driver
    }

    /// What the loop counted, gauges included. The longest turn is the longest since it was asked for last.
    pub fn counters(&mut self) -> CoreCounters {
        let slots = u64::from(self.table.0.len());
        let counters = &mut self.shell.counters;
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
        if let Err(errno) = self.shell.driver.register(&fd, Token::connection(key), Interest::Read)
        {
            settle::free(self, key);
            return Err((fd, errno));
        }
        if let Some(entry) = self.table.0.get_mut(key) {
            entry.link = Link::Open(fd);
        }
        self.shell.effects.push_back(Effect::Opened(key));
        Ok(key)
    }

    /// Puts an entry without a socket into the table.
    pub fn insert(&mut self, session: A::Session, state: A::State) -> Key {
        self.table.0.insert(Entry {
            link: Link::Detached,
            timer: Timer::default(),
            wanted: Deadline::Never,
            sequence: 0,
            unread: false,
            queued: false,
            ended: false,
            session,
            state,
        })
    }

    /// Takes an entry without a socket out of the table; nothing is called.
    pub fn remove(&mut self, key: Key) -> Option<A::State> {
        let entry = self.table.0.get(key)?;
        debug_assert!(entry.link.fd().is_none(), "an entry with a socket is closed, not removed");
        self.timers.cancel(&mut self.table, key);
        self.table.0.remove(key).map(|entry| entry.state)
    }

    /// Has [`App::nudged`] called for `key` once the present callback has returned.
    pub fn nudge(&mut self, key: Key) {
        self.shell.effects.push_back(Effect::Nudged(key));
    }

    /// Closes `key` once the present callback has returned; [`App::closed`] follows.
    pub fn close(&mut self, key: Key, how: CloseHow) {
        self.shell.effects.push_back(Effect::Close(key, CloseReason::Asked, how));
    }

    /// Lets `f` act on one connection from outside its own callbacks. None when it is gone, or when `f` panics, which
    /// ends the connection.
    pub fn with<R>(&mut self, key: Key, f: impl FnOnce(&mut Conn<'_, D, A>) -> R) -> Option<R> {
        let mut conn = Conn::new(self.table.0.get_mut(key)?, &mut self.shell, key);
        let shielded = catch_unwind(AssertUnwindSafe(|| f(&mut conn)));
        let verdict = conn.verdict;
        match &shielded {
            Ok(_) => settle::settle(self, key, verdict),
            Err(_) => settle::panicked(self, key),
        }
        shielded.ok()
    }

    /// Runs code that is not the app's own, outside the callbacks of a connection: what a state does when it is made,
    /// what a message does when it is dropped. None when it panics, which is counted and ends nothing; a
    /// panic of the app itself in one of the core's callbacks is a defect, and ends the core.
    pub fn shield<R>(&mut self, run: impl FnOnce() -> R) -> Option<R> {
        let shielded = catch_unwind(AssertUnwindSafe(run));
        self.shell.counters.panics += u64::from(shielded.is_err());
        shielded.ok()
    }

    /// Puts `mail` into another core's mailbox.
    ///
    /// # Errors
    /// Bulk mail comes back, counted, when the mailbox is full.
    pub fn post(
        &mut self,
        to: CoreId,
        mail: D::Mail,
        kind: MailKind,
    ) -> Result<(), MailFull<D::Mail>> {
        self.shell.post(to, mail, kind)
    }

    /// Ends the core after this turn.
    pub fn stop(&mut self) {
        self.shell.stopped = true;
    }
}

/// One connection or user, during one of its callbacks.
pub struct Conn<'a, D: Driver, A: App<D>> {
    pub(crate) entry: &'a mut Entry<D::Fd, A::Session, A::State>,
    pub(crate) shell: &'a mut Shell<D>,
    pub(crate) verdict: Verdict,
    key: Key,
}

/// What a callback asked for its own connection.
#[derive(Default)]
pub(crate) struct Verdict {
    pub(crate) close: Option<(CloseReason, CloseHow)>,
    pub(crate) finish: bool,
    pub(crate) connect: Option<ConnectSpec>,
    pub(crate) deadline: Option<Deadline>,
    pub(crate) leave: bool,
}

/// What became of bytes that were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Bytes that the kernel took now.
    pub taken: usize,
    /// Bytes that wait in this process for a slow peer.
    pub pending: usize,
}

impl<'a, D: Driver, A: App<D>> Conn<'a, D, A> {
    pub(crate) fn new(
        entry: &'a mut Entry<D::Fd, A::Session, A::State>,
        shell: &'a mut Shell<D>,
        key: Key,
    ) -> Self {
        Self { entry, shell, verdict: Verdict::default(), key }
    }

    /// Its key. A user's key changes with every connection.
    pub fn key(&self) -> Key {
        self.key
    }

    /// The time at which the present event was taken up.
    pub fn now(&self) -> Instant {
        self.shell.now
    }

    /// The time at this very moment.
    pub fn clock(&self) -> Instant {
        self.shell.driver.now()
    }

    /// What the app keeps for it.
    pub fn state(&mut self) -> &mut A::State {
        &mut self.entry.state
    }

    /// Its protocol, and the buffer that takes what the protocol encodes.
    pub fn session(&mut self) -> (&mut A::Session, &mut Vec<u8>) {
        (&mut self.entry.session, &mut self.shell.out)
    }

    /// Sends `bytes` once the callback has returned, all of the callback's bytes in one call.
    pub fn send(&mut self, bytes: &[u8]) {
        self.shell.out.extend_from_slice(bytes);
    }

    /// The buffer of what is sent once the callback has returned; append only.
    pub fn out(&mut self) -> &mut Vec<u8> {
        &mut self.shell.out
    }

    /// Sends `bytes`, and everything appended before, now, and says how many bytes the kernel has really taken.
    pub fn send_now(&mut self, bytes: &[u8]) -> Sent {
        self.shell.out.extend_from_slice(bytes);
        let before = self.shell.counters.bytes_sent;
        if let Err(errno) = settle::flush(self.entry, self.shell, self.key) {
            self.verdict.close.get_or_insert((CloseReason::Failed(errno), CloseHow::Finish));
        }
        Sent {
            taken: (self.shell.counters.bytes_sent - before) as usize,
            pending: self.entry.link.pending_bytes(),
        }
    }

    /// Whether bytes wait for the peer to take what was sent before.
    pub fn is_blocked(&self) -> bool {
        matches!(self.entry.link, Link::Blocked(..))
    }

    /// Whether it has an established socket.
    pub fn is_open(&self) -> bool {
        self.entry.link.is_live()
    }

    /// Whether it has no socket.
    pub fn is_detached(&self) -> bool {
        matches!(self.entry.link, Link::Detached)
    }

    /// The socket, to look at.
    pub fn fd(&self) -> Option<&D::Fd> {
        self.entry.link.fd()
    }

    /// The world below.
    pub fn driver(&mut self) -> &mut D {
        &mut self.shell.driver
    }

    /// Which core this is.
    pub fn core(&self) -> CoreId {
        self.shell.driver.core()
    }

    /// Bytes that wait for the kernel to take them.
    pub fn pending_bytes(&self) -> usize {
        self.entry.link.pending_bytes()
    }

    /// The address of the other end, while there is a socket.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.shell.driver.peer_addr(self.entry.link.fd()?)
    }

    /// The address of this end, while there is a socket.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.shell.driver.local_addr(self.entry.link.fd()?)
    }

    /// Connects once the callback has returned; [`App::opened`] or [`App::closed`] follows.
    pub fn connect(&mut self, spec: ConnectSpec) {
        debug_assert!(matches!(self.entry.link, Link::Detached), "there is a socket already");
        self.verdict.connect = Some(spec);
    }

    /// Closes in order once the callback has returned and what was sent is taken; [`App::closed`] follows.
    pub fn close(&mut self) {
        self.verdict.close = Some((CloseReason::Asked, CloseHow::Finish));
    }

    /// Closes by RST once the callback has returned.
    pub fn reset(&mut self) {
        self.verdict.close = Some((CloseReason::Asked, CloseHow::Reset));
    }

    /// Closes in order for a reason of the app's choosing.
    pub fn close_because(&mut self, reason: CloseReason) {
        self.verdict.close = Some((reason, CloseHow::Finish));
    }

    /// Tells the other end, once the callback has returned and what was sent is taken, that nothing more will be
    /// sent.
    pub fn finish(&mut self) {
        self.verdict.finish = true;
    }

    /// Takes an entry without a socket out of the table once the callback has returned; nothing more is
    /// called for it.
    pub fn leave(&mut self) {
        debug_assert!(self.is_detached(), "an entry with a socket is closed, not removed");
        self.verdict.leave = true;
    }

    /// Has [`App::deadline`] called then; replaces the deadline that was set.
    pub fn set_deadline(&mut self, deadline: Deadline) {
        self.verdict.deadline = Some(deadline);
    }

    /// Puts `mail` into another core's mailbox.
    ///
    /// # Errors
    /// Bulk mail comes back, counted, when the mailbox is full.
    pub fn post(
        &mut self,
        to: CoreId,
        mail: D::Mail,
        kind: MailKind,
    ) -> Result<(), MailFull<D::Mail>> {
        self.shell.post(to, mail, kind)
    }
}

/// The entries, as the wheel sees them.
pub(crate) struct Table<D: Driver, A: App<D>>(pub(crate) Slab<Entry<D::Fd, A::Session, A::State>>);

impl<D: Driver, A: App<D>> Timers for Table<D, A> {
    fn timer(&mut self, index: u32) -> &mut Timer {
        // An entry leaves the wheel before it leaves the table.
        &mut self.0.at(index).expect("the wheel names occupied places").timer
    }
}
