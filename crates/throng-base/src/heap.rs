//! The exact timers: few, precise, and cancelled by forgetting.
//!
//! An entry names a place in a table and a sequence number; whoever pops it compares the number with
//! the one that the place wants now and drops what is stale. Long waits belong into the
//! [`wheel`](crate::wheel) first and come here shortly before they are due, so this heap stays small.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Instant;

/// Timers by the moment at which they are due.
#[derive(Default)]
pub struct Heap {
    entries: BinaryHeap<Reverse<(Instant, u32, u32)>>,
}

impl Heap {
    /// Remembers that place `index` wants to be called at `due`, under number `sequence`.
    pub fn push(&mut self, due: Instant, index: u32, sequence: u32) {
        self.entries.push(Reverse((due, index, sequence)));
    }

    /// The next moment at which something is due, stale or not; [`Instant::FAR`] when nothing is.
    pub fn next_due(&self) -> Instant {
        self.entries.peek().map_or(Instant::FAR, |Reverse((due, ..))| *due)
    }

    /// The earliest `(index, sequence)` that is due at `now`.
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
    fn what_is_due_comes_in_order_and_nothing_before_its_time() {
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
