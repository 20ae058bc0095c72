//! Fairness: limits for the work of one connection in a turn, and a backlog for its further input.
//!
//! Bytes alone do not measure work. A kilobyte can inflate to a megabyte, and a kilobyte of
//! one-byte frames is a hundred messages. So the unit of work is a byte of input, and other work is
//! converted:
//!
//! work = consumed bytes + charged work ([`Input::charge`]) + events x [`EVENT_WORK_BYTES`]
//!
//! [`Input::charge`]: throng_proto::Input::charge

use std::collections::HashMap;

use throng_base::Key;

use crate::Arrival;

/// Work that remains for a turn, or for a connection in a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    remaining_bytes: usize,
}

impl Budget {
    pub(crate) const fn new(bytes: usize) -> Self {
        Self { remaining_bytes: bytes }
    }

    /// Subtracts work of `bytes`.
    pub(crate) const fn spend(&mut self, bytes: usize) {
        self.remaining_bytes = self.remaining_bytes.saturating_sub(bytes);
    }

    /// Reports whether no work remains.
    pub(crate) const fn is_spent(&self) -> bool {
        self.remaining_bytes == 0
    }
}

/// Input that was received and not processed, because its connection had used its share of the
/// turn. Only connections that send more than their share have any, each at most one receive
/// buffer.
#[derive(Debug, Default)]
pub(crate) struct InputBacklog {
    inputs: HashMap<Key, (Box<[u8]>, Arrival)>,
}

impl InputBacklog {
    /// Keeps input until the connection's next turn. Empty input means that the session has more
    /// events.
    pub(crate) fn keep(&mut self, key: Key, input: &[u8], arrival: Arrival) {
        self.inputs.insert(key, (input.into(), arrival));
    }

    /// Moves the input of `key` to the front of `buffer`. Returns its length and its arrival.
    pub(crate) fn take(&mut self, key: Key, buffer: &mut [u8]) -> Option<(usize, Arrival)> {
        if self.inputs.is_empty() {
            return None;
        }
        let (input, arrival) = self.inputs.remove(&key)?;
        buffer[..input.len()].copy_from_slice(&input);
        Some((input.len(), arrival))
    }

    /// Reports whether input of `key` waits.
    pub(crate) fn holds(&self, key: Key) -> bool {
        !self.inputs.is_empty() && self.inputs.contains_key(&key)
    }

    /// Drops the input of a closed connection.
    pub(crate) fn forget(&mut self, key: Key) {
        if !self.inputs.is_empty() {
            self.inputs.remove(&key);
        }
    }
}

/// Work of an event beside its bytes: about a microsecond, the time to inflate a kilobyte.
pub(crate) const EVENT_WORK_BYTES: usize = 1 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_spent_when_nothing_is_left() {
        let mut budget = Budget::new(10);
        budget.spend(9);
        assert!(!budget.is_spent());
        budget.spend(5);
        assert!(budget.is_spent());
    }

    #[test]
    fn a_backlog_belongs_to_its_connection_and_goes_with_it() {
        let mut backlog = InputBacklog::default();
        let (one, other) = (Key::new(1, 1), Key::new(1, 2));
        let arrival = Arrival::At(throng_base::Instant::ZERO);
        backlog.keep(one, b"rest", arrival);
        let mut buffer = [0; 8];
        assert_eq!(backlog.take(other, &mut buffer), None);
        assert!(backlog.holds(one));
        assert_eq!(backlog.take(one, &mut buffer), Some((4, arrival)));
        assert_eq!(&buffer[..4], b"rest");
        backlog.keep(one, b"", arrival);
        assert!(backlog.holds(one), "empty input is input too");
        backlog.forget(one);
        assert!(!backlog.holds(one));
    }
}
