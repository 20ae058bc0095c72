//! What the threads of a set of cores share.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use rustix::event::EventfdFlags;

use crate::fd_queue::FdQueue;
use crate::handoff::FdChannel;
use crate::mailbox::Mailbox;
use crate::tables::{SharedFd, Tables};
use crate::{Errno, Permits};

/// State that all cores share.
pub(crate) struct CoreSetState<M> {
    pub(crate) mailboxes: Arc<[Mailbox<M>]>,
    pub(crate) slots: Vec<CoreSlot>,
    pub(crate) permits: Permits,
    /// Fd tables in which the fds of the slots are open.
    pub(crate) tables: Tables,
    /// Sockets that fit into a core's own fd table; `None` if all cores share one table.
    pub(crate) fds_max: Option<usize>,
}

/// Part of one core that the other cores use.
pub(crate) struct CoreSlot {
    pub(crate) eventfd: Arc<SharedFd>,
    pub(crate) channel: FdChannel,
    /// Sockets that other cores hand off to this one, where all cores share one fd table.
    pub(crate) fd_queue: FdQueue<OwnedFd>,
}

impl CoreSlot {
    pub(crate) fn new(tables: Tables) -> Result<Self, Errno> {
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        let eventfd = rustix::event::eventfd(0, flags)?;
        Ok(Self {
            eventfd: Arc::new(SharedFd::new(eventfd, tables)),
            channel: FdChannel::new(tables)?,
            fd_queue: FdQueue::new(),
        })
    }
}

impl<M> CoreSetState<M> {
    pub(crate) fn new(
        cores: usize,
        mailbox_max: usize,
        permits: Permits,
        fds_max: Option<usize>,
    ) -> Result<Self, Errno> {
        let mut slots = Vec::with_capacity(cores);
        let mut mailboxes = Vec::with_capacity(cores);
        let tables = Tables::for_new_cores();
        for _ in 0..cores {
            let slot = CoreSlot::new(tables)?;
            mailboxes.push(Mailbox::new(mailbox_max, Arc::clone(&slot.eventfd)));
            slots.push(slot);
        }
        Ok(Self { mailboxes: mailboxes.into(), slots, permits, tables, fds_max })
    }

    /// Returns the fds that stay open in every core's own table.
    pub(crate) fn kept_fds(&self) -> Vec<RawFd> {
        let fds = |slot: &CoreSlot| {
            [
                slot.eventfd.as_raw_fd(),
                slot.channel.write_end.as_raw_fd(),
                slot.channel.read_end.as_raw_fd(),
            ]
        };
        self.slots.iter().flat_map(fds).collect()
    }
}
