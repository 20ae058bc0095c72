//! Sending: bytes go to the kernel at once, or wait in the entry's queue for a slow peer.

use throng_base::Key;
use throng_driver::{Errno, Interest, Sockets, Token};
use throng_measure::CoreCounters;
use throng_proto::TransportKey;

use crate::CloseReason;
use crate::entry::{Entry, SocketState};
use crate::io::{CoreIo, Effect, OUT_KEPT_BYTES};
use crate::record_layer::RecordLayer;
use crate::send_queue::{AfterFlush, SendQueue, SourcePanic};
use crate::transport::{PIECE_BYTES_MAX, TransportContext};

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
            SocketState::Open(fd, RecordLayer { key: Some(transport), .. }) => {
                let out = std::mem::take(&mut io.out);
                let sent = io.send_sealed(key, fd, *transport, &out);
                let result =
                    sent.and_then(|(done, sealed)| self.block_rest(io, key, sealed, &out[done..]));
                io.out = out;
                result
            }
            SocketState::Open(fd, _) => match send(&mut io.driver, &mut io.counters, fd, &io.out) {
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
            // Without an open connection, or after a close, the bytes are dropped.
            _ => Ok(()),
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
            SocketState::Open(fd, layer) => {
                let mut queue = Box::<SendQueue>::default();
                queue.layer = *layer;
                queue.push(&io.out);
                io.out.clear();
                fill(&mut queue);
                io.counters.pending_bytes += queue.pending_bytes() as u64;
                let is_drained = empty_queue(fd, io, key, &mut queue);
                io.counters.pending_bytes -= queue.pending_bytes() as u64;
                if is_drained? {
                    return Ok(());
                }
                io.counters.sends_blocked += 1;
                self.block(io, key, queue).map_err(SendError::Socket)
            }
            SocketState::Blocked(_, queue) => {
                let before = queue.pending_bytes();
                queue.push(&io.out);
                fill(queue);
                io.counters.pending_bytes += (queue.pending_bytes() - before) as u64;
                io.out.clear();
                Ok(())
            }
            _ => {
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
        if let (Some(transport), AfterFlush::Close(_) | AfterFlush::Finish) =
            (queue.layer.key, queue.after_flush)
        {
            io.transport().transport.finish(transport, &mut queue.sealed);
            io.counters.pending_bytes += queue.sealed.len() as u64;
            if !empty_queue(fd, io, key, queue)? {
                return Ok(None);
            }
        }
        match queue.after_flush {
            AfterFlush::Close(reason) => return Ok(Some(reason)),
            AfterFlush::Finish => io.driver.finish(fd).map_err(SendError::Socket)?,
            AfterFlush::GoOn | AfterFlush::Linger { .. } => {}
        }
        if let SocketState::Blocked(fd, queue) =
            std::mem::replace(&mut self.socket, SocketState::Detached)
        {
            self.socket = SocketState::Open(fd, queue.layer);
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
        let socket = std::mem::replace(&mut self.socket, SocketState::Detached);
        let SocketState::Open(fd, layer) = socket else {
            unreachable!("only an open socket becomes blocked");
        };
        queue.layer = layer;
        queue.since = io.now;
        io.counters.pending_bytes += queue.pending_bytes() as u64;
        let registered = io.driver.reregister(&fd, Token::connection(key), Interest::ReadWrite);
        self.socket = SocketState::Blocked(fd, queue);
        registered
    }

    /// Blocks the open socket if something is left: `sealed`, then `plain`.
    fn block_rest<D: Sockets<Fd = F>>(
        &mut self,
        io: &mut CoreIo<D>,
        key: Key,
        sealed: Vec<u8>,
        plain: &[u8],
    ) -> Result<(), Errno> {
        if sealed.is_empty() {
            debug_assert!(plain.is_empty(), "the kernel takes more");
            return Ok(());
        }
        let mut queue = SendQueue::behind(sealed);
        queue.push(plain);
        self.block(io, key, queue)
    }

    /// Sends the transport's own answers, which are in its out buffer: behind what is sealed
    /// already, and before what waits as plaintext.
    pub(crate) fn send_answers<D: Sockets<Fd = F>>(
        &mut self,
        io: &mut CoreIo<D>,
        key: Key,
    ) -> Result<(), Errno> {
        match &mut self.socket {
            SocketState::Open(fd, _) => {
                let unsent = io.send_records(key, fd)?;
                self.block_rest(io, key, unsent, &[])
            }
            SocketState::Blocked(_, queue) => {
                let answers = &mut io.transport().sealed;
                let count = answers.len();
                queue.sealed.append(answers);
                io.counters.pending_bytes += count as u64;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Flushes, and ends the sending direction of an open connection's transport: by one call if
    /// the bytes are few, so that the peer has the end when it has the last message. A plain
    /// connection has no such end, and bytes that wait are sent before it.
    pub(crate) fn flush_and_finish<D: Sockets<Fd = F>>(
        &mut self,
        io: &mut CoreIo<D>,
        key: Key,
    ) -> Result<(), Errno> {
        if io.out.len() > PIECE_BYTES_MAX {
            self.flush(io, key)?;
        }
        let SocketState::Open(_, RecordLayer { key: Some(transport), .. }) = self.socket else {
            return self.flush(io, key);
        };
        let out = std::mem::take(&mut io.out);
        let TransportContext { transport: records, sealed, .. } = io.transport();
        sealed.clear();
        if !out.is_empty() {
            records.seal(transport, &out, sealed);
        }
        records.finish(transport, sealed);
        io.out = out;
        io.out.clear();
        self.send_answers(io, key)
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
pub(crate) fn empty_queue<D: Sockets>(
    fd: &D::Fd,
    io: &mut CoreIo<D>,
    key: Key,
    queue: &mut SendQueue,
) -> Result<bool, SendError> {
    loop {
        if queue.sealed.is_empty() {
            let made = queue.fill_from_source().map_err(|SourcePanic| SendError::SourcePanic)?;
            io.counters.pending_bytes += made as u64;
            if queue.is_empty() {
                return Ok(true);
            }
            if let Some(transport) = queue.layer.key {
                seal_next(io, transport, queue);
            }
        }
        if !send_front(fd, io, key, queue).map_err(SendError::Socket)? {
            return Ok(false);
        }
    }
}

/// Seals the next piece of the queue.
fn seal_next<D: Sockets>(io: &mut CoreIo<D>, transport: TransportKey, queue: &mut SendQueue) {
    let mut scratch = std::mem::take(&mut io.out);
    let chunk = queue.chunk(&mut scratch);
    let piece = &chunk[..chunk.len().min(PIECE_BYTES_MAX)];
    let (length, mut sealed) = (piece.len(), std::mem::take(&mut io.transport().sealed));
    sealed.clear();
    io.transport().transport.seal(transport, piece, &mut sealed);
    scratch.clear();
    io.out = scratch;
    io.counters.pending_bytes += sealed.len() as u64;
    io.counters.pending_bytes -= length as u64;
    queue.sealed = sealed;
    queue.advance(length);
}

/// Sends the bytes at the front of the queue by one call. Returns true if the kernel took them all.
fn send_front<D: Sockets>(
    fd: &D::Fd,
    io: &mut CoreIo<D>,
    key: Key,
    queue: &mut SendQueue,
) -> Result<bool, Errno> {
    loop {
        // Over a transport, only what is sealed leaves. The out buffer is empty here, so small
        // segments can be joined there.
        let bytes = match queue.layer.key {
            Some(_) => &queue.sealed[..],
            None => queue.chunk(&mut io.out),
        };
        let (length, sent) = (bytes.len(), io.driver.send(fd, bytes));
        io.out.clear();
        let taken = match sent {
            Ok(taken) => taken,
            Err(Errno::AGAIN) => return Ok(false),
            // The driver reports room only once, so try again now.
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno),
        };
        if taken > 0 {
            queue.taken_at = io.now;
        }
        io.counters.bytes_sent += taken as u64;
        io.counters.pending_bytes -= taken as u64;
        io.count_sent(key, taken);
        if queue.layer.key.is_none() {
            queue.advance(taken);
        } else if taken < length {
            // It waits: it takes no more memory than it needs.
            queue.sealed = queue.sealed[taken..].to_vec();
        } else {
            queue.sealed.clear();
            io.transport().sealed = std::mem::take(&mut queue.sealed);
        }
        return Ok(taken == length);
    }
}
