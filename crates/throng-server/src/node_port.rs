//! The way from the cores of a node to the thread that speaks to the other nodes.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use throng_pubsub::presence::Diff;
use throng_pubsub::{Publication, Rulebook, TopicChange};

/// A queue from all cores to one thread. A core holds its lock for one push and never waits for the
/// thread.
#[derive(Debug, Default)]
pub(crate) struct NodePort {
    queue: Mutex<PortQueue>,
    arrived: Condvar,
    /// The number of the node, for refs of presence.
    number: u16,
    /// The rules of topics, which every core has.
    rules: OnceLock<Rulebook>,
}

#[derive(Debug, Default)]
struct PortQueue {
    items: Vec<FromCore>,
    /// The weight of the publications.
    bytes: usize,
    /// True if the thread is to look after something else.
    is_woken: bool,
    is_closed: bool,
}

/// What cores tell the thread.
#[derive(Debug)]
pub(crate) enum FromCore {
    /// A publication of this node.
    Publication(Arc<Publication>),
    /// Changes of the members that the core owns.
    Presence(Arc<Diff>),
    /// A topic of the core has begun or ended.
    Topic(TopicChange),
}

impl NodePort {
    pub(crate) fn new(number: u16) -> Self {
        Self { number, ..Self::default() }
    }

    pub(crate) const fn number(&self) -> u16 {
        self.number
    }

    /// Notes the rules of topics: the first core does so.
    pub(crate) fn set_rules(&self, rules: &Rulebook) {
        self.rules.get_or_init(|| rules.clone());
    }

    pub(crate) fn rules(&self) -> &Rulebook {
        self.rules.get_or_init(Rulebook::default)
    }

    /// Queues a publication. Returns false if too many wait.
    pub(crate) fn publish(&self, publication: &Arc<Publication>) -> bool {
        let weight = publication.weight();
        let mut queue = self.queue();
        if queue.bytes + weight > PORT_BYTES_MAX && queue.bytes > 0 {
            return false;
        }
        queue.bytes += weight;
        self.push(queue, FromCore::Publication(Arc::clone(publication)));
        true
    }

    /// Queues what is never refused, because it keeps the nodes in agreement.
    pub(crate) fn tell(&self, item: FromCore) {
        self.push(self.queue(), item);
    }

    /// Makes the present or the next [`Self::take`] return.
    pub(crate) fn wake(&self) {
        self.queue().is_woken = true;
        self.arrived.notify_one();
    }

    /// Makes every further [`Self::take`] return `None` once the queue is empty. What comes later
    /// is dropped.
    pub(crate) fn close(&self) {
        self.queue().is_closed = true;
        self.arrived.notify_one();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.queue().is_closed
    }

    /// Waits for the first item, at most for `timeout`, and then for `more`, so that further items
    /// come with it. Returns all of them.
    pub(crate) fn take(&self, timeout: Duration, more: Duration) -> Option<Vec<FromCore>> {
        let is_idle =
            |queue: &mut PortQueue| queue.items.is_empty() && !queue.is_woken && !queue.is_closed;
        let waited = self.arrived.wait_timeout_while(self.queue(), timeout, is_idle);
        let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if !queue.items.is_empty() && !queue.is_closed {
            drop(queue);
            std::thread::sleep(more);
            queue = self.queue();
        }
        if queue.is_closed && queue.items.is_empty() {
            return None;
        }
        (queue.is_woken, queue.bytes) = (false, 0);
        Some(std::mem::take(&mut queue.items))
    }

    fn push(&self, mut queue: MutexGuard<'_, PortQueue>, item: FromCore) {
        if queue.is_closed {
            return;
        }
        let was_empty = queue.items.is_empty();
        queue.items.push(item);
        drop(queue);
        if was_empty {
            self.arrived.notify_one();
        }
    }

    fn queue(&self) -> MutexGuard<'_, PortQueue> {
        // No code panics while it holds the lock.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The maximum weight of the publications that wait for the thread.
const PORT_BYTES_MAX: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn publication(bytes: usize) -> Arc<Publication> {
        Arc::new(Publication::new("t", ()).with_body_bytes(bytes))
    }

    fn take(port: &NodePort) -> Option<usize> {
        port.take(Duration::ZERO, Duration::ZERO).map(|items| items.len())
    }

    #[test]
    fn a_full_port_refuses_publications_and_nothing_else() {
        let port = NodePort::new(1);
        // One always fits.
        assert!(port.publish(&publication(2 * PORT_BYTES_MAX)));
        assert!(!port.publish(&publication(1)));
        port.tell(FromCore::Topic(TopicChange { topic: "t".into(), has_members: true }));
        assert_eq!(take(&port), Some(2));
        assert!(port.publish(&publication(1)));
    }

    #[test]
    fn a_closed_port_is_emptied_and_takes_nothing_more() {
        let port = NodePort::new(1);
        assert_eq!(take(&port), Some(0));
        port.publish(&publication(1));
        port.close();
        port.publish(&publication(1));
        assert_eq!((take(&port), take(&port), port.is_closed()), (Some(1), None, true));
    }

    #[test]
    fn the_thread_is_woken_by_an_item_and_by_a_wake() {
        let port = Arc::new(NodePort::new(1));
        let there = Arc::clone(&port);
        let long = Duration::from_secs(600);
        let thread = std::thread::spawn(move || {
            let first = there.take(long, Duration::ZERO).map(|items| items.len());
            (first, there.take(long, Duration::ZERO).map(|items| items.len()))
        });
        port.publish(&publication(1));
        while !port.queue().items.is_empty() {
            std::thread::yield_now();
        }
        port.wake();
        assert_eq!(thread.join().unwrap(), (Some(1), Some(0)));
    }
}
