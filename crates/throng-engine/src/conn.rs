//! One connection's view of its core, lent to its callbacks.

use std::net::SocketAddr;

use throng_base::{Instant, Key};
use throng_driver::{
    ConnectSpec, CoreId, CoreLink, Driver, MailboxFull, MessagePriority, SocketClose,
};
use throng_proto::TransportStatus;

use crate::actions::Actions;
use crate::arrival::Arrival;
use crate::entry::{Entry, SocketState};
use crate::io::CoreIo;
use crate::send::SendError;
use crate::send_queue::SendQueue;
use crate::{App, ByteSource, CloseReason, Deadline, SendPart};

/// Connection or user, during one of its callbacks.
pub struct Conn<'a, D: Driver, A: App<D>> {
    pub(crate) entry: &'a mut Entry<D::Fd, A::Session, A::State>,
    pub(crate) io: &'a mut CoreIo<D>,
    pub(crate) actions: Actions,
    key: Key,
}

/// Outcome of [`Conn::send_now`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendOutcome {
    /// Bytes that the kernel took now.
    pub taken: usize,
    /// Bytes that wait in this process for a slow peer.
    pub pending: usize,
}

impl<'a, D: Driver, A: App<D>> Conn<'a, D, A> {
    pub(crate) fn new(
        entry: &'a mut Entry<D::Fd, A::Session, A::State>,
        io: &'a mut CoreIo<D>,
        key: Key,
    ) -> Self {
        let queue_was_empty = entry.socket.pending_bytes() == 0;
        Self { entry, io, actions: Actions { queue_was_empty, ..Actions::default() }, key }
    }

    /// Returns the key. A user's key changes with every connection.
    pub fn key(&self) -> Key {
        self.key
    }

    /// Returns the time at which the core began to process the present event.
    pub fn now(&self) -> Instant {
        self.io.now
    }

    /// Reads the clock.
    pub fn clock(&self) -> Instant {
        self.io.driver.now()
    }

    /// Returns when the bytes arrived from which the present event was read, as far as the kernel
    /// says.
    pub fn arrival(&self) -> Arrival {
        self.io.arrival
    }

    /// Returns when the answer to a connect of `dialed_at`, which has just succeeded, reached the
    /// kernel: one round trip later, as the kernel measured it.
    pub fn handshake_arrival(&self, dialed_at: Instant) -> Arrival {
        let rtt = self.entry.socket.fd().and_then(|fd| self.io.driver.handshake_rtt(fd));
        rtt.map(|rtt| dialed_at + rtt).into()
    }

    /// Reports whether the handshake of the core's transport that was completed last resumed an
    /// earlier session: in [`App::opened`], that of this connection.
    pub fn has_resumed(&self) -> bool {
        self.io.transport.as_ref().is_some_and(|context| context.has_resumed)
    }

    /// Takes what the transport says of its failure, beyond the error: in [`App::closed`] after
    /// [`CloseReason::TransportFailed`], if there is more.
    pub fn take_failure_text(&mut self) -> Option<Box<str>> {
        let at = self.io.failure_texts.iter().position(|(of, _)| *of == self.key)?;
        Some(self.io.failure_texts.swap_remove(at).1)
    }

    /// Names the client of the handshake that is about to begin, for transports that tell their
    /// clients apart: in [`App::opening`].
    pub fn set_client(&mut self, client: u64) {
        if let SocketState::Opening(_, handshake) = &mut self.entry.socket {
            handshake.client = client;
        }
    }

    /// Reports whether the peer has ended the connection without the transport's word for it.
    /// Something between may have cut what it sent.
    pub fn is_truncated(&self) -> bool {
        let layer = match &self.entry.socket {
            SocketState::Open(_, layer) => layer,
            SocketState::Blocked(_, queue) => &queue.layer,
            _ => return false,
        };
        let transport = layer.key.zip(self.io.transport.as_ref());
        let status = transport.map(|(key, context)| context.transport.status(key));
        self.entry.peer_finished && status.is_some_and(|it| it != TransportStatus::Finished)
    }

    /// Returns the app's state of this connection.
    pub fn state(&mut self) -> &mut A::State {
        &mut self.entry.state
    }

    /// Returns the protocol session, and the out buffer to which it encodes.
    pub fn session(&mut self) -> (&mut A::Session, &mut Vec<u8>) {
        (&mut self.entry.session, &mut self.io.out)
    }

    /// Returns the app's state, the protocol session and the out buffer at once.
    pub fn parts(&mut self) -> (&mut A::State, &mut A::Session, &mut Vec<u8>) {
        (&mut self.entry.state, &mut self.entry.session, &mut self.io.out)
    }

    /// Sends `bytes` after the callback returns. All bytes of a callback leave in one call.
    pub fn send(&mut self, bytes: &[u8]) {
        self.io.out.extend_from_slice(bytes);
    }

    /// Returns the out buffer, which is sent after the callback returns. Only append to it.
    pub fn out(&mut self) -> &mut Vec<u8> {
        &mut self.io.out
    }

    /// Sends the out buffer and `bytes` now. Returns how many bytes the kernel took.
    pub fn send_now(&mut self, bytes: &[u8]) -> SendOutcome {
        self.io.out.extend_from_slice(bytes);
        let given = self.entry.socket.pending_bytes() + self.io.out.len();
        if let Err(errno) = self.entry.flush(self.io, self.key) {
            self.actions.close.get_or_insert((CloseReason::Failed(errno), SocketClose::Finish));
            return SendOutcome { taken: 0, pending: self.entry.socket.pending_bytes() };
        }
        let pending = self.entry.socket.pending_bytes();
        // Records are a little longer than what they hold.
        let taken = if self.is_open() { given.saturating_sub(pending) } else { 0 };
        SendOutcome { taken, pending }
    }

    /// Sends `parts` now, after the out buffer. The queue of a slow peer holds a pointer to a
    /// shared part, not a copy.
    pub fn send_parts(&mut self, parts: &[SendPart<'_>]) {
        self.send_queued(|queue| queue.push_parts(parts));
    }

    /// Sends the bytes that `source` makes, after the out buffer: as many as the kernel takes now,
    /// and the rest as it takes more. Later sends follow them.
    pub fn send_source(&mut self, source: Box<dyn ByteSource>) {
        self.send_queued(|queue| queue.push_source(source));
    }

    fn send_queued(&mut self, fill: impl FnOnce(&mut SendQueue)) {
        let close = match self.entry.send_queued(self.io, self.key, fill) {
            Ok(()) => return,
            Err(SendError::Socket(errno)) => (CloseReason::Failed(errno), SocketClose::Finish),
            Err(SendError::SourcePanic) => {
                self.io.counters.panics += 1;
                (CloseReason::Panicked, SocketClose::Reset)
            }
        };
        self.actions.close.get_or_insert(close);
    }

    /// Reports whether sent bytes wait for a slow peer.
    pub fn is_blocked(&self) -> bool {
        matches!(self.entry.socket, SocketState::Blocked(..))
    }

    /// Reports whether the connection is established.
    pub fn is_open(&self) -> bool {
        self.entry.socket.is_live()
    }

    /// Reports whether there is no socket.
    pub fn is_detached(&self) -> bool {
        matches!(self.entry.socket, SocketState::Detached)
    }

    /// Returns the socket, for inspection.
    pub fn fd(&self) -> Option<&D::Fd> {
        self.entry.socket.fd()
    }

    /// Returns the driver.
    pub fn driver(&mut self) -> &mut D {
        &mut self.io.driver
    }

    /// Returns the number of this core.
    pub fn core(&self) -> CoreId {
        self.io.driver.link().core()
    }

    /// Returns how many bytes wait until the kernel takes them.
    pub fn pending_bytes(&self) -> usize {
        self.entry.socket.pending_bytes()
    }

    /// Returns when the kernel last took some of the queued bytes; [`Instant::ZERO`] if it has
    /// taken none, or none wait.
    pub fn taken_at(&self) -> Instant {
        match &self.entry.socket {
            SocketState::Blocked(_, queue) | SocketState::Draining(_, queue) => queue.taken_at,
            _ => Instant::ZERO,
        }
    }

    /// Returns the peer's address, while there is a socket.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.io.driver.peer_addr(self.entry.socket.fd()?)
    }

    /// Returns the local address, while there is a socket.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.io.driver.local_addr(self.entry.socket.fd()?)
    }

    /// Connects after the callback returns; [`App::opened`] or [`App::closed`] follows.
    pub fn connect(&mut self, spec: ConnectSpec) {
        debug_assert!(
            matches!(self.entry.socket, SocketState::Detached),
            "there is a socket already"
        );
        self.actions.connect = Some(spec);
    }

    /// Closes in order after the callback returns and the kernel has taken all bytes;
    /// [`App::closed`] follows.
    pub fn close(&mut self) {
        self.actions.close = Some((CloseReason::Requested, SocketClose::Finish));
    }

    /// Closes by RST after the callback returns.
    pub fn reset(&mut self) {
        self.actions.close = Some((CloseReason::Requested, SocketClose::Reset));
    }

    /// Closes in order, with a reason that the app chooses.
    pub fn close_because(&mut self, reason: CloseReason) {
        self.actions.close = Some((reason, SocketClose::Finish));
    }

    /// Shuts down the sending direction after the callback returns and the kernel has taken all
    /// bytes.
    pub fn finish(&mut self) {
        self.actions.finish = true;
    }

    /// Removes an entry without a socket from the table after the callback returns. No further
    /// callback follows.
    pub fn remove(&mut self) {
        debug_assert!(self.is_detached(), "close an entry that has a socket before its removal");
        self.actions.remove = true;
    }

    /// Sets the time of the next [`App::deadline`]. Replaces the previous deadline.
    pub fn set_deadline(&mut self, deadline: Deadline) {
        self.actions.deadline = Some(deadline);
    }

    /// Puts `message` into the mailbox of the core `to`.
    ///
    /// # Errors
    /// A full mailbox refuses a bulk message: the message comes back, and is counted.
    pub fn send_message(
        &mut self,
        to: CoreId,
        message: D::Message,
        priority: MessagePriority,
    ) -> Result<(), MailboxFull<D::Message>> {
        self.io.send_message(to, message, priority)
    }
}
