//! The receiving end of a bus.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel,
};
use std::sync::{Arc, Weak};
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
    waiting_bytes: Arc<AtomicUsize>,
    lost: Arc<AtomicU64>,
    /// Lives as long as the subscription.
    id: Arc<()>,
}

/// The name of a subscription, for [`Bus::extend`](crate::Bus::extend) from any thread.
#[derive(Clone, Debug)]
pub struct SubscriptionId(Weak<()>);

/// The bus of a subscription has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionEnd;

/// The sending end of a subscription, which the bus keeps for each of its patterns.
#[derive(Clone, Debug)]
pub(crate) struct Subscriber {
    messages: SyncSender<BusMessage>,
    /// Bytes of the payloads that wait for their subscriber.
    waiting_bytes: Arc<AtomicUsize>,
    lost: Arc<AtomicU64>,
    id: SubscriptionId,
}

/// Creates both ends of a subscription.
pub(crate) fn subscription() -> (Subscriber, BusSubscription) {
    let (sender, messages) = sync_channel(WAITING_MAX);
    let (lost, id) = (Arc::<AtomicU64>::default(), Arc::new(()));
    let waiting_bytes = Arc::<AtomicUsize>::default();
    let subscriber = Subscriber {
        messages: sender,
        waiting_bytes: Arc::clone(&waiting_bytes),
        lost: Arc::clone(&lost),
        id: SubscriptionId(Arc::downgrade(&id)),
    };
    (subscriber, BusSubscription { messages, waiting_bytes, lost, id })
}

impl BusSubscription {
    /// Returns the next message; `None` if none is there.
    ///
    /// # Errors
    /// The bus has ended.
    pub fn try_next(&self) -> Result<Option<BusMessage>, SubscriptionEnd> {
        match self.messages.try_recv() {
            Ok(message) => Ok(Some(self.take(message))),
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
            Ok(message) => Ok(Some(self.take(message))),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(SubscriptionEnd),
        }
    }

    /// Returns the name of the subscription.
    pub fn id(&self) -> SubscriptionId {
        SubscriptionId(Arc::downgrade(&self.id))
    }

    /// Returns how many messages were lost because [`WAITING_MAX`] of them waited, or
    /// [`WAITING_BYTES_MAX`].
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    fn take(&self, message: BusMessage) -> BusMessage {
        self.waiting_bytes.fetch_sub(message.payload.len(), Relaxed);
        message
    }
}

impl Subscriber {
    /// Reports whether it is the sending end of `subscription`.
    pub(crate) fn is_of(&self, subscription: &SubscriptionId) -> bool {
        self.id.0.ptr_eq(&subscription.0)
    }

    /// Reports whether the subscription has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.id.0.strong_count() == 0
    }

    /// Hands a message over. Returns false if the subscription has ended.
    pub(crate) fn deliver(&self, message: BusMessage) -> bool {
        let bytes = message.payload.len();
        // Counted first: the subscriber may take the message before this call returns.
        let waiting = self.waiting_bytes.fetch_add(bytes, Relaxed);
        let sent = match waiting + bytes <= WAITING_BYTES_MAX {
            true => self.messages.try_send(message),
            false => Err(TrySendError::Full(message)),
        };
        if sent.is_err() {
            self.waiting_bytes.fetch_sub(bytes, Relaxed);
        }
        match sent {
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
/// Bytes of messages that wait for their subscriber at most; further messages are lost to it.
pub const WAITING_BYTES_MAX: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::PAYLOAD_BYTES_MAX;

    #[test]
    fn large_messages_that_wait_are_bounded_in_bytes() {
        let (subscriber, subscription) = subscription();
        let large = || BusMessage { subject: "a".into(), payload: vec![0; PAYLOAD_BYTES_MAX] };
        let fits = WAITING_BYTES_MAX / PAYLOAD_BYTES_MAX;
        (0..fits + 3).for_each(|_| assert!(subscriber.deliver(large())));
        assert_eq!(subscription.lost(), 3);
        // Each that is taken makes room for another one.
        assert!(subscription.try_next().unwrap().is_some());
        (0..2).for_each(|_| assert!(subscriber.deliver(large())));
        assert_eq!(subscription.lost(), 4);
        let taken = std::iter::from_fn(|| subscription.try_next().unwrap()).count();
        assert_eq!(taken, fits);
    }
}
