//! Accepted connections whose bytes the server does not read.

use std::collections::HashMap;

use throng_base::time::Instant;
use throng_measure::Metric;

use super::KernelSample;
use crate::fact::Fact;
use crate::listener_scope::ListenerScope;
use crate::listeners::ListenerReader;
use crate::socket_count_meter::SocketCountMeter;
use throng_driver::netlink::{Diag, ListenerState};

/// Counts the connections that had unread bytes at the count before, too, and of whose bytes none
/// has been read since.
#[derive(Debug)]
pub(super) struct UnreadMeter {
    meter: SocketCountMeter,
    /// Unread bytes of each connection at the last count, by inode.
    before: Option<HashMap<u32, u32>>,
}

impl UnreadMeter {
    pub(super) fn new(meter: SocketCountMeter) -> Self {
        Self { meter, before: None }
    }

    /// Counts, if it is time for that.
    pub(super) fn sample(
        &mut self,
        out: &mut KernelSample,
        now: Instant,
        sockets: Option<u64>,
        reader: &mut ListenerReader,
        (listeners, scope): (&[ListenerState], &ListenerScope),
    ) {
        if !self.meter.is_due(now, None, sockets) {
            return;
        }
        let began = std::time::Instant::now();
        let mut count = UnreadCount::default();
        let read = reader.accepted(listeners, scope, |connection| count.add(connection));
        self.meter.record(now + began.elapsed(), began.elapsed());
        // Where `sock_diag` is refused, the listeners are unknown for the same reason.
        if let Fact::Known(()) = read {
            self.record(count, out);
        }
    }

    fn record(&mut self, count: UnreadCount, out: &mut KernelSample) {
        out.set(Metric::LISTENER_CLOSE_WAIT, count.close_wait);
        if let Some(before) = &self.before {
            let is_old = |(inode, bytes): &(&u32, &u32)| {
                before.get(inode).is_some_and(|before| *bytes >= before)
            };
            let old = count.unread.iter().filter(is_old).count();
            out.set(Metric::LISTENER_UNREAD, old as u64);
        }
        self.before = Some(count.unread);
    }
}

/// One count.
#[derive(Debug, Default)]
struct UnreadCount {
    unread: HashMap<u32, u32>,
    close_wait: u64,
}

impl UnreadCount {
    fn add(&mut self, connection: &Diag) {
        // The end of the stream is no byte, though the kernel counts it as one.
        let end = u32::from(connection.is_close_wait());
        self.close_wait += u64::from(end);
        let bytes = connection.receive_queue.saturating_sub(end);
        if bytes > 0 {
            self.unread.insert(connection.inode, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(inode: u32, receive_queue: u32, state: u8) -> Diag {
        let addr = "127.0.0.1:5555".parse().unwrap();
        let (local, peer) = (addr, addr);
        Diag {
            state,
            local,
            peer,
            receive_queue,
            send_queue: 0,
            uid: 0,
            inode,
            drops: None,
            v6_only: None,
        }
    }

    #[test]
    fn only_bytes_that_stay_unread_from_count_to_count_are_unread() {
        let mut meter = UnreadMeter::new(SocketCountMeter::new(1));
        let mut count = |connections: &[Diag]| {
            let (mut count, mut out) = (UnreadCount::default(), KernelSample::default());
            connections.iter().for_each(|connection| count.add(connection));
            meter.record(count, &mut out);
            let of = |metric| out.counters.get(metric);
            (of(Metric::LISTENER_UNREAD), of(Metric::LISTENER_CLOSE_WAIT))
        };
        let first = [connection(1, 6, 1), connection(2, 9, 1), connection(3, 0, 1)];
        assert_eq!(count(&first), (None, Some(0)), "there is nothing to compare with");
        // The first client has left; what the second sent was read in between.
        let second = [connection(1, 7, 8), connection(2, 6, 1), connection(3, 1, 8)];
        assert_eq!(count(&second), (Some(1), Some(2)));
        assert_eq!(count(&[connection(4, 6, 1)]), (Some(0), Some(0)), "it is new");
    }
}
