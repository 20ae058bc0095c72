//! Where the state of a connection is, in four bytes.

use std::num::NonZeroU32;

/// Packed [`Slot`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedSlot(NonZeroU32);

/// Table and place of a connection's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// The handshake failed: the reason is among the failures.
    Failed,
    Handshake(u32),
    Small(u32),
    Large(u32),
}

impl PackedSlot {
    pub(crate) fn new(slot: Slot) -> Self {
        let (tag, index) = match slot {
            Slot::Failed => (0, 1),
            Slot::Handshake(index) => (1, index),
            Slot::Small(index) => (2, index),
            Slot::Large(index) => (3, index),
        };
        assert!(index < 1 << INDEX_BITS, "a core has fewer connections");
        Self(NonZeroU32::new(tag << INDEX_BITS | index).expect("a tag or an index is not 0"))
    }

    pub(crate) const fn get(self) -> Slot {
        let index = self.0.get() & ((1 << INDEX_BITS) - 1);
        match self.0.get() >> INDEX_BITS {
            0 => Slot::Failed,
            1 => Slot::Handshake(index),
            2 => Slot::Small(index),
            _ => Slot::Large(index),
        }
    }
}

const INDEX_BITS: u32 = 30;

const _: () = assert!(size_of::<Option<PackedSlot>>() == 4, "there are millions");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_is_found_again() {
        for index in [0, 1, 77, (1 << INDEX_BITS) - 1] {
            for slot in [Slot::Handshake(index), Slot::Small(index), Slot::Large(index)] {
                assert_eq!(PackedSlot::new(slot).get(), slot);
            }
        }
        assert_eq!(PackedSlot::new(Slot::Failed).get(), Slot::Failed);
    }
}
