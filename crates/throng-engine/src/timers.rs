//! When entries are called: far deadlines wait in the wheel, exact ones move to the heap just before.

use std::collections::VecDeque;

use throng_base::heap::Heap;
use throng_base::wheel::{TICK, Wheel};
use throng_base::{Instant, Key};
use throng_driver::Driver;
use throng_proto::Session;

use crate::App;
use crate::context::EntryTable;
use crate::entry::PackedDeadline;

/// The deadlines of one core's entries.
pub(crate) struct TimerQueue {
    wheel: Wheel,
    heap: Heap,
    /// Expired, waiting for their turn; entries with a stale number are dropped.
    due: VecDeque<(u32, u32)>,
    expired: Vec<u32>,
    sequence: u32,
}

impl TimerQueue {
    pub(crate) fn new(wheel: Wheel) -> Self {
        Self {
            wheel,
            heap: Heap::default(),
            due: VecDeque::new(),
            expired: Vec::new(),
            sequence: 0,
        }
    }

    /// Sets the deadline of `key` from what its app wants and what its session needs.
    pub(crate) fn set<D: Driver, A: App<D>>(
        &mut self,
        table: &mut EntryTable<D, A>,
        key: Key,
        now: Instant,
    ) {
        let Some(entry) = table.0.get_mut(key) else { return };
        self.sequence = self.sequence.wrapping_add(1);
        entry.timer_sequence = self.sequence;
        let (exact, coarse) = entry.deadlines();
        // The wheel is at most one tick late, so one tick is left for the heap.
        let wake = if exact <= now + NEAR {
            self.heap.push(exact, key.index(), self.sequence);
            coarse
        } else if exact == Instant::FAR {
            coarse
        } else {
            coarse.min(exact.saturating_sub(NEAR))
        };
        self.wheel.set(table, key.index(), wake);
    }

    /// Sets the deadline of `key` if its session needs a timer earlier than the one that is set. One that is
    /// set too early is left: what a session puts off with every message costs nothing here.
    pub(crate) fn hasten<D: Driver, A: App<D>>(
        &mut self,
        table: &mut EntryTable<D, A>,
        key: Key,
        now: Instant,
    ) {
        if let Some(entry) = table.0.get_mut(key)
            && entry.session.deadline() < entry.timer.due()
            && entry.socket.is_live()
        {
            self.set(table, key, now);
        }
    }

    /// Forgets the deadline of `key`.
    pub(crate) fn cancel<D: Driver, A: App<D>>(&mut self, table: &mut EntryTable<D, A>, key: Key) {
        if let Some(entry) = table.0.get_mut(key) {
            entry.deadline = PackedDeadline::NEVER;
            // No timer has this number until the counter has gone round.
            self.sequence = self.sequence.wrapping_add(1);
            entry.timer_sequence = self.sequence;
            self.wheel.cancel(table, key.index());
        }
    }

    /// When the core must be awake for a timer; [`Instant::ZERO`] while expired ones wait.
    pub(crate) fn next_due(&self) -> Instant {
        if self.due.is_empty() {
            self.wheel.next_due().min(self.heap.next_due())
        } else {
            Instant::ZERO
        }
    }

    /// Collects what has expired by `now`.
    pub(crate) fn advance<D: Driver, A: App<D>>(
        &mut self,
        table: &mut EntryTable<D, A>,
        now: Instant,
    ) {
        self.wheel.advance(table, now, &mut self.expired);
        let mut expired = std::mem::take(&mut self.expired);
        for index in expired.drain(..) {
            let Some(entry) = table.0.at(index) else { continue };
            let (exact, coarse) = entry.deadlines();
            if exact.min(coarse) <= now {
                self.due.push_back((index, entry.timer_sequence));
            } else if let Some(key) = table.0.key_at(index) {
                // An exact one moves to the heap; what a session has put off is set anew.
                self.set(table, key, now);
            }
        }
        self.expired = expired;
        while let Some(entry) = self.heap.pop_due(now) {
            self.due.push_back(entry);
        }
    }

    /// The next entry that is to be called.
    pub(crate) fn pop<D: Driver, A: App<D>>(
        &mut self,
        table: &mut EntryTable<D, A>,
    ) -> Option<Key> {
        while let Some((index, sequence)) = self.due.pop_front() {
            if table.0.at(index).is_some_and(|entry| entry.timer_sequence == sequence) {
                return table.0.key_at(index);
            }
        }
        None
    }
}

/// Exact deadlines nearer than this are kept in the heap.
const NEAR: std::time::Duration = TICK.saturating_mul(2);
