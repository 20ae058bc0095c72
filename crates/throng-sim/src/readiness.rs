//! Readiness, as epoll reports it: a wake-up puts a socket into the ready list. The wait checks the
//! socket's readiness then, and reports no event if it is not ready.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use throng_base::Key;
use throng_driver::{Interest, IoEvent, Ready, Token};

use crate::trace::Note;
use crate::world::State;

/// State of one driver in the world.
#[derive(Debug, Default)]
pub(crate) struct DriverSlot {
    /// Fd table of the driver.
    pub(crate) table: usize,
    watches: BTreeMap<Key, Watch>,
    ready: Vec<Key>,
    /// Another core has woken this one.
    pub(crate) woken: bool,
    /// Sockets that other cores have passed here.
    pub(crate) passed: VecDeque<Key>,
    /// Listeners that other cores share with this one.
    pub(crate) shared: VecDeque<Key>,
    /// Sockets that the next wait passes to the drivers of other slots.
    pub(crate) handoffs: Vec<(Key, usize)>,
    pub(crate) pass_failures: u64,
    /// Longest turn of this core.
    pub(crate) turn_max: Duration,
}

/// Watch of one socket.
#[derive(Clone, Copy, Debug)]
struct Watch {
    token: Token,
    interest: Interest,
    /// The readiness is reported in each wait while it lasts.
    is_level_triggered: bool,
    /// The socket is in the ready list.
    is_queued: bool,
}

impl DriverSlot {
    pub(crate) fn new(table: usize, turn_max: Duration) -> Self {
        Self { table, turn_max, ..Self::default() }
    }

    /// Reports whether a wait would return at once.
    pub(crate) fn has_events(&self) -> bool {
        self.woken || self.has_passed() || !self.ready.is_empty()
    }

    fn has_passed(&self) -> bool {
        !self.passed.is_empty() || !self.shared.is_empty()
    }

    pub(crate) fn is_watching(&self, socket: Key) -> bool {
        self.watches.contains_key(&socket)
    }

    pub(crate) fn unwatch(&mut self, socket: Key) -> bool {
        self.ready.retain(|ready| *ready != socket);
        self.watches.remove(&socket).is_some()
    }

    fn make_ready(&mut self, socket: Key) {
        if let Some(watch) = self.watches.get_mut(&socket)
            && !std::mem::replace(&mut watch.is_queued, true)
        {
            self.ready.push(socket);
        }
    }
}

impl State {
    /// Starts or changes a watch. Reports what is already ready.
    pub(crate) fn watch(
        &mut self,
        slot: usize,
        socket: Key,
        token: Token,
        interest: Interest,
        level: bool,
    ) {
        let driver = &mut self.slots[slot];
        let queued = driver.watches.get(&socket).is_some_and(|watch| watch.is_queued);
        driver.watches.insert(
            socket,
            Watch { token, interest, is_level_triggered: level, is_queued: queued },
        );
        if self.poll(socket, interest) != Ready::default() {
            self.slots[slot].make_ready(socket);
        }
    }

    /// Puts a connection into the ready list of the driver that watches it.
    pub(crate) fn notify(&mut self, socket: Key) {
        if let Some(slot) = self.stream(socket).and_then(|stream| stream.slot) {
            self.slots[slot].make_ready(socket);
        }
    }

    /// Puts a listener into the ready list of one of the drivers that watch it.
    pub(crate) fn notify_one(&mut self, listener: Key) {
        let watching: Vec<usize> =
            (0..self.slots.len()).filter(|slot| self.slots[*slot].is_watching(listener)).collect();
        if !watching.is_empty() {
            let slot = watching[self.prng.below(watching.len() as u64) as usize];
            self.slots[slot].make_ready(listener);
        }
    }

    /// Collects the events of a driver's wait: a bounded batch, in an order that the seed decides.
    pub(crate) fn wait(&mut self, slot: usize, events: &mut Vec<IoEvent>) {
        self.note(Note::Turn { slot });
        self.send_passed(slot);
        if self.happens(self.faults.spurious) {
            let watches = &self.slots[slot].watches;
            let nth = self.prng.below(watches.len() as u64) as usize;
            if let Some(&socket) = watches.keys().nth(nth) {
                self.slots[slot].make_ready(socket);
            }
        }
        let events_before = events.len();
        let driver = &mut self.slots[slot];
        let special = Ready { readable: true, ..Ready::default() };
        if std::mem::take(&mut driver.woken) {
            events.push(IoEvent { token: Token::WAKE, ready: special });
        }
        if driver.has_passed() {
            events.push(IoEvent { token: Token::PASSED, ready: special });
        }
        let mut ready = std::mem::take(&mut driver.ready);
        for last in (1..ready.len()).rev() {
            ready.swap(last, self.prng.below(last as u64 + 1) as usize);
        }
        let batch = self.prng.between(1, self.faults.batch_max as u64) as usize;
        let rest = ready.split_off(batch.min(ready.len()));
        self.slots[slot].ready = rest;
        for socket in ready {
            self.report(slot, socket, events);
        }
        for event in events[events_before..].iter().copied() {
            self.trace.add(self.now, Note::Event { slot, event });
        }
    }

    fn report(&mut self, slot: usize, socket: Key, events: &mut Vec<IoEvent>) {
        let Some(&Watch { token, interest, is_level_triggered: level, .. }) =
            self.slots[slot].watches.get(&socket)
        else {
            return;
        };
        let ready = self.poll(socket, interest);
        let is_ready = ready != Ready::default();
        if is_ready {
            events.push(IoEvent { token, ready });
        }
        if is_ready && level {
            self.slots[slot].ready.push(socket);
        } else if let Some(watch) = self.slots[slot].watches.get_mut(&socket) {
            watch.is_queued = false;
        }
    }
}
