//! Messages between cores: one bounded queue for each core, and a way to wake it.
//!
//! A lock that is held for one push or one swap costs less here than a matrix of rings (22,000 of them
//! at 150 cores), and a core that sleeps is woken once for any number of messages.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{CoreId, MailFull, MailKind};

/// How a sleeping core is woken.
pub trait Wake: Send + Sync {
    /// Makes its wait return.
    fn wake(&self);
}

/// An eventfd, made before the cores get fd tables of their own, so that all of them have it under the same number.
pub(crate) struct EventFd(pub(crate) Arc<OwnedFd>);

impl Wake for EventFd {
    fn wake(&self) {
        // Full (2^64 - 2 unread wake-ups) is the one error that can happen, and then it is awake.
        let _ = rustix::io::write(self.0.as_fd(), &1u64.to_ne_bytes());
    }
}

/// What one core receives from the others.
pub struct Mailbox<M> {
    queue: Mutex<VecDeque<M>>,
    /// Whether a wake-up is on its way; cleared by the owner before it looks.
    woken: AtomicBool,
    wake: Box<dyn Wake>,
    bulk_max: usize,
}

impl<M> Mailbox<M> {
    /// A mailbox that refuses bulk mail beyond `bulk_max` messages.
    pub fn new(bulk_max: usize, wake: Box<dyn Wake>) -> Self {
        Self { queue: Mutex::new(VecDeque::new()), woken: AtomicBool::new(false), wake, bulk_max }
    }

    /// Adds a message and wakes the owner.
    pub fn post(&self, mail: M, kind: MailKind) -> Result<(), MailFull<M>> {
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
    pub fn wake(&self) {
        if !self.woken.swap(true, SeqCst) {
            self.wake.wake();
        }
    }

    /// For the owner: moves at most [`COLLECT_MAX`] messages to `into`; true when more is left.
    pub fn collect(&self, into: &mut Vec<M>) -> bool {
        self.woken.store(false, SeqCst);
        let mut queue = self.queue();
        let count = queue.len().min(COLLECT_MAX);
        into.extend(queue.drain(..count));
        !queue.is_empty()
    }

    /// How many messages wait.
    pub fn waiting(&self) -> usize {
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
    pub fn new(mailboxes: Arc<[Mailbox<M>]>) -> Self {
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
    use std::sync::atomic::AtomicUsize;

    use super::*;

    struct Count(Arc<AtomicUsize>);

    impl Wake for Count {
        fn wake(&self) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn a_full_mailbox_refuses_bulk_and_takes_control() {
        let mailbox = Mailbox::new(2, Box::new(Count(Arc::default())));
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
        let wakes = Arc::new(AtomicUsize::new(0));
        let mailbox = Mailbox::new(1000, Box::new(Count(Arc::clone(&wakes))));
        for n in 0..600 {
            mailbox.post(n, MailKind::Bulk).unwrap();
        }
        assert_eq!(wakes.load(SeqCst), 1);
        let mut mail = Vec::new();
        assert!(mailbox.collect(&mut mail), "a batch is bounded");
        mailbox.post(600, MailKind::Bulk).unwrap();
        assert_eq!(wakes.load(SeqCst), 2);
    }
}
