//! The lingering close of a connection whose transport has failed.
//!
//! The peer is told why, by an alert, and it may still be sending. Linux answers bytes that were
//! not read before a close, or that arrive after it, by RST, which destroys an alert that the peer
//! has not read. So the alert is followed by FIN, and what the peer sends is discarded until it
//! closes, too, or a limit is reached. Meanwhile the app knows of nothing: [`App::closed`] follows.

use throng_base::Key;
use throng_driver::{Driver, Errno, SocketClose};
use throng_proto::TransportError;

use crate::entry::SocketState;
use crate::record_layer::RecordLayer;
use crate::send::empty_queue;
use crate::send_queue::{AfterFlush, SendQueue};
use crate::{App, CloseReason, Core, CoreContext, Deadline};

impl<D: Driver, A: App<D>> Core<D, A> {
    /// Closes a connection whose transport has failed, after the peer could read why.
    pub(crate) fn close_failed(&mut self, key: Key, error: TransportError) {
        let reason = CloseReason::TransportFailed(error);
        if error.is_answered() && self.cx.begin_linger(key, reason) {
            return self.linger(key);
        }
        self.cx.close_now(key, reason, SocketClose::Finish);
    }

    /// Sends what the kernel did not take, and discards what has arrived.
    pub(crate) fn linger(&mut self, key: Key) {
        let Some(entry) = self.cx.table.entries.get_mut(key) else { return };
        let SocketState::Draining(fd, queue) = &mut entry.socket else { return };
        let AfterFlush::Linger { reason, mut bytes_left } = queue.after_flush else { return };
        let io = &mut self.cx.io;
        let sent = if queue.is_empty() { Ok(false) } else { empty_queue(fd, io, key, queue) };
        if sent == Ok(true) {
            // If the peer is gone, the receive says so.
            let _ = io.driver.finish(fd);
        }
        while sent.is_ok() && bytes_left > 0 {
            match io.driver.recv(fd, &mut self.receive) {
                Ok(0) => break,
                Ok(received) => {
                    io.counters.bytes_received += received as u64;
                    io.budget.spend(received);
                    bytes_left = bytes_left.saturating_sub(received);
                }
                Err(Errno::AGAIN) => {
                    return queue.after_flush = AfterFlush::Linger { reason, bytes_left };
                }
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        if bytes_left == 0 {
            io.transport().counters.linger_limits += 1;
        }
        self.cx.close_now(key, reason, SocketClose::Finish);
    }

    /// Closes a connection whose peer has had the time that a close gives it.
    pub(crate) fn drain_timed_out(&mut self, key: Key) {
        let Some(entry) = self.cx.table.entries.get_mut(key) else { return };
        let SocketState::Draining(_, queue) = &entry.socket else { return };
        if let AfterFlush::Linger { reason, .. } = queue.after_flush {
            self.cx.io.transport().counters.linger_limits += 1;
            return self.cx.close_now(key, reason, SocketClose::Finish);
        }
        self.cx.io.counters.pending_overflows += 1;
        self.cx.close_now(key, CloseReason::Overflow, SocketClose::Reset);
    }
}

impl<D: Driver, A: App<D>> CoreContext<D, A> {
    /// Begins a lingering close. What waits as plaintext is dropped: nothing seals it any more.
    /// Returns false if there is no established connection.
    fn begin_linger(&mut self, key: Key, reason: CloseReason) -> bool {
        let Some(entry) = self.table.entries.get_mut(key) else { return false };
        let io = &mut self.io;
        io.counters.pending_bytes -= entry.socket.pending_bytes() as u64;
        let socket = std::mem::replace(&mut entry.socket, SocketState::Detached);
        let (fd, layer, unsent) = match socket {
            SocketState::Opening(fd, handshake) => {
                let layer = handshake.key.map(RecordLayer::new).unwrap_or_default();
                io.transport().handshakes.under_way -= usize::from(layer.key.is_some());
                (fd, layer, handshake.unsent)
            }
            SocketState::Open(fd, layer) => (fd, layer, Vec::new()),
            SocketState::Blocked(fd, queue) => (fd, queue.layer, queue.sealed),
            other => {
                io.counters.pending_bytes += other.pending_bytes() as u64;
                entry.socket = other;
                return false;
            }
        };
        if unsent.is_empty() {
            let _ = io.driver.finish(&fd);
        }
        let mut queue = SendQueue::behind(unsent);
        let bytes_left = io.limits.linger_bytes_max;
        queue.after_flush = AfterFlush::Linger { reason, bytes_left };
        (queue.layer, queue.since) = (layer, io.now);
        io.counters.pending_bytes += queue.pending_bytes() as u64;
        entry.socket = SocketState::Draining(fd, queue);
        entry.deadline = Deadline::Coarse(io.now + io.limits.linger_timeout).into();
        self.timers.set(&mut self.table, key, self.io.now);
        true
    }
}
