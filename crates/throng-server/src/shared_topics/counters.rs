//! The counters of a node's threads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use throng_measure::ServerCounters;

/// What the threads of a node count: see the fields of the same names in [`ServerCounters`].
#[derive(Debug, Default)]
pub(super) struct NodeCounters {
    pub(super) published: AtomicU64,
    pub(super) received: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) refused: AtomicU64,
    /// Publications of other nodes that a core's full mailbox kept out.
    pub(super) kept_out: AtomicU64,
    /// Messages that the subscription has lost.
    pub(super) lost: AtomicU64,
    /// Subscriptions that the bus knows.
    pub(super) subscriptions: AtomicU64,
}

impl NodeCounters {
    pub(super) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Relaxed);
    }

    pub(super) fn report(&self, server: &mut ServerCounters) {
        server.bus_published += self.published.load(Relaxed);
        server.bus_received += self.received.load(Relaxed);
        server.bus_dropped += self.dropped.load(Relaxed);
        server.bus_refused += self.refused.load(Relaxed);
        server.bus_lost += self.lost.load(Relaxed);
        server.bus_subscriptions += self.subscriptions.load(Relaxed);
        server.publishes_dropped += self.kept_out.load(Relaxed);
    }
}
