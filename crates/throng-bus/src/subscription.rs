//! The receiving end of a bus.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel,
};
use std::time::Duration;

/// A message that came over a bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusMessage {
    /// The subject under which it was published.
    pub subject: String,
    /// Its bytes.
    pub payload: Vec<u8>,
}

/// A subscription. It ends when it is dropped.
#[derive(Debug)]
pub struct BusSubscription {
    messages: Receiver<BusMessage>,
    lost: Arc<AtomicU64>,
}

/// The bus of a subscription has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionEnd;

/// The sending end of a subscription, which the bus keeps.
#[derive(Debug)]
pub(crate) struct Subscriber {
    messages: SyncSender<BusMessage>,
    lost: Arc<AtomicU64>,
}

/// Creates both ends of a subscription.
pub(crate) fn subscription() -> (Subscriber, BusSubscription) {
    let (sender, messages) = sync_channel(WAITING_MAX);
    let lost = Arc::<AtomicU64>::default();
    (Subscriber { messages: sender, lost: Arc::clone(&lost) }, BusSubscription { messages, lost })
}

impl BusSubscription {
    /// Returns the next message; `None` if none is there.
    ///
    /// # Errors
    /// The bus has ended.
    pub fn try_next(&self) -> Result<Option<BusMessage>, SubscriptionEnd> {
        match self.messages.try_recv() {
            Ok(message) => Ok(Some(message)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(SubscriptionEnd),
        }
    }

    /// Waits for the next message, but no longer than `timeout`: then it returns `None`.
    ///
    /// # Errors
    /// The bus has ended.
    pub fn next_within(&self, timeout: Duration) -> Result<Option<BusMessage>, SubscriptionEnd> {
        match self.messages.recv_timeout(timeout) {
            Ok(message) => Ok(Some(message)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(SubscriptionEnd),
        }
    }

    /// Returns how many messages were lost because [`WAITING_MAX`] of them waited.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }
}

impl Subscriber {
    /// Hands a message over. Returns false if the subscription has ended.
    pub(crate) fn deliver(&self, message: BusMessage) -> bool {
        match self.messages.try_send(message) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.lost.fetch_add(1, Relaxed);
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }
}

/// Messages that wait for their subscriber at most; further ones are lost to it.
pub const WAITING_MAX: usize = 4_096;
