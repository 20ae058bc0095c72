//! The table of a core's entries.

use throng_base::Slab;
use throng_base::wheel::{Timer, Timers};

use crate::entry::Entry;

/// Entries of a core. The timer wheel reaches their timers through it.
pub(crate) struct EntryTable<F, S, T> {
    pub(crate) entries: Slab<Entry<F, S, T>>,
}

impl<F, S, T> EntryTable<F, S, T> {
    pub(crate) fn new() -> Self {
        Self { entries: Slab::new() }
    }
}

impl<F, S, T> Timers for EntryTable<F, S, T> {
    fn timer(&mut self, index: u32) -> &mut Timer {
        // An entry leaves the wheel before it leaves the table.
        &mut self.entries.at(index).expect("the wheel names occupied places").timer
    }
}
