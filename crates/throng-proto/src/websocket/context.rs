//! The contexts of compressed messages (RFC 7692 section 7.1.1): what the next one may refer to.
//!
//! A context is the last bytes of the messages, not the state of a compressor. The one compressor
//! and the one inflater of a core read it before each message. So a context costs what was sent, at
//! most its window, and an idle connection none; a compressor of its own costs 300 KB.

use crate::held::{HeldBudget, HeldTooMuch};

/// The contexts of one connection. From the first message that the peer sends in its context on,
/// they count in the budget of the core.
#[derive(Debug, Default)]
pub(super) struct DeflateContexts {
    pub(super) sent: DeflateContext,
    pub(super) received: DeflateContext,
    budget: Option<HeldBudget>,
    counted: usize,
}

impl DeflateContexts {
    /// Counts what the contexts take, in `budget`.
    ///
    /// # Errors
    /// If the budget has no room for what they take now.
    pub(super) fn count(&mut self, budget: &HeldBudget) -> Result<(), HeldTooMuch> {
        let budget = self.budget.get_or_insert_with(|| budget.clone());
        let before = self.counted;
        self.counted = self.sent.bytes.capacity() + self.received.bytes.capacity();
        if self.counted == before {
            return Ok(());
        }
        budget.recount(before, self.counted)
    }
}

impl Drop for DeflateContexts {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            // Less than before is always granted.
            let _ = budget.recount(self.counted, 0);
        }
    }
}

/// The last bytes of the compressed messages of one direction.
#[derive(Debug, Default)]
pub(super) struct DeflateContext {
    bytes: Vec<u8>,
}

/// How one direction of a connection is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeflateWindow {
    /// The bits of the window; 0 without compression.
    pub(super) bits: u8,
    /// A message may refer to earlier ones.
    pub(super) takes_over: bool,
}

impl DeflateContext {
    /// The bits of the largest context of what this end sends. A sender may refer to less than was
    /// agreed. The compressor reads the whole context before each message, 5 us for a KiB, so 8 KiB
    /// cost 40 us; more makes a message shorter by a few bytes.
    pub(super) const SENT_BITS_MAX: u8 = 13;

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends a message, and forgets what is further back than a window of `bits`.
    pub(super) fn append(&mut self, message: &[u8], bits: u8) {
        let most = 1 << bits;
        let message = &message[message.len().saturating_sub(most)..];
        let needed = self.bytes.len() + message.len();
        self.bytes.drain(..needed.saturating_sub(most));
        if needed > self.bytes.capacity() {
            let room = needed.max(2 * self.bytes.capacity()).min(most);
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        self.bytes.extend_from_slice(message);
    }
}

impl DeflateWindow {
    /// No compression.
    pub(super) const NONE: Self = Self { bits: 0, takes_over: false };

    /// A window for messages that do not refer to each other.
    pub(super) const fn of_each_message(bits: u8) -> Self {
        Self { bits, takes_over: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_holds_the_last_bytes_and_never_more_than_its_window() {
        let mut context = DeflateContext::default();
        let mut all = Vec::new();
        for length in [0, 1, 100, 300, 511, 512, 513, 2_000, 3, 509, 1] {
            let message: Vec<u8> = (0..length).map(|at| (at + length) as u8).collect();
            context.append(&message, 9);
            all.extend(message);
            assert_eq!(context.bytes(), &all[all.len().saturating_sub(512)..]);
            assert!(context.bytes.capacity() <= 512, "{}", context.bytes.capacity());
        }
    }
}
