//! Where sockets wait for a core that shares its fd table with the one that leaves them.

use std::collections::VecDeque;
use std::sync::PoisonError;

use crate::sync::{Mutex, MutexGuard};

/// Sockets for one core, handed over by their numbers.
///
/// What tells the core is a message of its own, which may be read before or after the sockets are
/// there. So who leaves sockets puts them down *before* it tells, and who takes them hears what was
/// told *before* it looks: no socket stays behind whose message has been heard.
#[derive(Debug)]
pub(crate) struct HandoffQueue<T> {
    waiting: Mutex<VecDeque<T>>,
}

impl<T> HandoffQueue<T> {
    pub(crate) fn new() -> Self {
        Self { waiting: Mutex::new(VecDeque::new()) }
    }

    /// Leaves `sockets`, then tells.
    pub(crate) fn push(&self, sockets: impl Iterator<Item = T>, tell: impl FnOnce()) {
        self.lock().extend(sockets);
        tell();
    }

    /// Hears what was told, then takes all that is there.
    pub(crate) fn drain(&self, hear: impl FnOnce(), into: &mut VecDeque<T>) {
        hear();
        into.append(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
