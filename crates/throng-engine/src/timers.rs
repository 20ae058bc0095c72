//! Timers of entries: far deadlines wait in the wheel, and exact ones move to the heap shortly
//! before they are due.

use std::collections::VecDeque;

use throng_base::heap::Heap;
use throng_base::wheel::{TICK, Wheel};
use throng_base::{Instant, Key};
use throng_proto::Session;

use crate::deadline::PackedDeadline;
use crate::table::EntryTable;

/// Deadlines of one core's entries.
pub(crate) struct TimerQueue {
    wheel: Wheel,
    heap: Heap,
    /// Expired timers that wait for their turn; a timer with a stale sequence number is dropped.
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

    /// Sets the timer of `key` to the earlier of its app's and its session's deadline.
    pub(crate) fn set<F, S: Session, T>(
        &mut self,
        table: &mut EntryTable<F, S, T>,
        key: Key,
        now: Instant,
    ) {
        let Some(entry) = table.entries.get_mut(key) else { return };
        self.sequence = self.sequence.wrapping_add(1);
        entry.timer_sequence = self.sequence;
        let (exact, coarse) = entry.deadlines();
        // The wheel is at most one tick late, so one tick remains for the heap.
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

    /// Sets the timer of `key` anew if its session's deadline is earlier than the timer. A timer
    /// that is too early stays: a deadline that a session postpones with every message costs
    /// nothing here.
    pub(crate) fn hasten<F, S: Session, T>(
        &mut self,
        table: &mut EntryTable<F, S, T>,
        key: Key,
        now: Instant,
    ) {
        if let Some(entry) = table.entries.get_mut(key)
            && entry.session.deadline() < entry.timer.due()
            && entry.socket.is_live()
        {
            self.set(table, key, now);
        }
    }

    /// Sets the timer of `key` anew if the deadline of its transport is earlier than the timer.
    pub(crate) fn hasten_transport<F, S: Session, T>(
        &mut self,
        table: &mut EntryTable<F, S, T>,
        key: Key,
        now: Instant,
    ) {
        if let Some(entry) = table.entries.get_mut(key)
            && entry.socket.transport_deadline() < entry.timer.due()
        {
            self.set(table, key, now);
        }
    }

    /// Cancels the timer of `key`.
    pub(crate) fn cancel<F, S, T>(&mut self, table: &mut EntryTable<F, S, T>, key: Key) {
        if let Some(entry) = table.entries.get_mut(key) {
            entry.deadline = PackedDeadline::NEVER;
            // No timer has this number until the counter wraps around.
            self.sequence = self.sequence.wrapping_add(1);
            entry.timer_sequence = self.sequence;
            self.wheel.cancel(table, key.index());
        }
    }

    /// Returns when the core must be awake for a timer; [`Instant::ZERO`] while expired timers
    /// wait.
    pub(crate) fn next_due(&self) -> Instant {
        if self.due.is_empty() {
            self.wheel.next_due().min(self.heap.next_due())
        } else {
            Instant::ZERO
        }
    }

    /// Collects the timers that have expired by `now`.
    pub(crate) fn advance<F, S: Session, T>(
        &mut self,
        table: &mut EntryTable<F, S, T>,
        now: Instant,
    ) {
        self.wheel.advance(table, now, &mut self.expired);
        let mut expired = std::mem::take(&mut self.expired);
        for index in expired.drain(..) {
            let Some(entry) = table.entries.at(index) else { continue };
            let (exact, coarse) = entry.deadlines();
            if exact.min(coarse) <= now {
                self.due.push_back((index, entry.timer_sequence));
            } else if let Some(key) = table.entries.key_at(index) {
                // An exact deadline moves to the heap; a postponed one goes back to the wheel.
                self.set(table, key, now);
            }
        }
        self.expired = expired;
        while let Some(entry) = self.heap.pop_due(now) {
            self.due.push_back(entry);
        }
    }

    /// Returns the next entry whose timer has expired.
    pub(crate) fn pop<F, S, T>(&mut self, table: &mut EntryTable<F, S, T>) -> Option<Key> {
        while let Some((index, sequence)) = self.due.pop_front() {
            if table.entries.at(index).is_some_and(|entry| entry.timer_sequence == sequence) {
                return table.entries.key_at(index);
            }
        }
        None
    }
}

/// Exact deadlines nearer than this are in the heap.
const NEAR: std::time::Duration = TICK.saturating_mul(2);
