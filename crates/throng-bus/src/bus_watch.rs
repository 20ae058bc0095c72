//! What changes about a bus.

use crate::contract::Bus;
use crate::denial::BusDenial;

/// A watch over one bus: it tells each change once. It takes the bus for reachable at first.
#[derive(Debug)]
pub struct BusWatch {
    was_reachable: bool,
    /// Denials that were told.
    denials: usize,
}

/// A change of a bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusChange {
    /// The bus went away.
    Lost,
    /// The bus is back.
    Back,
    /// The bus does not let its user do this.
    Denied(BusDenial),
}

impl BusWatch {
    /// Creates a watch that has told nothing yet.
    pub fn new() -> Self {
        Self { was_reachable: true, denials: 0 }
    }

    /// Returns what has changed since the last call.
    pub fn changes(&mut self, bus: &dyn Bus) -> Vec<BusChange> {
        let is_reachable = bus.is_reachable();
        let has_changed = std::mem::replace(&mut self.was_reachable, is_reachable) != is_reachable;
        let change = if is_reachable { BusChange::Back } else { BusChange::Lost };
        let denials = bus.denials_after(self.denials);
        self.denials += denials.len();
        let denied = denials.into_iter().map(BusChange::Denied);
        has_changed.then_some(change).into_iter().chain(denied).collect()
    }
}

impl Default for BusWatch {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::denial::BusAction;
    use crate::memory::MemoryBus;

    #[test]
    fn each_change_is_told_once() {
        let (bus, mut watch) = (MemoryBus::new(), BusWatch::new());
        assert_eq!(watch.changes(&bus), []);
        bus.set_reachable(false);
        assert_eq!(watch.changes(&bus), [BusChange::Lost]);
        assert_eq!(watch.changes(&bus), []);
        let denial = |subject: &str| {
            let denial = BusDenial { action: BusAction::Publish, subject: subject.into() };
            bus.deny(denial.clone());
            BusChange::Denied(denial)
        };
        let (one, two) = (denial("a"), denial("b"));
        bus.set_reachable(true);
        assert_eq!(watch.changes(&bus), [BusChange::Back, one, two]);
        let three = denial("c");
        assert_eq!(watch.changes(&bus), [three]);
        assert_eq!(watch.changes(&bus), []);
    }
}
