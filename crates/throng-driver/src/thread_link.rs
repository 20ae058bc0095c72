//! The link between cores that are threads of one process.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use crate::core_set::CoreSetState;
use crate::{CoreId, CoreLink, MailboxFull, MessagePriority, Permits};

/// Link of a core that is a thread: mailboxes behind locks, and an eventfd that wakes the core.
pub struct ThreadLink<M> {
    core: CoreId,
    pub(crate) shared: Arc<CoreSetState<M>>,
}

impl<M> ThreadLink<M> {
    pub(crate) fn new(core: CoreId, shared: Arc<CoreSetState<M>>) -> Self {
        Self { core, shared }
    }

    /// Returns the eventfd that becomes readable when another thread wakes this core. The driver
    /// reports it as [`Token::WAKE`](crate::Token::WAKE). A driver that waits for its level, not
    /// its edge, must read its eight bytes.
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.shared.slots[self.core].eventfd.as_fd()
    }
}

impl<M> CoreLink for ThreadLink<M> {
    type Message = M;

    fn core(&self) -> CoreId {
        self.core
    }

    fn cores(&self) -> usize {
        self.shared.slots.len()
    }

    fn send_message(
        &self,
        to: CoreId,
        message: M,
        priority: MessagePriority,
    ) -> Result<(), MailboxFull<M>> {
        self.shared.mailboxes[to].push(message, priority)
    }

    fn receive_messages(&self, into: &mut Vec<M>) -> bool {
        self.shared.mailboxes[self.core].pop_batch(into)
    }

    fn messages_waiting(&self) -> usize {
        self.shared.mailboxes[self.core].len()
    }

    fn wake(&self, core: CoreId) {
        self.shared.mailboxes[core].wake();
    }

    fn permits(&self) -> &Permits {
        &self.shared.permits
    }
}
