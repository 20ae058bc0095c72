//! Messages between cores: one bounded queue for each core, and a way to wake it.
//!
//! A lock that is held for one push or one swap costs less here than a matrix of rings (22,000 of them
//! at 150 cores), and a core that sleeps is woken once for any number of messages.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{CoreId, MailFull, MailKind};

/// What one core receives from the others.
pub(crate) struct Mailbox<M> {
    queue: Mutex<VecDeque<M>>,
    /// Whether a wake-up is on its way; cleared by the owner before it looks.
    woken: AtomicBool,
    /// Makes the owner's wait return. It was made before the cores got fd tables of their own, so that all of them have it
    /// under the same number.
    eventfd: Arc<OwnedFd>,
    bulk_max: usize,
}

impl<M> Mailbox<M> {
    /// A mailbox that refuses bulk mail beyond `bulk_max` messages, and whose owner waits for `eventfd`.
    pub(crate) fn new(bulk_max: usize, eventfd: Arc<OwnedFd>) -> Self {
        Self { queue: Mutex::default(), woken: AtomicBool::new(false), eventfd, bulk_max }
    }

    /// Adds a message and wakes the owner.
    pub(crate) fn post(&self, mail: M, kind: MailKind) -> Result<(), MailFull<M>> {
        {
            let mut queue = self.queue();
            if kind == MailKind::Bulk && queue.len() >= self.bulk_max {
                return Err(MailFull(mail));
            }
            queue.push_back(mail);
        }
        self.wake();
        Ok(())
    }

    /// Wakes the owner, unless a wake-up is on its way already.
    pub(crate) fn wake(&self) {
        if !self.woken.swap(true, SeqCst) {
            // Full (2^64 - 2 unread wake-ups) is the one error that can happen, and then it is awake.
            let _ = rustix::io::write(self.eventfd.as_fd(), &1u64.to_ne_bytes());
        }
    }

    /// For the owner: moves at most [`COLLECT_MAX`] messages to `into`; true when more is left.
    pub(crate) fn collect(&self, into: &mut Vec<M>) -> bool {
        self.woken.store(false, SeqCst);
        let mut queue = self.queue();
        let count = queue.len().min(COLLECT_MAX);
        into.extend(queue.drain(..count));
        !queue.is_empty()
    }

    /// How many messages wait.
    pub(crate) fn waiting(&self) -> usize {
        self.queue().len()
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<M>> {
        // Nothing panics while it holds the lock; a poisoned queue is whole all the same.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many messages a core takes in one turn.
pub const COLLECT_MAX: usize = 256;

/// For threads that are no cores: a way to post to them.
pub struct Post<M> {
    mailboxes: Arc<[Mailbox<M>]>,
}

impl<M> Post<M> {
    /// A way to post to the owners of `mailboxes`.
    pub(crate) fn new(mailboxes: Arc<[Mailbox<M>]>) -> Self {
        Self { mailboxes }
    }

    /// How many cores there are.
    pub fn cores(&self) -> usize {
        self.mailboxes.len()
    }

    /// Posts a control message, which is never refused.
    pub fn control(&self, to: CoreId, mail: M) {
        let posted = self.mailboxes[to].post(mail, MailKind::Control);
        debug_assert!(posted.is_ok(), "control mail was refused");
    }

    /// Posts a message that can be dropped.
    ///
    /// # Errors
    /// The message again, when the mailbox is full.
    pub fn bulk(&self, to: CoreId, mail: M) -> Result<(), MailFull<M>> {
        self.mailboxes[to].post(mail, MailKind::Bulk)
    }

    /// Posts what `mail` makes for each core.
    pub fn each(&self, mut mail: impl FnMut(CoreId) -> M) {
        for core in 0..self.mailboxes.len() {
            self.control(core, mail(core));
        }
    }
}

impl<M> Clone for Post<M> {
    fn clone(&self) -> Self {
        Self { mailboxes: Arc::clone(&self.mailboxes) }
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    fn mailbox(bulk_max: usize) -> Mailbox<u32> {
        Mailbox::new(bulk_max, Arc::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap()))
    }

    /// How often its owner was woken since the last call.
    fn wakes(mailbox: &Mailbox<u32>) -> u64 {
        let mut count = [0; 8];
        let read = rustix::io::read(mailbox.eventfd.as_fd(), &mut count);
        if read.is_ok() { u64::from_ne_bytes(count) } else { 0 }
    }

    #[test]
    fn a_full_mailbox_refuses_bulk_and_takes_control() {
        let mailbox = mailbox(2);
        assert!(mailbox.post(1, MailKind::Bulk).is_ok());
        assert!(mailbox.post(2, MailKind::Bulk).is_ok());
        assert_eq!(mailbox.post(3, MailKind::Bulk), Err(MailFull(3)));
        assert!(mailbox.post(4, MailKind::Control).is_ok());
        let mut mail = Vec::new();
        assert!(!mailbox.collect(&mut mail));
        assert_eq!(mail, [1, 2, 4]);
    }

    #[test]
    fn a_sleeper_is_woken_once_for_many_messages() {
        let mailbox = mailbox(1_000);
        for n in 0..600 {
            mailbox.post(n, MailKind::Bulk).unwrap();
        }
        assert_eq!(wakes(&mailbox), 1);
        let mut mail = Vec::new();
        assert!(mailbox.collect(&mut mail), "a batch is bounded");
        mailbox.post(600, MailKind::Bulk).unwrap();
        assert_eq!(wakes(&mailbox), 1);
    }
}
