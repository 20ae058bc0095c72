//! What few connections have, and only for a while: a part of a record, a part of a message, the
//! wait for tickets.

use throng_base::Instant;

use crate::handshake::TicketReader;

/// Entry of the side table. It is removed when it is empty.
#[derive(Default)]
pub(crate) struct Side {
    /// A record that did not arrive whole.
    pub part: Vec<u8>,
    /// When the first byte of it arrived.
    pub part_since: Instant,
    /// A message after the handshake that did not arrive whole.
    pub message: Vec<u8>,
    /// What reads tickets, and when it is dropped.
    pub tickets: Option<(Box<TicketReader>, Instant)>,
}

impl Side {
    pub(crate) fn is_empty(&self) -> bool {
        self.part.is_empty() && self.message.is_empty() && self.tickets.is_none()
    }

    /// Returns the bytes on the heap that a peer can make grow.
    pub(crate) fn parts_bytes(&self) -> usize {
        self.part.capacity() + self.message.capacity()
    }
}
