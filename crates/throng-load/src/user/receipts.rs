//! Record of the probes that a user has received, while it subscribes to them.

/// Numbers of the probes that a user has received: the latest one, and which of the [`Self::REACH`]
/// up to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Receipts {
    /// Latest probe before the user subscribed; deliveries of later ones are expected.
    /// [`UNSUBSCRIBED`] if the user does not subscribe.
    from: u32,
    last: u32,
    /// Bit i is set if probe `last - i` has arrived.
    window: u32,
}

/// Classification of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receipt {
    /// The first delivery of its probe.
    First {
        /// True if it was expected.
        expected: bool,
        /// True if a later probe arrived before it.
        out_of_order: bool,
    },
    /// The probe had arrived before.
    Duplicate,
}

impl Receipts {
    /// Probes that are told apart, including the latest.
    pub(crate) const REACH: u32 = u32::BITS;

    /// Creates the record of a user that subscribes when `opened` is the latest probe: nothing up
    /// to it is expected.
    pub(crate) fn after(opened: u32) -> Self {
        Self { from: opened, last: opened, window: 0 }
    }

    /// Reports whether the user subscribes to probes.
    pub(crate) fn are_expected(&self) -> bool {
        self.from != UNSUBSCRIBED
    }

    /// Reports whether the delivery of probe `number` is expected and has not arrived.
    pub(crate) fn lacks(&self, number: u32) -> bool {
        number > self.from && !self.has(number)
    }

    /// Records a delivery of probe `number`.
    pub(crate) fn take(&mut self, number: u32) -> Receipt {
        let expected = number > self.from;
        if number > self.last {
            let ahead = number - self.last;
            self.window = self.window.checked_shl(ahead).unwrap_or(0) | 1;
            self.last = number;
            return Receipt::First { expected, out_of_order: false };
        }
        if self.has(number) {
            return Receipt::Duplicate;
        }
        // Probes before the window are not recorded any more: this counts as their first delivery,
        // and late.
        self.window |= 1u32.checked_shl(self.last - number).unwrap_or(0);
        // Before the user subscribed there was no order.
        Receipt::First { expected, out_of_order: expected }
    }

    fn has(&self, number: u32) -> bool {
        let behind = self.last.wrapping_sub(number);
        number <= self.last && behind < Self::REACH && self.window >> behind & 1 == 1
    }
}

impl Default for Receipts {
    /// Creates the record of a user that does not subscribe.
    fn default() -> Self {
        Self { from: UNSUBSCRIBED, last: 0, window: 0 }
    }
}

/// No probe has this number.
const UNSUBSCRIBED: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    const IN_ORDER: Receipt = Receipt::First { expected: true, out_of_order: false };
    const LATE: Receipt = Receipt::First { expected: true, out_of_order: true };
    const EARLY: Receipt = Receipt::First { expected: false, out_of_order: false };

    #[test]
    fn each_delivery_is_what_it_is() {
        let mut receipts = Receipts::after(4);
        for (number, receipt) in [
            (5, IN_ORDER),
            (5, Receipt::Duplicate),
            (7, IN_ORDER),
            (6, LATE),
            (6, Receipt::Duplicate),
            (5, Receipt::Duplicate),
            (4, EARLY),
            (4, Receipt::Duplicate),
            (38, IN_ORDER),
            (7, Receipt::Duplicate),
            (8, LATE),
            (100, IN_ORDER),
        ] {
            assert_eq!(receipts.take(number), receipt, "probe {number}");
        }
        assert!(receipts.lacks(101) && receipts.lacks(99) && !receipts.lacks(100));
        assert!(!receipts.lacks(4), "it was not counted on");
    }

    #[test]
    fn a_newcomer_lacks_nothing_of_the_past() {
        let mut receipts = Receipts::after(0);
        assert!(receipts.lacks(1));
        assert_eq!(receipts.take(1), IN_ORDER);
        assert!(!receipts.lacks(1));
        let receipts = Receipts::after(9);
        assert!((1..=9).all(|number| !receipts.lacks(number)));
    }
}
