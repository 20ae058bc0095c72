//! Messages between cores: one bounded queue for each core, and a signal that wakes the core.
//!
//! A lock that is held for one push or one drain costs less here than a matrix of rings (22,000 of
//! them at 150 cores). A sleeping core is woken once for any number of messages.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, PoisonError};

use crate::sync::{AtomicBool, Mutex, MutexGuard};
use crate::tables::{SharedFd, Tables};
use crate::{CoreId, MailboxFull, MessagePriority};

/// Messages that one core receives from the others.
pub(crate) struct Mailbox<M, S = Arc<SharedFd>> {
    queue: Mutex<VecDeque<M>>,
    /// A wake-up is under way. The owner clears it before it reads the queue.
    woken: AtomicBool,
    /// Makes the owner's wait return.
    signal: S,
    bulk_max: usize,
}

/// Signal that makes a core's wait return.
pub(crate) trait Signal {
    /// Makes the present wait return, or the next one if the core does not wait.
    fn signal(&self);
}

/// Eventfd. It is opened before the cores get their own fd tables, so it has the same number in all
/// of them.
impl Signal for Arc<SharedFd> {
    fn signal(&self) {
        let written = rustix::io::write(self.as_fd(), &1u64.to_ne_bytes());
        // If the counter is full (2^64 - 2 unread signals), the owner is awake anyway.
        let is_fine = matches!(written, Ok(_) | Err(rustix::io::Errno::AGAIN));
        debug_assert!(is_fine, "a core could not be woken: {written:?}");
    }
}

impl<M, S: Signal> Mailbox<M, S> {
    /// Creates a mailbox that refuses bulk messages beyond `bulk_max` messages and wakes its owner
    /// by `signal`.
    pub(crate) fn new(bulk_max: usize, signal: S) -> Self {
        let (queue, woken) = (Mutex::new(VecDeque::new()), AtomicBool::new(false));
        Self { queue, woken, signal, bulk_max }
    }

    /// Adds a message, and wakes the owner.
    pub(crate) fn push(&self, message: M, priority: MessagePriority) -> Result<(), MailboxFull<M>> {
        {
            let mut queue = self.queue();
            if priority == MessagePriority::Bulk && queue.len() >= self.bulk_max {
                return Err(MailboxFull(message));
            }
            queue.push_back(message);
        }
        self.wake();
        Ok(())
    }

    /// Wakes the owner, unless a wake-up is under way already.
    pub(crate) fn wake(&self) {
        if !self.woken.swap(true, SeqCst) {
            self.signal.signal();
        }
    }

    /// Moves at most [`MESSAGE_BATCH_MAX`] messages to `into`, for the owner. Returns true if more
    /// are left.
    pub(crate) fn pop_batch(&self, into: &mut Vec<M>) -> bool {
        self.woken.store(false, SeqCst);
        let mut queue = self.queue();
        let count = queue.len().min(MESSAGE_BATCH_MAX);
        into.extend(queue.drain(..count));
        !queue.is_empty()
    }

    /// Returns how many messages wait.
    pub(crate) fn len(&self) -> usize {
        self.queue().len()
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<M>> {
        // No code panics while it holds the lock, so a poisoned queue is consistent.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Most messages that a core receives in one turn.
pub const MESSAGE_BATCH_MAX: usize = 256;

/// Sender of messages to cores, for threads that are not cores.
///
/// A message wakes its core through an fd, which is open in the fd table of the thread that started
/// the cores and in the cores' own tables. On a core of another engine that has its own fd table
/// ([`CoresOptions::private_fds`](crate::CoresOptions)), every method panics: there the number
/// belongs to another socket. Threads that such a core started must not use it either; no check
/// detects them.
pub struct MailboxSender<M> {
    mailboxes: Arc<[Mailbox<M>]>,
    tables: Tables,
}

impl<M> MailboxSender<M> {
    /// Creates a sender to the owners of `mailboxes`, whose fds are open in `tables`.
    pub(crate) fn new(mailboxes: Arc<[Mailbox<M>]>, tables: Tables) -> Self {
        Self { mailboxes, tables }
    }

    /// Returns the number of cores.
    pub fn cores(&self) -> usize {
        self.mailboxes.len()
    }

    /// Returns how many messages wait in each core's mailbox.
    pub fn waiting(&self) -> Vec<u64> {
        self.mailboxes.iter().map(|mailbox| mailbox.len() as u64).collect()
    }

    /// Sends a control message. It is never refused.
    ///
    /// # Panics
    /// On a core of another engine that has its own fd table.
    pub fn send_control(&self, to: CoreId, message: M) {
        self.tables.assert_current();
        let sent = self.mailboxes[to].push(message, MessagePriority::Control);
        debug_assert!(sent.is_ok(), "a mailbox refused a control message");
    }

    /// Sends a bulk message.
    ///
    /// # Errors
    /// The mailbox is full; the message comes back.
    ///
    /// # Panics
    /// On a core of another engine that has its own fd table.
    pub fn send_bulk(&self, to: CoreId, message: M) -> Result<(), MailboxFull<M>> {
        self.tables.assert_current();
        self.mailboxes[to].push(message, MessagePriority::Bulk)
    }

    /// Sends each core the control message that `message` makes for it.
    ///
    /// # Panics
    /// On a core of another engine that has its own fd table.
    pub fn send_to_all(&self, mut message: impl FnMut(CoreId) -> M) {
        for core in 0..self.mailboxes.len() {
            self.send_control(core, message(core));
        }
    }
}

impl<M> Clone for MailboxSender<M> {
    fn clone(&self) -> Self {
        Self { mailboxes: Arc::clone(&self.mailboxes), tables: self.tables }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Counts the signals since the last `take`.
    #[derive(Default)]
    struct Signals(Cell<u64>);

    impl Signal for Signals {
        fn signal(&self) {
            self.0.set(self.0.get() + 1);
        }
    }

    fn mailbox(bulk_max: usize) -> Mailbox<u32, Signals> {
        Mailbox::new(bulk_max, Signals::default())
    }

    #[test]
    fn a_full_mailbox_refuses_bulk_and_takes_control() {
        let mailbox = mailbox(2);
        assert!(mailbox.push(1, MessagePriority::Bulk).is_ok());
        assert!(mailbox.push(2, MessagePriority::Bulk).is_ok());
        assert_eq!(mailbox.push(3, MessagePriority::Bulk), Err(MailboxFull(3)));
        assert!(mailbox.push(4, MessagePriority::Control).is_ok());
        let mut messages = Vec::new();
        assert!(!mailbox.pop_batch(&mut messages));
        assert_eq!(messages, [1, 2, 4]);
    }

    #[test]
    fn a_sleeper_is_woken_once_for_many_messages() {
        let mailbox = mailbox(1_000);
        for n in 0..600 {
            mailbox.push(n, MessagePriority::Bulk).unwrap();
        }
        assert_eq!(mailbox.signal.0.take(), 1);
        let mut messages = Vec::new();
        assert!(mailbox.pop_batch(&mut messages), "a batch is bounded");
        mailbox.push(600, MessagePriority::Bulk).unwrap();
        assert_eq!(mailbox.signal.0.take(), 1);
    }
}
