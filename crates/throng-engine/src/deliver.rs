//! Fan-out: the delivery of shared frames to one connection.

use std::ops::Range;

use throng_base::Key;
use throng_driver::{Driver, Errno, SocketClose, Sockets};
use throng_pubsub::{Frames, Lane};

use crate::entry::{Entry, SocketState};
use crate::io::CoreIo;
use crate::send::send;
use crate::send_queue::{QueueOutcome, SendQueue};
use crate::{App, CloseReason, CoreContext};

/// Outcome of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The kernel has taken all frames.
    Sent,
    /// The peer is slow; the topic's policy decided what is queued and what is dropped. If
    /// [`QueueOutcome::closes`] is set, the connection has been closed.
    Queued(QueueOutcome),
    /// The entry has no established connection, or the send failed.
    Gone,
}

impl<D: Driver, A: App<D>> CoreContext<D, A> {
    /// Sends the frames of `range` to the connection `key`: by one system call if the peer is fast
    /// enough, else through its queue, as far as `lane` allows. Do not call it inside a
    /// connection's callback, which may have bytes of its own to send first.
    pub fn deliver(
        &mut self,
        key: Key,
        frames: &Frames,
        range: Range<usize>,
        lane: &Lane,
    ) -> DeliveryOutcome {
        let Some(entry) = self.table.entries.get_mut(key) else { return DeliveryOutcome::Gone };
        match entry.deliver(&mut self.io, key, frames, range, lane) {
            Ok(outcome) => {
                if matches!(outcome, DeliveryOutcome::Queued(queued) if queued.closes) {
                    self.close_now(key, CloseReason::Overflow, SocketClose::Reset);
                }
                outcome
            }
            Err(errno) => {
                self.close_now(key, CloseReason::Failed(errno), SocketClose::Finish);
                DeliveryOutcome::Gone
            }
        }
    }
}

impl<F, S, T> Entry<F, S, T> {
    fn deliver<D: Sockets<Fd = F>>(
        &mut self,
        io: &mut CoreIo<D>,
        key: Key,
        frames: &Frames,
        range: Range<usize>,
        lane: &Lane,
    ) -> Result<DeliveryOutcome, Errno> {
        let bytes_max = io.limits.pending_bytes_max;
        let queued = match &mut self.socket {
            SocketState::Open(fd, layer) => {
                let bytes = &frames.bytes()[frames.span(range.clone())];
                let (taken, sealed) = match layer.key {
                    None => {
                        let taken = send(&mut io.driver, &mut io.counters, fd, bytes)?;
                        io.count_sent(key, taken);
                        (taken, Vec::new())
                    }
                    Some(transport) => io.send_sealed(key, fd, transport, bytes)?,
                };
                if taken == bytes.len() && sealed.is_empty() {
                    return Ok(DeliveryOutcome::Sent);
                }
                let mut queue = SendQueue::behind(sealed);
                let queued = queue.push_frames(frames, range, taken, lane, bytes_max);
                if !queue.is_empty() {
                    self.block(io, key, queue)?;
                }
                queued
            }
            SocketState::Blocked(_, queue) => {
                io.counters.pending_bytes -= queue.pending_bytes() as u64;
                let queued = queue.push_frames(frames, range, 0, lane, bytes_max);
                io.counters.pending_bytes += queue.pending_bytes() as u64;
                queued
            }
            _ => return Ok(DeliveryOutcome::Gone),
        };
        // No policy queues a frame for which there is no room.
        debug_assert!(!self.overflows(false, bytes_max), "more than {bytes_max} bytes wait");
        Ok(DeliveryOutcome::Queued(queued))
    }
}
