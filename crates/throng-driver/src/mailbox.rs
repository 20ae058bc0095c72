//! Messages between cores: one bounded queue for each core, and a way to wake it.
//!
//! A lock that is held for one push or one swap costs less here than a matrix of rings (22,000 of them
//! at 150 cores), and a core that sleeps is woken once for any number of messages.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, PoisonError};

use crate::sync::{AtomicBool, Mutex, MutexGuard};
use crate::tables::{SharedFd, Tables};
use crate::{CoreId, MailboxFull, MessagePriority};

/// What one core receives from the others.
pub(crate) struct Mailbox<M, S = Arc<SharedFd>> {
    queue: Mutex<VecDeque<M>>,
    /// Whether a wake-up is on its way; cleared by the owner before it looks.
    woken: AtomicBool,
    /// Makes the owner's wait return.
    owner: S,
    bulk_max: usize,
}

/// What makes a core's wait return.
pub(crate) trait Signal {
    /// Makes the present wait return, or else the next one.
    fn signal(&self);
}

/// An eventfd. It was made before the cores got fd tables of their own, so that all of them have it
/// under the same number.
impl Signal for Arc<SharedFd> {
    fn signal(&self) {
        let written = rustix::io::write(self.as_fd(), &1u64.to_ne_bytes());
        // A full one (2^64 - 2 unread signals) is as good: its owner is awake.
        let is_fine = matches!(written, Ok(_) | Err(rustix::io::Errno::AGAIN));
        debug_assert!(is_fine, "a core could not be woken: {written:?}");
    }
}

impl<M, S: Signal> Mailbox<M, S> {
    /// A mailbox that refuses bulk mail beyond `bulk_max` messages, and whose owner waits for `owner`.
    pub(crate) fn new(bulk_max: usize, owner: S) -> Self {
        let (queue, woken) = (Mutex::new(VecDeque::new()), AtomicBool::new(false));
        Self { queue, woken, owner, bulk_max }
    }

    /// Adds a message and wakes the owner.
    pub(crate) fn push(&self, mail: M, kind: MessagePriority) -> Result<(), MailboxFull<M>> {
        {
            let mut queue = self.queue();
            if kind == MessagePriority::Bulk && queue.len() >= self.bulk_max {
                return Err(MailboxFull(mail));
            }
            queue.push_back(mail);
        }
        self.wake();
        Ok(())
    }

    /// Wakes the owner, unless a wake-up is on its way already.
    pub(crate) fn wake(&self) {
        if !self.woken.swap(true, SeqCst) {
            self.owner.signal();
        }
    }

    /// For the owner: moves at most [`COLLECT_MAX`] messages to `into`; true when more is left.
    pub(crate) fn pop_batch(&self, into: &mut Vec<M>) -> bool {
        self.woken.store(false, SeqCst);
        let mut queue = self.queue();
        let count = queue.len().min(MESSAGE_BATCH_MAX);
        into.extend(queue.drain(..count));
        !queue.is_empty()
    }

    /// How many messages wait.
    pub(crate) fn len(&self) -> usize {
        self.queue().len()
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<M>> {
        // Nothing panics while it holds the lock; a poisoned queue is whole all the same.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many messages a core takes in one turn.
pub const MESSAGE_BATCH_MAX: usize = 256;

/// For threads that are no cores: a way to post to them.
///
/// A message wakes its core through an fd, which is open in the fd table of the thread that started
/// the cores and in those of the cores themselves. Used on a core of another engine whose fd table is
/// its own ([`CoresOptions::private_fds`](crate::CoresOptions)), every method panics: there the same
/// number is somebody else's socket. A thread that such a core started cannot be told apart, and must
/// not use it.
pub struct MailboxSender<M> {
    mailboxes: Arc<[Mailbox<M>]>,
    tables: Tables,
}

impl<M> MailboxSender<M> {
    /// A way to post to the owners of `mailboxes`, whose fds are open in `tables`.
    pub(crate) fn new(mailboxes: Arc<[Mailbox<M>]>, tables: Tables) -> Self {
        Self { mailboxes, tables }
    }

    /// How many cores there are.
    pub fn cores(&self) -> usize {
        self.mailboxes.len()
    }

    /// Posts a control message, which is never refused.
    ///
    /// # Panics
    /// On a core whose fd table is its own and not one of these.
    pub fn send_control(&self, to: CoreId, mail: M) {
        self.tables.assert_current();
        let posted = self.mailboxes[to].push(mail, MessagePriority::Control);
        debug_assert!(posted.is_ok(), "control mail was refused");
    }

    /// Posts a message that can be dropped.
    ///
    /// # Errors
    /// The message again, when the mailbox is full.
    ///
    /// # Panics
    /// On a core whose fd table is its own and not one of these.
    pub fn send_bulk(&self, to: CoreId, mail: M) -> Result<(), MailboxFull<M>> {
        self.tables.assert_current();
        self.mailboxes[to].push(mail, MessagePriority::Bulk)
    }

    /// Posts what `mail` makes for each core.
    ///
    /// # Panics
    /// On a core whose fd table is its own and not one of these.
    pub fn send_to_all(&self, mut mail: impl FnMut(CoreId) -> M) {
        for core in 0..self.mailboxes.len() {
            self.send_control(core, mail(core));
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

    /// Counts the signals since it was last asked.
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
        let mut mail = Vec::new();
        assert!(!mailbox.pop_batch(&mut mail));
        assert_eq!(mail, [1, 2, 4]);
    }

    #[test]
    fn a_sleeper_is_woken_once_for_many_messages() {
        let mailbox = mailbox(1_000);
        for n in 0..600 {
            mailbox.push(n, MessagePriority::Bulk).unwrap();
        }
        assert_eq!(mailbox.owner.0.take(), 1);
        let mut mail = Vec::new();
        assert!(mailbox.pop_batch(&mut mail), "a batch is bounded");
        mailbox.push(600, MessagePriority::Bulk).unwrap();
        assert_eq!(mailbox.owner.0.take(), 1);
    }
}
