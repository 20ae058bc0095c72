//! After a callback: what it appended is sent, what it asked for is done. Nothing here calls the app; what the
//! app must hear of becomes an effect.

use throng_base::Key;
use throng_driver::{ConnectSpec, Driver, Errno, Interest, SocketClose, Token};

use crate::conn::Actions;
use crate::context::{CoreContext, CoreIo, Effect};
use crate::entry::{Deadline, Entry, SocketState};
use crate::send_queue::{AfterFlush, SendQueue, SourcePanic};
use crate::{App, CloseReason};

/// Carries out the verdict of a callback on its own connection.
pub(crate) fn apply<D: Driver, A: App<D>>(cx: &mut CoreContext<D, A>, key: Key, verdict: Actions) {
    let Some(entry) = cx.table.0.get_mut(key) else {
        cx.io.out.clear();
        return;
    };
    if entry.socket.is_draining() {
        cx.io.out.clear();
        // It is closed already; the one thing left to ask for is to be quick about it.
        if let Some((reason, SocketClose::Reset)) = verdict.close {
            close_now(cx, key, reason, SocketClose::Reset);
        }
        return;
    }
    let flushed = flush(entry, &mut cx.io, key);
    if let Some(deadline) = verdict.deadline {
        entry.deadline = deadline.into();
        cx.timers.set(&mut cx.table, key, cx.io.now);
    } else {
        cx.timers.hasten(&mut cx.table, key, cx.io.now);
    }
    if let Err(errno) = flushed {
        return close(cx, key, CloseReason::Failed(errno), SocketClose::Finish);
    }
    let Some(entry) = cx.table.0.get_mut(key) else { return };
    if overflows(&mut entry.socket, &verdict, cx.io.limits.pending_bytes_max) {
        cx.io.counters.pending_overflows += 1;
        return close(cx, key, CloseReason::Overflow, SocketClose::Reset);
    }
    if let Some((reason, how)) = verdict.close {
        return close(cx, key, reason, how);
    }
    if verdict.finish {
        match &mut entry.socket {
            SocketState::Open(fd) => {
                if let Err(errno) = cx.io.driver.finish(fd) {
                    return close(cx, key, CloseReason::Failed(errno), SocketClose::Finish);
                }
            }
            // What waits leaves first.
            SocketState::Blocked(_, pending) => pending.after_flush = AfterFlush::Finish,
            SocketState::Detached | SocketState::Connecting(_) | SocketState::Draining(..) => {}
        }
    }
    if verdict.remove {
        return free(cx, key);
    }
    if let Some(spec) = verdict.connect {
        connect(cx, key, &spec);
    }
}

/// Whether more waits for the peer than may. Of what one callback adds while nothing waits, eight
/// times as much may: the peer had no chance to read any of it.
pub(crate) fn overflows<F>(link: &mut SocketState<F>, verdict: &Actions, bytes_max: usize) -> bool {
    if verdict.was_empty {
        link.excuse(bytes_max);
    }
    link.overflows(bytes_max)
}

/// A callback panicked: its connection ends, and nothing that it appended is sent.
pub(crate) fn panicked<D: Driver, A: App<D>>(cx: &mut CoreContext<D, A>, key: Key) {
    cx.io.counters.panics += 1;
    cx.io.out.clear();
    close_now(cx, key, CloseReason::Panicked, SocketClose::Reset);
}

/// Takes an entry out of the table. Dropping the app's state may run anybody's code, so it is shielded too.
pub(crate) fn free<D: Driver, A: App<D>>(cx: &mut CoreContext<D, A>, key: Key) {
    cx.timers.cancel(&mut cx.table, key);
    let entry = cx.table.0.remove(key);
    cx.catch_panic(|| drop(entry));
}

/// Sends what is in the core's out buffer; keeps with the connection what the kernel does not take.
pub(crate) fn flush<D: Driver, S, T>(
    entry: &mut Entry<D::Fd, S, T>,
    io: &mut CoreIo<D>,
    key: Key,
) -> Result<(), Errno> {
    if io.out.is_empty() {
        return Ok(());
    }
    let result = match &mut entry.socket {
        SocketState::Open(fd) => match send(io, fd) {
            Ok(taken) if taken == io.out.len() => Ok(()),
            Ok(taken) => {
                let mut pending = Box::<SendQueue>::default();
                pending.push(&io.out[taken..]);
                io.counters.sends_blocked += 1;
                io.counters.pending_bytes += pending.bytes() as u64;
                let registered =
                    io.driver.reregister(fd, Token::connection(key), Interest::ReadWrite);
                entry.block(pending);
                registered
            }
            Err(errno) => Err(errno),
        },
        SocketState::Blocked(_, pending) => {
            pending.push(&io.out);
            io.counters.pending_bytes += io.out.len() as u64;
            Ok(())
        }
        // Bytes for a socket that is not there, or is on its way out, are nobody's.
        SocketState::Detached | SocketState::Connecting(_) | SocketState::Draining(..) => Ok(()),
    };
    io.out.clear();
    if io.out.capacity() > OUT_KEPT_BYTES {
        io.out.shrink_to(OUT_KEPT_BYTES);
    }
    result
}

/// Sends the out buffer; says how much the kernel took.
fn send<D: Driver>(io: &mut CoreIo<D>, fd: &D::Fd) -> Result<usize, Errno> {
    match io.driver.send(fd, &io.out) {
        Ok(taken) => {
            io.counters.bytes_sent += taken as u64;
            Ok(taken)
        }
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(errno) => Err(errno),
    }
}

/// Sends what is in the core's out buffer and then what `fill` adds; keeps with the connection what
/// the kernel does not take.
pub(crate) fn send_behind<D: Driver, S, T>(
    entry: &mut Entry<D::Fd, S, T>,
    io: &mut CoreIo<D>,
    key: Key,
    fill: impl FnOnce(&mut SendQueue),
) -> Result<(), SendError> {
    match &mut entry.socket {
        SocketState::Open(fd) => {
            let mut pending = Box::<SendQueue>::default();
            pending.push(&io.out);
            io.out.clear();
            fill(&mut pending);
            io.counters.pending_bytes += pending.bytes() as u64;
            let sent = send_pending(fd, io, &mut pending);
            if sent.is_err() {
                io.counters.pending_bytes -= pending.bytes() as u64;
            }
            if sent? {
                return Ok(());
            }
            io.counters.sends_blocked += 1;
            let registered = io.driver.reregister(fd, Token::connection(key), Interest::ReadWrite);
            entry.block(pending);
            registered.map_err(SendError::Socket)
        }
        SocketState::Blocked(_, pending) => {
            let before = pending.bytes();
            pending.push(&io.out);
            fill(pending);
            io.counters.pending_bytes += (pending.bytes() - before) as u64;
            io.out.clear();
            Ok(())
        }
        SocketState::Detached | SocketState::Connecting(_) | SocketState::Draining(..) => {
            io.out.clear();
            Ok(())
        }
    }
}

/// Why nothing more can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendError {
    Socket(Errno),
    /// A source has panicked.
    SourcePanic,
}

/// Sends what waits, as far as the kernel takes it. True when nothing is left.
fn send_pending<D: Driver>(
    fd: &D::Fd,
    io: &mut CoreIo<D>,
    pending: &mut SendQueue,
) -> Result<bool, SendError> {
    loop {
        let made = pending.fill_from_source().map_err(|SourcePanic| SendError::SourcePanic)?;
        io.counters.pending_bytes += made as u64;
        if pending.is_empty() {
            return Ok(true);
        }
        // Nothing that is to be sent is in the out buffer.
        let chunk = pending.chunk(&mut io.out);
        let (length, sent) = (chunk.len(), io.driver.send(fd, chunk));
        io.out.clear();
        match sent {
            Ok(taken) => {
                pending.advance(taken);
                if taken > 0 {
                    pending.taken_at = io.now;
                }
                io.counters.bytes_sent += taken as u64;
                io.counters.pending_bytes -= taken as u64;
                if taken < length {
                    return Ok(false);
                }
            }
            Err(Errno::AGAIN) => return Ok(false),
            // Room that was told once is not told again.
            Err(Errno::INTR) => {}
            Err(errno) => return Err(SendError::Socket(errno)),
        }
    }
}

/// The socket has room again: sends what waits.
pub(crate) fn resume<D: Driver, A: App<D>>(cx: &mut CoreContext<D, A>, key: Key) {
    let Some(entry) = cx.table.0.get_mut(key) else { return };
    let io = &mut cx.io;
    let (SocketState::Blocked(fd, pending) | SocketState::Draining(fd, pending)) = &mut entry.socket
    else {
        return;
    };
    // No callback is under way, so nothing is in the out buffer.
    match send_pending(fd, io, pending) {
        Ok(true) => {}
        Ok(false) => return,
        Err(SendError::Socket(errno)) => {
            return close_now(cx, key, CloseReason::Failed(errno), SocketClose::Finish);
        }
        Err(SendError::SourcePanic) => return panicked(cx, key),
    }
    match pending.after_flush {
        AfterFlush::Close(reason) => return close_now(cx, key, reason, SocketClose::Finish),
        AfterFlush::Finish => {
            if let Err(errno) = io.driver.finish(fd) {
                return close_now(cx, key, CloseReason::Failed(errno), SocketClose::Finish);
            }
        }
        AfterFlush::GoOn => {}
    }
    if let SocketState::Blocked(fd, _) = std::mem::replace(&mut entry.socket, SocketState::Detached) {
        entry.socket = SocketState::Open(fd);
    }
    // What arrived while nothing was read is told by no event.
    if std::mem::take(&mut entry.has_unread) && !std::mem::replace(&mut entry.is_ready_queued, true) {
        io.ready.push_back(key);
    }
    io.effects.push_back(Effect::Drained(key));
}

/// Ends the connection: in order, once the kernel has taken what waits; by reset, at once.
pub(crate) fn close<D: Driver, A: App<D>>(
    cx: &mut CoreContext<D, A>,
    key: Key,
    reason: CloseReason,
    how: SocketClose,
) {
    let Some(entry) = cx.table.0.get_mut(key) else { return };
    let waits =
        how == SocketClose::Finish && matches!(reason, CloseReason::Requested | CloseReason::Finished);
    match std::mem::replace(&mut entry.socket, SocketState::Detached) {
        SocketState::Blocked(fd, mut pending) if waits => {
            pending.after_flush = AfterFlush::Close(reason);
            entry.socket = SocketState::Draining(fd, pending);
            let until = cx.io.now + cx.io.limits.drain_timeout;
            entry.deadline = Deadline::Coarse(until).into();
            cx.timers.set(&mut cx.table, key, cx.io.now);
        }
        // It is on its way out.
        link @ SocketState::Draining(..) if waits => entry.socket = link,
        link => {
            entry.socket = link;
            close_now(cx, key, reason, how);
        }
    }
}

/// Ends the socket at once; [`App::closed`](crate::App::closed) follows.
pub(crate) fn close_now<D: Driver, A: App<D>>(
    cx: &mut CoreContext<D, A>,
    key: Key,
    reason: CloseReason,
    how: SocketClose,
) {
    let Some(entry) = cx.table.0.get_mut(key) else { return };
    let pending = entry.socket.pending_bytes() as u64;
    cx.io.counters.pending_bytes -= pending;
    cx.io.backlog.forget(key);
    entry.has_unread = false;
    entry.is_ready_queued = false;
    entry.peer_finished = false;
    entry.wants_arrival = false;
    match std::mem::replace(&mut entry.socket, SocketState::Detached) {
        SocketState::Detached => {}
        SocketState::Connecting(fd)
        | SocketState::Open(fd)
        | SocketState::Blocked(fd, _)
        | SocketState::Draining(fd, _) => {
            cx.io.driver.close(fd, how);
        }
    }
    cx.timers.cancel(&mut cx.table, key);
    // Events of this batch that name the old socket find nothing.
    if let Some(key) = cx.table.0.renew(key) {
        cx.io.effects.push_back(Effect::Closed(key, reason));
    }
}

fn connect<D: Driver, A: App<D>>(cx: &mut CoreContext<D, A>, key: Key, spec: &ConnectSpec) {
    let driver = &mut cx.io.driver;
    let connected = driver.connect(spec).and_then(|fd| {
        match driver.register(&fd, Token::connection(key), Interest::ReadWrite) {
            Ok(()) => Ok(fd),
            Err(errno) => {
                driver.close(fd, SocketClose::Reset);
                Err(errno)
            }
        }
    });
    match connected {
        Ok(fd) => {
            if let Some(entry) = cx.table.0.get_mut(key) {
                entry.socket = SocketState::Connecting(fd);
            }
        }
        // What was asked for before it failed is not done any more: the next to be told is this.
        Err(errno) => {
            let reason = CloseReason::ConnectFailed(errno);
            close_now(cx, key, reason, SocketClose::Finish);
        }
    }
}

/// What the out buffer keeps between callbacks.
pub(crate) const OUT_KEPT_BYTES: usize = 256 << 10;
