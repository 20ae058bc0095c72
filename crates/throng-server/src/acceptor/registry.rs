//! The one registry of `dispatch`: every accept waits for it, and it assigns cores in turn.

use std::collections::VecDeque;

use throng_driver::CoreId;

use crate::core_message::RegistryMessage;

/// The registry, on core 0. It receives every accept and every close through that core's mailbox.
pub(crate) struct Registry {
    /// Connections of each core, including those in flight to it.
    connections: Vec<usize>,
    /// Connections that a core's fd table holds.
    room_max: usize,
    /// The core that the next connection goes to, if it has room.
    next: CoreId,
    /// Acceptors whose connections wait because no core has room.
    waiting: VecDeque<CoreId>,
    /// Messages read in this turn, plus those left in the mailbox when the turn began.
    handled: usize,
    mailbox_most: u64,
}

/// The answer to an acceptor: its connection goes to the core `to`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub(crate) acceptor: CoreId,
    pub(crate) to: CoreId,
}

impl Registry {
    pub(crate) fn new(cores: usize, room_max: usize) -> Self {
        Self {
            connections: vec![0; cores],
            room_max,
            next: 0,
            waiting: VecDeque::new(),
            handled: 0,
            mailbox_most: 0,
        }
    }

    /// Queues the request of an acceptor, or counts a closed connection. Returns the answer to the
    /// first request in the queue, if a core has room for it.
    pub(crate) fn handle(&mut self, message: RegistryMessage) -> Option<Assignment> {
        match message {
            RegistryMessage::PlacementRequest(acceptor) => self.waiting.push_back(acceptor),
            RegistryMessage::ConnectionEnded(core) => {
                self.connections[core] = self.connections[core].saturating_sub(1);
            }
        }
        self.assign_next()
    }

    /// Counts a message that was read while `waiting` more were in the mailbox.
    pub(crate) fn count_message(&mut self, waiting: impl FnOnce() -> usize) {
        // Messages collected together were in the mailbox together. The rest is counted once.
        if self.handled == 0 {
            self.handled = waiting();
        }
        self.handled += 1;
        self.mailbox_most = self.mailbox_most.max(self.handled as u64);
    }

    /// Ends the batch of this turn.
    pub(crate) fn turn_ended(&mut self) {
        self.handled = 0;
    }

    /// Returns the greatest length of the mailbox since the last call.
    pub(crate) fn take_mailbox_most(&mut self) -> u64 {
        std::mem::take(&mut self.mailbox_most)
    }

    /// Returns the next core with room for the first acceptor in the queue.
    fn assign_next(&mut self) -> Option<Assignment> {
        let acceptor = *self.waiting.front()?;
        let cores = self.connections.len();
        let to = (0..cores)
            .map(|step| (self.next + step) % cores)
            .find(|&core| self.connections[core] < self.room_max)?;
        self.waiting.pop_front();
        self.connections[to] += 1;
        self.next = (to + 1) % cores;
        Some(Assignment { acceptor, to })
    }
}

#[cfg(test)]
mod tests {
    use super::RegistryMessage::{ConnectionEnded, PlacementRequest};
    use super::*;

    #[test]
    fn connections_are_handed_out_in_turn() {
        let mut registry = Registry::new(3, 10);
        let to: Vec<_> = (0..5).map(|_| registry.handle(PlacementRequest(1)).unwrap().to).collect();
        assert_eq!(to, [0, 1, 2, 0, 1]);
    }

    #[test]
    fn a_full_core_is_left_out_and_an_accept_waits_for_an_end() {
        let mut registry = Registry::new(2, 1);
        assert_eq!(registry.handle(PlacementRequest(0)), Some(Assignment { acceptor: 0, to: 0 }));
        assert_eq!(registry.handle(PlacementRequest(0)), Some(Assignment { acceptor: 0, to: 1 }));
        assert_eq!(registry.handle(PlacementRequest(1)), None);
        assert_eq!(registry.handle(ConnectionEnded(0)), Some(Assignment { acceptor: 1, to: 0 }));
    }

    #[test]
    fn the_mailbox_is_measured_as_it_was_found() {
        let mut registry = Registry::new(1, 100);
        for _ in 0..3 {
            registry.count_message(|| 4);
        }
        registry.turn_ended();
        registry.count_message(|| 0);
        assert_eq!(registry.take_mailbox_most(), 7);
        assert_eq!(registry.take_mailbox_most(), 0);
    }
}
