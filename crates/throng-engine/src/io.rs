//! State of a core that every callback may use: the driver, the out buffer, effects and counters.

use std::collections::VecDeque;

use throng_base::{Instant, Key};
use throng_driver::{
    CoreId, CoreLink, Driver, Errno, MailboxFull, MessagePriority, SocketClose, Sockets,
};
use throng_measure::CoreCounters;

use crate::activity::Activity;
use crate::arrival::Arrival;
use crate::budget::{Budget, InputBacklog};
use crate::transport::TransportContext;
use crate::{CloseReason, CoreLimits};

/// Part of a core's state that the callback of one connection may use too, beside its own entry.
pub(crate) struct CoreIo<D> {
    pub(crate) driver: D,
    /// Time at which the core began to process the present event.
    pub(crate) now: Instant,
    /// Bytes that the present callback sends.
    pub(crate) out: Vec<u8>,
    pub(crate) effects: VecDeque<Effect>,
    /// Entries that may have more to read.
    pub(crate) ready: VecDeque<Key>,
    /// Input of these entries that was received and not processed.
    pub(crate) backlog: InputBacklog,
    /// Work that remains for all connections of this turn.
    pub(crate) budget: Budget,
    /// Arrival of the bytes from which the present event was read.
    pub(crate) arrival: Arrival,
    /// What the transport says of its failure, until the app learns of the close.
    pub(crate) failure_texts: Vec<(Key, Box<str>)>,
    pub(crate) counters: CoreCounters,
    /// What is counted while the core is observed.
    pub(crate) activity: Option<Box<Activity>>,
    pub(crate) limits: CoreLimits,
    /// None if all connections are plain.
    pub(crate) transport: Option<Box<TransportContext>>,
    pub(crate) stopped: bool,
}

/// Work that the core does after the present callback returns.
#[derive(Debug)]
pub(crate) enum Effect {
    Opened(Key),
    Notified(Key),
    Drained(Key),
    Close(Key, CloseReason, SocketClose),
    Closed(Key, CloseReason),
}

impl<D: Sockets> CoreIo<D> {
    pub(crate) fn new(driver: D, now: Instant, limits: CoreLimits) -> Self {
        Self {
            driver,
            now,
            out: Vec::new(),
            effects: VecDeque::new(),
            ready: VecDeque::new(),
            backlog: InputBacklog::default(),
            budget: Budget::new(limits.turn_work_bytes_max),
            arrival: Arrival::Unknown,
            failure_texts: Vec::new(),
            counters: CoreCounters::default(),
            activity: None,
            limits,
            transport: None,
            stopped: false,
        }
    }

    /// Receives into `buffer`, and returns the arrival if it is wanted.
    pub(crate) fn recv(
        &mut self,
        fd: &D::Fd,
        buffer: &mut [u8],
        wants_arrival: bool,
    ) -> Result<(usize, Arrival), Errno> {
        if wants_arrival {
            let (received, stamp) = self.driver.recv_stamped(fd, buffer)?;
            Ok((received, stamp.into()))
        } else {
            Ok((self.driver.recv(fd, buffer)?, Arrival::Unknown))
        }
    }

    /// Counts a send of the connection `key`, while the core is observed.
    pub(crate) fn count_sent(&mut self, key: Key, bytes: usize) {
        if let Some(activity) = &mut self.activity {
            activity.sent(key, bytes);
        }
    }
}

impl<D: Driver> CoreIo<D> {
    /// Puts `message` into the mailbox of the core `to`, and counts it if the mailbox refuses it.
    pub(crate) fn send_message(
        &mut self,
        to: CoreId,
        message: D::Message,
        priority: MessagePriority,
    ) -> Result<(), MailboxFull<D::Message>> {
        let sent = self.driver.link().send_message(to, message, priority);
        self.counters.mail_dropped += u64::from(sent.is_err());
        sent
    }
}

/// Capacity that the out buffer keeps between callbacks.
pub(crate) const OUT_KEPT_BYTES: usize = 256 << 10;
