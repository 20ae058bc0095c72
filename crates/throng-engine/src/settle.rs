//! After a callback: what it appended is sent, what it asked for is done. Nothing here calls the app; what the
//! app must hear of becomes an effect.

use throng_base::Key;
use throng_driver::{CloseHow, ConnectSpec, Driver, Errno, Interest, Token};

use crate::conn::Verdict;
use crate::desk::{Desk, Effect, Shell};
use crate::entry::{Deadline, Entry, Link};
use crate::pending::{Pending, SourcePanic, Then};
use crate::{App, CloseReason};

/// Carries out the verdict of a callback on its own connection.
pub(crate) fn settle<D: Driver, A: App<D>>(desk: &mut Desk<D, A>, key: Key, verdict: Verdict) {
    let Some(entry) = desk.table.0.get_mut(key) else {
        desk.shell.out.clear();
        return;
    };
    if entry.link.is_draining() {
        desk.shell.out.clear();
        // It is closed already; the one thing left to ask for is to be quick about it.
        if let Some((reason, CloseHow::Reset)) = verdict.close {
            close_now(desk, key, reason, CloseHow::Reset);
        }
        return;
    }
    let flushed = flush(entry, &mut desk.shell, key);
    if let Some(deadline) = verdict.deadline {
        entry.wanted = deadline.into();
        desk.timers.set(&mut desk.table, key, desk.shell.now);
    } else {
        desk.timers.hasten(&mut desk.table, key, desk.shell.now);
    }
    if let Err(errno) = flushed {
        return close(desk, key, CloseReason::Failed(errno), CloseHow::Finish);
    }
    let Some(entry) = desk.table.0.get_mut(key) else { return };
    if overflows(&mut entry.link, &verdict, desk.shell.limits.pending_bytes_max) {
        desk.shell.counters.pending_overflows += 1;
        return close(desk, key, CloseReason::Overflow, CloseHow::Reset);
    }
    if let Some((reason, how)) = verdict.close {
        return close(desk, key, reason, how);
    }
    if verdict.finish {
        match &mut entry.link {
            Link::Open(fd) => {
                if let Err(errno) = desk.shell.driver.finish(fd) {
                    return close(desk, key, CloseReason::Failed(errno), CloseHow::Finish);
                }
            }
            // What waits leaves first.
            Link::Blocked(_, pending) => pending.then = Then::Finish,
            Link::Detached | Link::Connecting(_) | Link::Draining(..) => {}
        }
    }
    if verdict.leave {
        return free(desk, key);
    }
    if let Some(spec) = verdict.connect {
        connect(desk, key, &spec);
    }
}

/// Whether more waits for the peer than may. Of what one callback adds while nothing waits, eight
/// times as much may: the peer had no chance to read any of it.
pub(crate) fn overflows<F>(link: &mut Link<F>, verdict: &Verdict, bytes_max: usize) -> bool {
    if verdict.was_empty {
        link.excuse(bytes_max);
    }
    link.overflows(bytes_max)
}

/// A callback panicked: its connection ends, and nothing that it appended is sent.
pub(crate) fn panicked<D: Driver, A: App<D>>(desk: &mut Desk<D, A>, key: Key) {
    desk.shell.counters.panics += 1;
    desk.shell.out.clear();
    close_now(desk, key, CloseReason::Panicked, CloseHow::Reset);
}

/// Takes an entry out of the table. Dropping the app's state may run anybody's code, so it is shielded too.
pub(crate) fn free<D: Driver, A: App<D>>(desk: &mut Desk<D, A>, key: Key) {
    desk.timers.cancel(&mut desk.table, key);
    let entry = desk.table.0.remove(key);
    desk.shield(|| drop(entry));
}

/// Sends what is in the core's out buffer; keeps with the connection what the kernel does not take.
pub(crate) fn flush<D: Driver, S, T>(
    entry: &mut Entry<D::Fd, S, T>,
    shell: &mut Shell<D>,
    key: Key,
) -> Result<(), Errno> {
    if shell.out.is_empty() {
        return Ok(());
    }
    let result = match &mut entry.link {
        Link::Open(fd) => match send(shell, fd) {
            Ok(taken) if taken == shell.out.len() => Ok(()),
            Ok(taken) => {
                let mut pending = Box::<Pending>::default();
                pending.push(&shell.out[taken..]);
                shell.counters.sends_blocked += 1;
                shell.counters.pending_bytes += pending.bytes() as u64;
                let registered =
                    shell.driver.reregister(fd, Token::connection(key), Interest::ReadWrite);
                entry.block(pending);
                registered
            }
            Err(errno) => Err(errno),
        },
        Link::Blocked(_, pending) => {
            pending.push(&shell.out);
            shell.counters.pending_bytes += shell.out.len() as u64;
            Ok(())
        }
        // Bytes for a socket that is not there, or is on its way out, are nobody's.
        Link::Detached | Link::Connecting(_) | Link::Draining(..) => Ok(()),
    };
    shell.out.clear();
    if shell.out.capacity() > OUT_KEPT_BYTES {
        shell.out.shrink_to(OUT_KEPT_BYTES);
    }
    result
}

/// Sends the out buffer; says how much the kernel took.
fn send<D: Driver>(shell: &mut Shell<D>, fd: &D::Fd) -> Result<usize, Errno> {
    match shell.driver.send(fd, &shell.out) {
        Ok(taken) => {
            shell.counters.bytes_sent += taken as u64;
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
    shell: &mut Shell<D>,
    key: Key,
    fill: impl FnOnce(&mut Pending),
) -> Result<(), SendError> {
    match &mut entry.link {
        Link::Open(fd) => {
            let mut pending = Box::<Pending>::default();
            pending.push(&shell.out);
            shell.out.clear();
            fill(&mut pending);
            shell.counters.pending_bytes += pending.bytes() as u64;
            let sent = send_pending(fd, shell, &mut pending);
            if sent.is_err() {
                shell.counters.pending_bytes -= pending.bytes() as u64;
            }
            if sent? {
                return Ok(());
            }
            shell.counters.sends_blocked += 1;
            let registered =
                shell.driver.reregister(fd, Token::connection(key), Interest::ReadWrite);
            entry.block(pending);
            registered.map_err(SendError::Socket)
        }
        Link::Blocked(_, pending) => {
            let before = pending.bytes();
            pending.push(&shell.out);
            fill(pending);
            shell.counters.pending_bytes += (pending.bytes() - before) as u64;
            shell.out.clear();
            Ok(())
        }
        Link::Detached | Link::Connecting(_) | Link::Draining(..) => {
            shell.out.clear();
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
    shell: &mut Shell<D>,
    pending: &mut Pending,
) -> Result<bool, SendError> {
    loop {
        let made = pending.make().map_err(|SourcePanic| SendError::SourcePanic)?;
        shell.counters.pending_bytes += made as u64;
        if pending.is_empty() {
            return Ok(true);
        }
        // Nothing that is to be sent is in the out buffer.
        let chunk = pending.chunk(&mut shell.out);
        let (length, sent) = (chunk.len(), shell.driver.send(fd, chunk));
        shell.out.clear();
        match sent {
            Ok(taken) => {
                pending.took(taken);
                if taken > 0 {
                    pending.taken_at = shell.now;
                }
                shell.counters.bytes_sent += taken as u64;
                shell.counters.pending_bytes -= taken as u64;
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
pub(crate) fn resume<D: Driver, A: App<D>>(desk: &mut Desk<D, A>, key: Key) {
    let Some(entry) = desk.table.0.get_mut(key) else { return };
    let shell = &mut desk.shell;
    let (Link::Blocked(fd, pending) | Link::Draining(fd, pending)) = &mut entry.link else {
        return;
    };
    // No callback is under way, so nothing is in the out buffer.
    match send_pending(fd, shell, pending) {
        Ok(true) => {}
        Ok(false) => return,
        Err(SendError::Socket(errno)) => {
            return close_now(desk, key, CloseReason::Failed(errno), CloseHow::Finish);
        }
        Err(SendError::SourcePanic) => return panicked(desk, key),
    }
    match pending.then {
        Then::Close(reason) => return close_now(desk, key, reason, CloseHow::Finish),
        Then::Finish => {
            if let Err(errno) = shell.driver.finish(fd) {
                return close_now(desk, key, CloseReason::Failed(errno), CloseHow::Finish);
            }
        }
        Then::GoOn => {}
    }
    if let Link::Blocked(fd, _) = std::mem::replace(&mut entry.link, Link::Detached) {
        entry.link = Link::Open(fd);
    }
    // What arrived while nothing was read is told by no event.
    if std::mem::take(&mut entry.unread) && !std::mem::replace(&mut entry.queued, true) {
        shell.ready.push_back(key);
    }
    shell.effects.push_back(Effect::Drained(key));
}

/// Ends the connection: in order, once the kernel has taken what waits; by reset, at once.
pub(crate) fn close<D: Driver, A: App<D>>(
    desk: &mut Desk<D, A>,
    key: Key,
    reason: CloseReason,
    how: CloseHow,
) {
    let Some(entry) = desk.table.0.get_mut(key) else { return };
    let waits =
        how == CloseHow::Finish && matches!(reason, CloseReason::Asked | CloseReason::Finished);
    match std::mem::replace(&mut entry.link, Link::Detached) {
        Link::Blocked(fd, mut pending) if waits => {
            pending.then = Then::Close(reason);
            entry.link = Link::Draining(fd, pending);
            let until = desk.shell.now + desk.shell.limits.drain_timeout;
            entry.wanted = Deadline::Coarse(until).into();
            desk.timers.set(&mut desk.table, key, desk.shell.now);
        }
        // It is on its way out.
        link @ Link::Draining(..) if waits => entry.link = link,
        link => {
            entry.link = link;
            close_now(desk, key, reason, how);
        }
    }
}

/// Ends the socket at once; [`App::closed`](crate::App::closed) follows.
pub(crate) fn close_now<D: Driver, A: App<D>>(
    desk: &mut Desk<D, A>,
    key: Key,
    reason: CloseReason,
    how: CloseHow,
) {
    let Some(entry) = desk.table.0.get_mut(key) else { return };
    let pending = entry.link.pending_bytes() as u64;
    desk.shell.counters.pending_bytes -= pending;
    desk.shell.backlog.forget(key);
    entry.unread = false;
    entry.queued = false;
    entry.ended = false;
    entry.wants_arrival = false;
    match std::mem::replace(&mut entry.link, Link::Detached) {
        Link::Detached => {}
        Link::Connecting(fd) | Link::Open(fd) | Link::Blocked(fd, _) | Link::Draining(fd, _) => {
            desk.shell.driver.close(fd, how);
        }
    }
    desk.timers.cancel(&mut desk.table, key);
    // Events of this batch that name the old socket find nothing.
    if let Some(key) = desk.table.0.renew(key) {
        desk.shell.effects.push_back(Effect::Closed(key, reason));
    }
}

fn connect<D: Driver, A: App<D>>(desk: &mut Desk<D, A>, key: Key, spec: &ConnectSpec) {
    let driver = &mut desk.shell.driver;
    let connected = driver.connect(spec).and_then(|fd| {
        match driver.register(&fd, Token::connection(key), Interest::ReadWrite) {
            Ok(()) => Ok(fd),
            Err(errno) => {
                driver.close(fd, CloseHow::Reset);
                Err(errno)
            }
        }
    });
    match connected {
        Ok(fd) => {
            if let Some(entry) = desk.table.0.get_mut(key) {
                entry.link = Link::Connecting(fd);
            }
        }
        // What was asked for before it failed is not done any more: the next to be told is this.
        Err(errno) => {
            let reason = CloseReason::ConnectFailed(errno);
            close_now(desk, key, reason, CloseHow::Finish);
        }
    }
}

/// What the out buffer keeps between callbacks.
pub(crate) const OUT_KEPT_BYTES: usize = 256 << 10;
