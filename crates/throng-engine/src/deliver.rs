//! Fan-out: frames that many connections share, written to one of them.

use std::ops::Range;

use throng_base::Key;
use throng_driver::{CloseHow, Driver, Errno, Interest, Token};
use throng_pubsub::{Frames, Lane};

use crate::entry::Link;
use crate::pending::{Pending, Queued};
use crate::{App, CloseReason, Desk, settle};

/// What became of frames that were to be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// The kernel has taken all of them.
    Sent,
    /// The peer is slow, and the policy of the topic has had its say. [`Queued::closes`]: the connection has been
    /// closed.
    Queued(Queued),
    /// There is no connection any more, or none yet, or it has failed.
    Gone,
}

impl<D: Driver, A: App<D>> Desk<D, A> {
    /// Writes the frames of `range` to the connection `key`: one call to the kernel when it is quick enough, and a place in
    /// its queue otherwise, as far as `lane` allows. Not for callbacks of a connection, which may have something
    /// of their own to send first.
    pub fn deliver(
        &mut self,
        key: Key,
        frames: &Frames,
        range: Range<usize>,
        lane: &Lane,
    ) -> Delivered {
        let Self { table, shell, .. } = self;
        let Some(entry) = table.0.get_mut(key) else { return Delivered::Gone };
        let bytes_max = shell.limits.pending_bytes_max;
        let queued = match &mut entry.link {
            Link::Open(fd) => {
                let bytes = &frames.bytes()[frames.span(range.clone())];
                let taken = match shell.driver.send(fd, bytes) {
                    Ok(taken) => taken,
                    Err(Errno::AGAIN | Errno::INTR) => 0,
                    Err(errno) => {
                        let reason = CloseReason::Failed(errno);
                        settle::close_now(self, key, reason, CloseHow::Finish);
                        return Delivered::Gone;
                    }
                };
                shell.counters.bytes_sent += taken as u64;
                if taken == bytes.len() {
                    return Delivered::Sent;
                }
                shell.counters.sends_blocked += 1;
                let mut pending = Box::<Pending>::default();
                let queued = pending.push_frames(frames, range, taken, lane, bytes_max);
                if !pending.is_empty() {
                    shell.counters.pending_bytes += pending.bytes() as u64;
                    let token = Token::connection(key);
                    let registered = shell.driver.reregister(fd, token, Interest::ReadWrite);
                    entry.block(pending);
                    if let Err(errno) = registered {
                        let reason = CloseReason::Failed(errno);
                        settle::close_now(self, key, reason, CloseHow::Finish);
                        return Delivered::Gone;
                    }
                }
                queued
            }
            Link::Blocked(_, pending) => {
                shell.counters.pending_bytes -= pending.bytes() as u64;
                let queued = pending.push_frames(frames, range, 0, lane, bytes_max);
                shell.counters.pending_bytes += pending.bytes() as u64;
                queued
            }
            Link::Detached | Link::Connecting(_) | Link::Draining(..) => return Delivered::Gone,
        };
        // Whatever the policy, no frame is queued that there is no room for.
        debug_assert!(!entry.link.overflows(bytes_max), "more than {bytes_max} bytes wait");
        if queued.closes {
            settle::close_now(self, key, CloseReason::Overflow, CloseHow::Reset);
        }
        Delivered::Queued(queued)
    }
}
