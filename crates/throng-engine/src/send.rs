//! Sending: bytes go to the kernel at once, or wait in the entry's queue for a slow peer.

use throng_base::Key;
use throng_driver::{Errno, Interest, Sockets, Token};
use throng_measure::CoreCounters;

use crate::CloseReason;
use crate::entry::{Entry, SocketState};
use crate::io::{CoreIo, Effect, OUT_KEPT_BYTES};
use crate::send_queue::{AfterFlush, SendQueue, SourcePanic};

/// Error that ends the sending of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendError {
    Socket(Errno),
    /// A byte source panicked.
    SourcePanic,
}

impl<F, S, T> Entry<F, S, T> {
    /// Sends the core's out buffer and clears it. Bytes that the kernel does not take join the
    /// queue.
    pub(crate) fn flush<D: Sockets<Fd = F>>(
        &mut self,
        io: &mut CoreIo<D>,
        key: Key,
    ) -> Result<(), Errno> {
        if io.out.is_empty() {
            return Ok(());
        }
        let result = match &mut self.socket {
            SocketState::Open(fd) => match send(&mut io.driver, &mut io.counters, fd, &io.out) {
                Ok(taken) if taken == io.out.len() => {
                    io.count_sent(key, taken);
                    Ok(())
                }
                Ok(taken) => {
                    io.count_sent(key, taken);
                    let mut queue = Box::<SendQueue>::default();
                    queue.push(&io.out[taken..]);
                    self.block(io, key, queue)
                }
                Err(errno) => Err(errno),
            },
            SocketState::Blocked(_, queue) => {
                queue.push(&io.out);
                io.counters.pending_bytes += io.out.len() as u64;
                Ok(())
            }
            // Without an established socket, or after a close, the bytes are dropped.
            SocketState::Detached | SocketState::Connecting(_) | SocketState::Draining(..) => {
                Ok(())
            }
        };
        io.out.clear();
        if io.out.capacity() > OUT_KEPT_BYTES {
            io.out.shrink_to(OUT_KEPT_BYTES);
        }
        result
    }

    /// Sends the core's out buffer, then the parts that `fill` adds to the queue. Bytes that the
    /// kernel does not take stay in the queue.
    pub(crate) fn send_queued<D: Sockets<Fd = F>>(
        &mut self,
        io: &mut CoreIo<D>,
        key: Key,
        fill: impl FnOnce(&mut SendQueue),
    ) -> Result<(), SendError> {
        match &mut self.socket {
            SocketState::Open(fd) => {
                let mut queue = Box::<SendQueue>::default();
                queue.push(&io.out);
                io.out.clear();
                fill(&mut queue);
                io.counters.pending_bytes += queue.bytes() as u64;
                let is_drained = empty_queue(fd, io, key, &mut queue);
                io.counters.pending_bytes -= queue.bytes() as u64;
                if is_drained? {
                    return Ok(());
                }
                io.counters.sends_blocked += 1;
                self.block(io, key, queue).map_err(SendError::Socket)
            }
            SocketState::Blocked(_, queue) => {
                let before = queue.bytes();
                queue.push(&io.out);
                fill(queue);
                io.counters.pending_bytes += (queue.bytes() - before) as u64;
                io.out.clear();
                Ok(())
            }
            SocketState::Detached | SocketState::Connecting(_) | SocketState::Draining(..) => {
                io.out.clear();
                Ok(())
            }
        }
    }

    /// Sends queued bytes after the socket has room again. Returns the reason to close with if the
    /// app has closed the connection and nothing waits any more.
    pub(crate) fn resume<D: Sockets<Fd = F>>(
        &mut self,
        io: &mut CoreIo<D>,
        key: Key,
    ) -> Result<Option<CloseReason>, SendError> {
        let (SocketState::Blocked(fd, queue) | SocketState::Draining(fd, queue)) = &mut self.socket
        else {
            return Ok(None);
        };
        // No callback is under way, so the out buffer is empty.
        if !empty_queue(fd, io, key, queue)? {
            return Ok(None);
        }
        match queue.after_flush {
            AfterFlush::Close(reason) => return Ok(Some(reason)),
            AfterFlush::Finish => io.driver.finish(fd).map_err(SendError::Socket)?,
            AfterFlush::GoOn => {}
        }
        if let SocketState::Blocked(fd, _) =
            std::mem::replace(&mut self.socket, SocketState::Detached)
        {
            self.socket = SocketState::Open(fd);
        }
        // No event reports bytes that arrived while the core did not read.
        if std::mem::take(&mut self.has_unread)
            && !std::mem::replace(&mut self.is_ready_queued, true)
        {
            io.ready.push_back(key);
        }
        io.effects.push_back(Effect::Drained(key));
        Ok(None)
    }

    /// Marks the open socket as blocked: `queue` holds the bytes that the kernel did not take, and
    /// the driver reports when the socket has room again.
    pub(crate) fn block<D: Sockets<Fd = F>>(
        &mut self,
        io: &mut CoreIo<D>,
        key: Key,
        mut queue: Box<SendQueue>,
    ) -> Result<(), Errno> {
        let SocketState::Open(fd) = std::mem::replace(&mut self.socket, SocketState::Detached)
        else {
            unreachable!("only an open socket becomes blocked");
        };
        queue.since = io.now;
        io.counters.pending_bytes += queue.bytes() as u64;
        let registered = io.driver.reregister(&fd, Token::connection(key), Interest::ReadWrite);
        self.socket = SocketState::Blocked(fd, queue);
        registered
    }
}

/// Sends `bytes` by one call, counts it, and returns how many bytes the kernel took.
pub(crate) fn send<D: Sockets>(
    driver: &mut D,
    counters: &mut CoreCounters,
    fd: &D::Fd,
    bytes: &[u8],
) -> Result<usize, Errno> {
    let taken = match driver.send(fd, bytes) {
        Ok(taken) => taken,
        Err(Errno::AGAIN | Errno::INTR) => 0,
        Err(errno) => return Err(errno),
    };
    counters.bytes_sent += taken as u64;
    counters.sends_blocked += u64::from(taken < bytes.len());
    Ok(taken)
}

/// Sends queued bytes until the kernel takes no more. Returns true when the queue is empty.
fn empty_queue<D: Sockets>(
    fd: &D::Fd,
    io: &mut CoreIo<D>,
    key: Key,
    queue: &mut SendQueue,
) -> Result<bool, SendError> {
    loop {
        let made = queue.fill_from_source().map_err(|SourcePanic| SendError::SourcePanic)?;
        io.counters.pending_bytes += made as u64;
        if queue.is_empty() {
            return Ok(true);
        }
        // The out buffer is empty here, so it can join small segments.
        let chunk = queue.chunk(&mut io.out);
        let (length, sent) = (chunk.len(), io.driver.send(fd, chunk));
        io.out.clear();
        match sent {
            Ok(taken) => {
                queue.advance(taken);
                if taken > 0 {
                    queue.taken_at = io.now;
                }
                io.counters.bytes_sent += taken as u64;
                io.counters.pending_bytes -= taken as u64;
                io.count_sent(key, taken);
                if taken < length {
                    return Ok(false);
                }
            }
            Err(Errno::AGAIN) => return Ok(false),
            // The driver reports room only once, so try again now.
            Err(Errno::INTR) => {}
            Err(errno) => return Err(SendError::Socket(errno)),
        }
    }
}
