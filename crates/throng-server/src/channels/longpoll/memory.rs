//! The memory of the long-poll sessions of a core.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use super::inbox::Text;

/// The bytes that the sessions of a core keep for their next polls. A text that several sessions
/// share counts once.
#[derive(Debug)]
pub(crate) struct Memory {
    bytes_max: usize,
    used: Cell<usize>,
    /// The number of sessions that keep each shared text, by its address.
    shared: RefCell<HashMap<*const u8, u32>>,
}

impl Memory {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, used: Cell::new(0), shared: RefCell::default() }
    }

    /// Returns the number of bytes in use.
    pub(crate) const fn used(&self) -> usize {
        self.used.get()
    }

    /// Returns the bytes that one session may keep beside what it shares: half of the free bytes.
    /// So sessions that keep much always leave room for one that keeps little.
    pub(super) const fn room(&self) -> usize {
        self.bytes_max.saturating_sub(self.used.get()) / 2
    }

    /// Returns the bytes that a text would add.
    pub(super) fn cost(&self, text: &Text) -> usize {
        match text {
            Text::Own(bytes) => ENTRY_BYTES + bytes.len(),
            Text::Shared(bytes) if self.shared.borrow().contains_key(&bytes.as_ptr()) => {
                ENTRY_BYTES
            }
            Text::Shared(bytes) => ENTRY_BYTES + bytes.len(),
        }
    }

    /// Counts a text that a session begins to keep.
    pub(super) fn hold(&self, text: &Text) {
        self.add(self.cost(text));
        if let Text::Shared(bytes) = text {
            *self.shared.borrow_mut().entry(bytes.as_ptr()).or_default() += 1;
        }
    }

    /// Counts off a text that a session no longer keeps.
    pub(super) fn release(&self, text: &Text) {
        if let Text::Shared(bytes) = text {
            let mut shared = self.shared.borrow_mut();
            if let Some(count) = shared.get_mut(&bytes.as_ptr()) {
                *count -= 1;
                if *count == 0 {
                    shared.remove(&bytes.as_ptr());
                }
            }
        }
        self.subtract(self.cost(text));
    }

    pub(super) fn add(&self, bytes: usize) {
        self.used.set(self.used.get() + bytes);
    }

    pub(super) fn subtract(&self, bytes: usize) {
        self.used.set(self.used.get() - bytes);
    }
}

/// The bytes of an entry in an inbox, beside its text.
pub(super) const ENTRY_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_is_shared_counts_once_and_until_the_last_has_let_go_of_it() {
        let memory = Memory::new(10_000);
        let shared = Text::Shared(vec![b'x'; 1_000].into());
        let Text::Shared(bytes) = &shared else { unreachable!() };
        let again = Text::Shared(Arc::clone(bytes));
        let own = Text::Own(vec![b'y'; 1_000].into());
        for text in [&shared, &again, &own] {
            memory.hold(text);
        }
        assert_eq!(memory.used(), 2_000 + 3 * ENTRY_BYTES);
        memory.release(&shared);
        assert_eq!(memory.used(), 2_000 + 2 * ENTRY_BYTES);
        memory.release(&own);
        assert_eq!((memory.used(), memory.cost(&shared)), (1_000 + ENTRY_BYTES, ENTRY_BYTES));
        memory.release(&again);
        assert_eq!((memory.used(), memory.shared.borrow().len()), (0, 0));
    }
}
