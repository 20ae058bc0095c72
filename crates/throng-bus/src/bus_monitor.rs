//! What changes about a bus.

use crate::contract::Bus;
use crate::denial::BusDenial;

/// Tells each change of one bus once. It takes the bus for reachable at first.
#[derive(Debug)]
pub struct BusMonitor {
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

impl BusMonitor {
    /// Creates a monitor that has told nothing yet.
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

impl Default for BusMonitor {
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
        let (bus, mut monitor) = (MemoryBus::new(), BusMonitor::new());
        assert_eq!(monitor.changes(&bus), []);
        bus.set_reachable(false);
        assert_eq!(monitor.changes(&bus), [BusChange::Lost]);
        assert_eq!(monitor.changes(&bus), []);
        let denial = |subject: &str| {
            let denial = BusDenial { action: BusAction::Publish, subject: subject.into() };
            bus.deny(denial.clone());
            BusChange::Denied(denial)
        };
        let (one, two) = (denial("a"), denial("b"));
        bus.set_reachable(true);
        assert_eq!(monitor.changes(&bus), [BusChange::Back, one, two]);
        let three = denial("c");
        assert_eq!(monitor.changes(&bus), [three]);
        assert_eq!(monitor.changes(&bus), []);
    }
}
