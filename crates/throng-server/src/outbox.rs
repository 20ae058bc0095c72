//! The publications that wait to go to one core.

use std::collections::VecDeque;
use std::sync::Arc;

use throng_base::Key;
use throng_pubsub::{Policy, Publication};

/// A queue of publications for a core whose mailbox may be full.
#[derive(Default)]
pub(crate) struct Outbox {
    queue: VecDeque<OutboxItem>,
    /// The weight of the queue.
    bytes: usize,
}

/// A publication for a core, and the connection there that does not receive it.
pub(crate) struct OutboxItem {
    pub(crate) publication: Arc<Publication>,
    pub(crate) except: Option<Key>,
}

impl Outbox {
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Adds a publication. If there is no room, `policy` decides which publication of its topic
    /// makes room. Returns how many were dropped, which may include this one.
    pub(crate) fn push(&mut self, item: OutboxItem, policy: Policy) -> usize {
        let weight = item.publication.weight();
        let mut dropped = 0;
        while self.bytes + weight > OUTBOX_BYTES_MAX && !self.queue.is_empty() {
            let topic = item.publication.topic();
            let is_of_topic = |other: &OutboxItem| other.publication.topic() == topic;
            let oldest = match policy {
                Policy::DropNewest | Policy::Close => None,
                Policy::DropOldest | Policy::KeepLatest => self.queue.iter().position(is_of_topic),
            };
            dropped += 1;
            let Some(oldest) = oldest.and_then(|oldest| self.queue.remove(oldest)) else {
                return dropped;
            };
            self.bytes -= oldest.publication.weight();
        }
        self.bytes += weight;
        self.queue.push_back(item);
        dropped
    }

    /// Gives the publications to `post`, in order, until it returns one. Returns true if it has
    /// returned one.
    pub(crate) fn post(
        &mut self,
        mut post: impl FnMut(OutboxItem) -> Result<(), OutboxItem>,
    ) -> bool {
        while let Some(item) = self.queue.pop_front() {
            let weight = item.publication.weight();
            if let Err(refused) = post(item) {
                self.queue.push_front(refused);
                return true;
            }
            self.bytes -= weight;
        }
        false
    }
}

/// The maximum weight of the publications that wait for room in one core's mailbox.
const OUTBOX_BYTES_MAX: usize = 16 << 20;
