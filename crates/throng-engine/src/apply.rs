//! What follows a callback: sends its bytes, applies its actions, and closes connections. Nothing
//! here calls the app; callbacks that follow become effects.

use throng_base::Key;
use throng_driver::{ConnectSpec, Driver, Interest, SocketClose, Token};
use throng_proto::{TransportError, TransportKey, TransportRole};

use crate::actions::Actions;
use crate::entry::SocketState;
use crate::handshake::Handshake;
use crate::io::Effect;
use crate::record_layer::RecordLayer;
use crate::send::SendError;
use crate::send_queue::AfterFlush;
use crate::{App, CloseReason, CoreContext, Deadline};

impl<D: Driver, A: App<D>> CoreContext<D, A> {
    /// Sends the bytes of a callback and applies the actions that it requests.
    pub(crate) fn apply_actions(&mut self, key: Key, actions: Actions) {
        let Some(entry) = self.table.entries.get_mut(key) else {
            self.io.out.clear();
            return;
        };
        if entry.socket.is_draining() {
            self.io.out.clear();
            // The connection is closed already; a reset only makes the close immediate.
            if let Some((reason, SocketClose::Reset)) = actions.close {
                self.close_now(key, reason, SocketClose::Reset);
            }
            return;
        }
        let flushed = match actions.ends_sending() {
            true => entry.flush_and_finish(&mut self.io, key),
            false => entry.flush(&mut self.io, key),
        };
        if let Some(deadline) = actions.deadline {
            entry.deadline = deadline.into();
            self.timers.set(&mut self.table, key, self.io.now);
        } else {
            self.timers.hasten(&mut self.table, key, self.io.now);
        }
        if let Err(errno) = flushed {
            return self.close_drained(key, CloseReason::Failed(errno), SocketClose::Finish);
        }
        let Some(entry) = self.table.entries.get_mut(key) else { return };
        if entry.overflows(actions.queue_was_empty, self.io.limits.pending_bytes_max) {
            self.io.counters.pending_overflows += 1;
            return self.close_drained(key, CloseReason::Overflow, SocketClose::Reset);
        }
        if let Some((reason, how)) = actions.close {
            return self.close_drained(key, reason, how);
        }
        if actions.finish {
            match &mut entry.socket {
                SocketState::Open(fd, _) => {
                    if let Err(errno) = self.io.driver.finish(fd) {
                        let reason = CloseReason::Failed(errno);
                        return self.close_drained(key, reason, SocketClose::Finish);
                    }
                }
                // The queued bytes leave first.
                SocketState::Blocked(_, queue) => queue.after_flush = AfterFlush::Finish,
                _ => {}
            }
        }
        if actions.remove {
            return self.free(key);
        }
        if let Some(spec) = actions.connect {
            self.connect(key, &spec);
        }
    }

    /// Ends a connection whose callback panicked. The bytes that the callback appended are dropped.
    pub(crate) fn close_panicked(&mut self, key: Key) {
        self.io.counters.panics += 1;
        self.io.out.clear();
        self.close_now(key, CloseReason::Panicked, SocketClose::Reset);
    }

    /// Removes an entry from the table. Dropping the app's state may run foreign code, so a panic
    /// there is caught too.
    pub(crate) fn free(&mut self, key: Key) {
        self.timers.cancel(&mut self.table, key);
        let entry = self.table.entries.remove(key);
        self.catch_panic(|| drop(entry));
    }

    /// Sends queued bytes after the socket has room again.
    pub(crate) fn resume(&mut self, key: Key) {
        let Some(entry) = self.table.entries.get_mut(key) else { return };
        let reason = match entry.resume(&mut self.io, key) {
            Ok(None) => {
                return self.timers.hasten_transport(&mut self.table, key, self.io.now);
            }
            Ok(Some(reason)) => reason,
            Err(SendError::Socket(errno)) => CloseReason::Failed(errno),
            Err(SendError::SourcePanic) => return self.close_panicked(key),
        };
        self.close_now(key, reason, SocketClose::Finish);
    }

    /// Closes the connection. A close in order waits until the kernel has taken the queued bytes; a
    /// reset does not wait.
    pub(crate) fn close_drained(&mut self, key: Key, reason: CloseReason, how: SocketClose) {
        let Some(entry) = self.table.entries.get_mut(key) else { return };
        let is_orderly = reason.is_orderly(how);
        // If the peer is gone, the close itself is what is left to do.
        if is_orderly {
            let _ = entry.flush_and_finish(&mut self.io, key);
        }
        match std::mem::replace(&mut entry.socket, SocketState::Detached) {
            SocketState::Blocked(fd, mut queue) if is_orderly => {
                queue.after_flush = AfterFlush::Close(reason);
                entry.socket = SocketState::Draining(fd, queue);
                let until = self.io.now + self.io.limits.drain_timeout;
                entry.deadline = Deadline::Coarse(until).into();
                self.timers.set(&mut self.table, key, self.io.now);
            }
            // The close is under way.
            socket @ SocketState::Draining(..) if is_orderly => entry.socket = socket,
            socket => {
                entry.socket = socket;
                self.close_now(key, reason, how);
            }
        }
    }

    /// Closes the socket at once; [`App::closed`] follows.
    pub(crate) fn close_now(&mut self, key: Key, reason: CloseReason, how: SocketClose) {
        let Some(entry) = self.table.entries.get_mut(key) else { return };
        let pending = entry.socket.pending_bytes() as u64;
        self.io.counters.pending_bytes -= pending;
        self.io.backlog.forget(key);
        entry.has_unread = false;
        entry.is_ready_queued = false;
        entry.peer_finished = false;
        let mut failure_text = None;
        match std::mem::replace(&mut entry.socket, SocketState::Detached) {
            SocketState::Detached => {}
            SocketState::Connecting(fd) | SocketState::Open(fd, RecordLayer { key: None, .. }) => {
                self.io.driver.close(fd, how);
            }
            SocketState::Open(fd, layer) => {
                failure_text = self.forget_transport(key, layer.key, reason);
                self.io.driver.close(fd, how);
            }
            SocketState::Blocked(fd, queue) | SocketState::Draining(fd, queue) => {
                failure_text = self.forget_transport(key, queue.layer.key, reason);
                self.io.driver.close(fd, how);
            }
            SocketState::Opening(fd, handshake) => {
                self.io.transport().handshakes.under_way -= usize::from(handshake.key.is_some());
                self.io.transport().counters.handshake_timeouts +=
                    u64::from(reason == CloseReason::HandshakeTimeout);
                failure_text = self.forget_transport(key, handshake.key, reason);
                self.io.driver.close(fd, how);
            }
        }
        self.timers.cancel(&mut self.table, key);
        // With a new key, no event of this batch reaches the entry through the old socket.
        if let Some(key) = self.table.entries.renew(key) {
            self.io.effects.push_back(Effect::Closed(key, reason));
            if let Some(text) = failure_text {
                self.io.failure_texts.push((key, text));
            }
        }
    }

    /// Forgets the transport of a connection that is being closed. Returns what it says of its
    /// failure.
    fn forget_transport(
        &mut self,
        key: Key,
        transport: Option<TransportKey>,
        reason: CloseReason,
    ) -> Option<Box<str>> {
        let (transport, context) = (transport?, self.io.transport());
        let mut text = None;
        if let CloseReason::TransportFailed(error) = reason {
            context.counters.failures += 1;
            context.counters.record_timeouts += u64::from(error == TransportError::RecordTimeout);
            text = context.transport.failure_text(transport).map(String::into_boxed_str);
        }
        context.forget(key, transport);
        text
    }

    /// Puts a socket that has just been established into its handshake.
    pub(crate) fn begin_handshake(&mut self, key: Key, fd: D::Fd, role: TransportRole) {
        let Some(entry) = self.table.entries.get_mut(key) else { return };
        let deadline = self.io.now + self.io.limits.handshake_timeout;
        let handshake = Box::new(Handshake::new(role, deadline));
        entry.socket = SocketState::Opening(fd, handshake);
        self.timers.set(&mut self.table, key, self.io.now);
    }

    fn connect(&mut self, key: Key, spec: &ConnectSpec) {
        let driver = &mut self.io.driver;
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
                if let Some(entry) = self.table.entries.get_mut(key) {
                    entry.socket = SocketState::Connecting(fd);
                }
            }
            // Earlier effects for this connection name its old key and are dropped. The next
            // callback is `App::closed`.
            Err(errno) => {
                let reason = CloseReason::ConnectFailed(errno);
                self.close_now(key, reason, SocketClose::Finish);
            }
        }
    }
}
