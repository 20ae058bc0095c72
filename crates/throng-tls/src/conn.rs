//! What the entry of a connection keeps of TLS: where the table has the rest.

use std::num::NonZeroU32;

/// Connection of a [`crate::TlsTable`]: four bytes, and none more for an [`Option`] of it.
///
/// It is no `Copy`: one entry owns it, and gives it back with [`crate::TlsTable::remove`].
#[derive(Debug, PartialEq, Eq)]
pub struct TlsConn(NonZeroU32);

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsPhase {
    /// The handshake is running.
    Handshake,
    /// Data can be sent and received.
    Open,
    /// The handshake failed: nothing is left of the connection.
    Gone,
}

/// Where the state of a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Gone,
    Handshake(u32),
    Small(u32),
    Large(u32),
}

impl TlsConn {
    pub(crate) fn new(slot: Slot) -> Self {
        let (tag, index) = match slot {
            Slot::Gone => (0, 1),
            Slot::Handshake(index) => (1, index),
            Slot::Small(index) => (2, index),
            Slot::Large(index) => (3, index),
        };
        assert!(index < 1 << INDEX_BITS, "a core has fewer connections");
        Self(NonZeroU32::new(tag << INDEX_BITS | index).expect("a tag or an index is not 0"))
    }

    pub(crate) fn slot(&self) -> Slot {
        let index = self.0.get() & ((1 << INDEX_BITS) - 1);
        match self.0.get() >> INDEX_BITS {
            0 => Slot::Gone,
            1 => Slot::Handshake(index),
            2 => Slot::Small(index),
            _ => Slot::Large(index),
        }
    }

    /// Returns how far the connection is.
    pub fn phase(&self) -> TlsPhase {
        match self.slot() {
            Slot::Gone => TlsPhase::Gone,
            Slot::Handshake(_) => TlsPhase::Handshake,
            Slot::Small(_) | Slot::Large(_) => TlsPhase::Open,
        }
    }
}

const INDEX_BITS: u32 = 30;

const _: () = assert!(size_of::<Option<TlsConn>>() == 4, "an entry is small");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_is_found_again() {
        for index in [0, 1, 77, (1 << INDEX_BITS) - 1] {
            for slot in [Slot::Handshake(index), Slot::Small(index), Slot::Large(index)] {
                assert_eq!(TlsConn::new(slot).slot(), slot);
            }
        }
        assert_eq!(TlsConn::new(Slot::Gone).slot(), Slot::Gone);
    }
}
