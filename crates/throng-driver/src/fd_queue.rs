//! Queue by which cores that share one fd table hand off sockets.

use std::collections::VecDeque;
use std::sync::PoisonError;

use crate::sync::{Mutex, MutexGuard};

/// Queue of sockets for one core, by their fd numbers.
///
/// A separate notification wakes the core, which may read it before or after the sockets are in the
/// queue. So a sender pushes sockets *before* it notifies, and the receiver reads the notifications
/// *before* it drains the queue. Then no socket stays in the queue after its notification was read.
#[derive(Debug)]
pub(crate) struct FdQueue<T> {
    sockets: Mutex<VecDeque<T>>,
}

impl<T> FdQueue<T> {
    pub(crate) fn new() -> Self {
        Self { sockets: Mutex::new(VecDeque::new()) }
    }

    /// Adds `sockets`, then calls `notify`.
    pub(crate) fn push(&self, sockets: impl Iterator<Item = T>, notify: impl FnOnce()) {
        self.lock().extend(sockets);
        notify();
    }

    /// Calls `read_notifications`, then moves all sockets to `into`.
    pub(crate) fn drain(&self, read_notifications: impl FnOnce(), into: &mut VecDeque<T>) {
        read_notifications();
        into.append(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
