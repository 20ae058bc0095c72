//! What an app may ask about its core: the activity while it is observed, and the connections whose
//! peers are slow.

use std::net::SocketAddr;
use std::ops::Range;

use throng_base::{Instant, Key};
use throng_driver::Driver;
use throng_measure::CoreCounters;

use crate::entry::SocketState;
use crate::{Activity, App, CoreContext, TransportCounters};

/// A connection whose peer does not take what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedConnection {
    /// The key of the connection.
    pub key: Key,
    /// Bytes that wait in this process until the kernel takes them.
    pub pending_bytes: usize,
    /// Since when some bytes have waited, without a break.
    pub since: Instant,
    /// When the kernel last took some of them; [`Instant::ZERO`] if it has taken none.
    pub taken_at: Instant,
}

impl<D: Driver, A: App<D>> CoreContext<D, A> {
    /// Begins to count the core's [`Activity`], from zero.
    pub fn observe(&mut self) {
        self.io.activity = Some(Box::new(Activity::new()));
    }

    /// Ends the observation and returns what was counted.
    pub fn end_observation(&mut self) -> Option<Box<Activity>> {
        self.io.activity.take()
    }

    /// Returns the core's counters without the gauge of entries, and does not reset the longest
    /// turn.
    pub fn totals(&self) -> CoreCounters {
        self.io.counters.clone()
    }

    /// Returns the counters of the core's transport; zeros without one.
    pub fn transport_counters(&self) -> TransportCounters {
        self.io.transport.as_ref().map(|context| context.counters()).unwrap_or_default()
    }

    /// Returns how many places the table has: the end of the range for [`Self::blocked_in`].
    pub fn places(&self) -> u32 {
        self.table.entries.places()
    }

    /// Returns the connections in `places` of the table whose peers are slow. The cost depends on
    /// the number of places.
    pub fn blocked_in(&self, places: Range<u32>) -> impl Iterator<Item = BlockedConnection> + '_ {
        places.filter_map(|place| self.blocked(self.table.entries.key_at(place)?))
    }

    /// Returns the peer's address of the connection `key`, while it has a socket. Makes a system
    /// call.
    pub fn peer_addr(&self, key: Key) -> Option<SocketAddr> {
        self.io.driver.peer_addr(self.table.entries.get(key)?.socket.fd()?)
    }

    /// Returns how many sent bytes of the connection `key` the peer has not acknowledged. Makes a
    /// system call.
    pub fn unacknowledged_bytes(&self, key: Key) -> Option<u64> {
        self.io.driver.unacknowledged_bytes(self.table.entries.get(key)?.socket.fd()?)
    }

    /// Reports whether the connection `key` has a socket.
    pub fn has_socket(&self, key: Key) -> bool {
        self.table.entries.get(key).is_some_and(|entry| entry.socket.fd().is_some())
    }

    /// Returns the connection `key`, if its peer is slow.
    pub fn blocked(&self, key: Key) -> Option<BlockedConnection> {
        let entry = self.table.entries.get(key)?;
        let (SocketState::Blocked(_, queue) | SocketState::Draining(_, queue)) = &entry.socket
        else {
            return None;
        };
        let (pending_bytes, since, taken_at) = (queue.pending_bytes(), queue.since, queue.taken_at);
        Some(BlockedConnection { key, pending_bytes, since, taken_at })
    }
}
