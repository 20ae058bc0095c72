//! The memory that all connections of a core share for what has arrived only in part.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::grow;

/// The budget of a core for what its connections hold: parts of messages, of answers and of heads,
/// and what an application keeps of them.
///
/// One holder may have at most as much as is left for all others. So connections that hold much
/// always leave room for one that holds little. Clones share the budget.
#[derive(Clone, Debug)]
pub struct HeldBudget(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    bytes_max: usize,
    used: AtomicUsize,
    /// Buffers with a part of a message.
    messages: AtomicUsize,
    refused: AtomicU64,
}

/// A holder asked for more than its share of a [`HeldBudget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connections of the core hold more than held_bytes_max")]
pub struct HeldTooMuch;

impl HeldBudget {
    /// Creates a budget of `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self(Arc::new(Counts {
            bytes_max,
            used: AtomicUsize::new(0),
            messages: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
        }))
    }

    /// Returns the bytes that are held.
    pub fn used_bytes(&self) -> usize {
        self.0.used.load(Relaxed)
    }

    /// Returns the number of connections that hold a part of a WebSocket message.
    pub fn messages(&self) -> usize {
        self.0.messages.load(Relaxed)
    }

    /// Returns how often a holder was refused more bytes.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Relaxed)
    }

    /// Counts a holder that held `before` bytes and now holds `after`, whether or not it may.
    ///
    /// # Errors
    /// If it holds more than before, and more than its share.
    pub fn recount(&self, before: usize, after: usize) -> Result<(), HeldTooMuch> {
        let granted = self.check(before, after);
        self.set(before, after);
        granted
    }

    /// Checks whether a holder of `before` bytes may hold `after`.
    fn check(&self, before: usize, after: usize) -> Result<(), HeldTooMuch> {
        let used = self.used_bytes().saturating_sub(before).saturating_add(after);
        if after <= before || after <= self.0.bytes_max.saturating_sub(used) {
            return Ok(());
        }
        self.0.refused.fetch_add(1, Relaxed);
        Err(HeldTooMuch)
    }

    fn set(&self, before: usize, after: usize) {
        // One core changes it, so nothing comes between.
        let used = self.used_bytes().saturating_sub(before).saturating_add(after);
        self.0.used.store(used, Relaxed);
    }
}

impl Default for HeldBudget {
    /// Creates a budget without a limit.
    fn default() -> Self {
        Self::new(usize::MAX)
    }
}

/// A buffer of data that arrives in pieces. Its memory counts in the budget of its core.
#[derive(Debug)]
pub(crate) struct HeldBuffer {
    bytes: Vec<u8>,
    budget: HeldBudget,
    is_message: bool,
}

impl HeldBuffer {
    /// Creates an empty buffer, which owns no memory.
    pub(crate) fn new(budget: &HeldBudget) -> Self {
        Self { bytes: Vec::new(), budget: budget.clone(), is_message: false }
    }

    /// Creates an empty buffer for a WebSocket message.
    pub(crate) fn of_message(budget: &HeldBudget) -> Self {
        let mut buffer = Self::new(budget);
        buffer.is_message = true;
        buffer
    }

    /// Appends `piece`. The whole length is expected to be `declared` bytes.
    ///
    /// # Errors
    /// If the budget has no room. The buffer is then as it was.
    pub(crate) fn append(&mut self, piece: &[u8], declared: usize) -> Result<(), HeldTooMuch> {
        let before = self.bytes.capacity();
        let after = grow::capacity(&self.bytes, piece.len(), declared);
        if after > before {
            self.budget.check(before, after)?;
            self.bytes.reserve_exact(after - self.bytes.len());
            self.count(before);
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }

    /// Replaces the contents by `bytes`, which are limited otherwise.
    pub(crate) fn replace(&mut self, bytes: Vec<u8>) {
        let before = self.bytes.capacity();
        self.bytes = bytes;
        self.count(before);
    }

    /// Shortens the contents.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    /// Returns the contents, which count no more. The buffer is empty then.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let before = self.bytes.capacity();
        let bytes = std::mem::take(&mut self.bytes);
        self.count(before);
        bytes
    }

    /// Counts the present capacity, in place of `before` bytes.
    fn count(&self, before: usize) {
        let after = self.bytes.capacity();
        self.budget.set(before, after);
        let messages = &self.budget.0.messages;
        match (before, after) {
            _ if !self.is_message => {}
            (0, 1..) => messages.store(messages.load(Relaxed) + 1, Relaxed),
            (1.., 0) => messages.store(messages.load(Relaxed) - 1, Relaxed),
            _ => {}
        }
    }
}

impl Deref for HeldBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for HeldBuffer {
    fn drop(&mut self) {
        self.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_counts_until_it_is_taken_or_dropped() {
        let budget = HeldBudget::new(1_000);
        let (mut one, mut two) = (HeldBuffer::of_message(&budget), HeldBuffer::new(&budget));
        assert_eq!((budget.used_bytes(), budget.messages()), (0, 0));
        one.append(&[1; 100], 100).unwrap();
        two.append(&[2; 10], 300).unwrap();
        assert_eq!((budget.used_bytes(), budget.messages()), (120, 1));
        two.append(&[2; 290], 300).unwrap();
        assert_eq!((budget.used_bytes(), two.len()), (400, 300));
        assert_eq!(one.take(), [1; 100]);
        assert_eq!((budget.used_bytes(), budget.messages()), (300, 0));
        drop(two);
        drop(one);
        assert_eq!((budget.used_bytes(), budget.messages(), budget.refused()), (0, 0, 0));
    }

    #[test]
    fn a_holder_has_at_most_what_is_left_for_all_others() {
        let budget = HeldBudget::new(1_000);
        let mut large: Vec<_> = (0..4).map(|_| HeldBuffer::new(&budget)).collect();
        // Each takes what it gets, 10 bytes at a time.
        for _ in 0..100 {
            large.iter_mut().for_each(|one| _ = one.append(&[0; 10], one.len() + 10));
        }
        assert!(large.iter().all(|one| one.len() == 200), "{:?}", budget);
        assert_eq!((budget.used_bytes(), budget.refused()), (800, 320));
        let mut small = HeldBuffer::new(&budget);
        assert_eq!(small.append(&[0; 100], 100), Ok(()));
        let before = budget.used_bytes();
        assert_eq!(small.append(&[0; 100], 200), Err(HeldTooMuch));
        assert_eq!((small.len(), budget.used_bytes()), (100, before), "it is as it was");
        large.pop();
        assert_eq!(small.append(&[0; 100], 200), Ok(()));
    }

    #[test]
    fn what_an_application_holds_is_counted_even_if_it_is_too_much() {
        let budget = HeldBudget::new(100);
        assert_eq!(budget.recount(0, 50), Ok(()));
        assert_eq!(budget.recount(0, 60), Err(HeldTooMuch));
        assert_eq!((budget.used_bytes(), budget.refused()), (110, 1));
        assert_eq!(budget.recount(60, 40), Ok(()), "it is less than before");
        assert_eq!(budget.recount(40, 0), Ok(()));
        assert_eq!(budget.used_bytes(), 50);
    }
}
