//! Fan-out: frames that many connections share, written to one of them.

use std::ops::Range;

use throng_base::Key;
use throng_driver::{Driver, Errno, Interest, SocketClose, Token};
use throng_pubsub::{Frames, Lane};

use crate::entry::SocketState;
use crate::send_queue::{QueueOutcome, SendQueue};
use crate::{App, CloseReason, CoreContext, apply};

/// What became of frames that were to be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The kernel has taken all of them.
    Sent,
    /// The peer is slow, and the policy of the topic has had its say. [`Queued::closes`]: the connection has been
    /// closed.
    Queued(QueueOutcome),
    /// There is no connection any more, or none yet, or it has failed.
    Gone,
}

impl<D: Driver, A: App<D>> CoreContext<D, A> {
    /// Writes the frames of `range` to the connection `key`: one call to the kernel when it is quick enough, and a place in
    /// its queue otherwise, as far as `lane` allows. Not for callbacks of a connection, which may have something
    /// of their own to send first.
    pub fn deliver(
        &mut self,
        key: Key,
        frames: &Frames,
        range: Range<usize>,
        lane: &Lane,
    ) -> DeliveryOutcome {
        let Self { table, io, .. } = self;
        let Some(entry) = table.0.get_mut(key) else { return DeliveryOutcome::Gone };
        let bytes_max = io.limits.pending_bytes_max;
        let queued = match &mut entry.socket {
            SocketState::Open(fd) => {
                let bytes = &frames.bytes()[frames.span(range.clone())];
                let taken = match io.driver.send(fd, bytes) {
                    Ok(taken) => taken,
                    Err(Errno::AGAIN | Errno::INTR) => 0,
                    Err(errno) => {
                        let reason = CloseReason::Failed(errno);
                        apply::close_now(self, key, reason, SocketClose::Finish);
                        return DeliveryOutcome::Gone;
                    }
                };
                io.counters.bytes_sent += taken as u64;
                if taken == bytes.len() {
                    return DeliveryOutcome::Sent;
                }
                io.counters.sends_blocked += 1;
                let mut pending = Box::<SendQueue>::default();
                let queued = pending.push_frames(frames, range, taken, lane, bytes_max);
                if !pending.is_empty() {
                    io.counters.pending_bytes += pending.bytes() as u64;
                    let token = Token::connection(key);
                    let registered = io.driver.reregister(fd, token, Interest::ReadWrite);
                    entry.block(pending);
                    if let Err(errno) = registered {
                        let reason = CloseReason::Failed(errno);
                        apply::close_now(self, key, reason, SocketClose::Finish);
                        return DeliveryOutcome::Gone;
                    }
                }
                queued
            }
            SocketState::Blocked(_, pending) => {
                io.counters.pending_bytes -= pending.bytes() as u64;
                let queued = pending.push_frames(frames, range, 0, lane, bytes_max);
                io.counters.pending_bytes += pending.bytes() as u64;
                queued
            }
            SocketState::Detached | SocketState::Connecting(_) | SocketState::Draining(..) => {
                return DeliveryOutcome::Gone;
            }
        };
        // Whatever the policy, no frame is queued that there is no room for.
        debug_assert!(!entry.socket.overflows(bytes_max), "more than {bytes_max} bytes wait");
        if queued.closes {
            apply::close_now(self, key, CloseReason::Overflow, SocketClose::Reset);
        }
        DeliveryOutcome::Queued(queued)
    }
}
