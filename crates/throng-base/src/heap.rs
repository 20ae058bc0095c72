//! Exact timers: few, precise, and cancelled lazily.
//!
//! A timer names a place in a table and a sequence number. The caller of [`Heap::pop_due`] compares
//! the number with the place's present number, and drops a stale timer. Long waits start in the
//! [`wheel`](crate::wheel) and move here shortly before they are due, so this heap stays small.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Instant;

/// Timers, ordered by the time at which they are due.
#[derive(Default)]
pub struct Heap {
    entries: BinaryHeap<Reverse<(Instant, u32, u32)>>,
}

impl Heap {
    /// Adds a timer for the place `index` at `due`, with the number `sequence`.
    pub fn push(&mut self, due: Instant, index: u32, sequence: u32) {
        self.entries.push(Reverse((due, index, sequence)));
    }

    /// Returns when the next timer is due, stale or not; [`Instant::FAR`] if there is none.
    pub fn next_due(&self) -> Instant {
        self.entries.peek().map_or(Instant::FAR, |Reverse((due, ..))| *due)
    }

    /// Removes the earliest timer that is due at `now`, and returns its index and sequence.
    pub fn pop_due(&mut self, now: Instant) -> Option<(u32, u32)> {
        if self.next_due() > now {
            return None;
        }
        self.entries.pop().map(|Reverse((_, index, sequence))| (index, sequence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_timers_come_in_order_and_none_before_its_time() {
        let mut heap = Heap::default();
        for nanos in [30, 10, 20] {
            heap.push(Instant::from_nanos(nanos), nanos as u32, 0);
        }
        assert_eq!(heap.next_due(), Instant::from_nanos(10));
        assert_eq!(heap.pop_due(Instant::from_nanos(9)), None);
        assert_eq!(heap.pop_due(Instant::from_nanos(25)), Some((10, 0)));
        assert_eq!(heap.pop_due(Instant::from_nanos(25)), Some((20, 0)));
        assert_eq!(heap.pop_due(Instant::from_nanos(25)), None);
    }
}
