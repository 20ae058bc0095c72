//! What a callback may do for its own connection.

use std::net::SocketAddr;

use throng_base::{Instant, Key};
use throng_driver::{ConnectSpec, CoreId, Driver, MailboxFull, MessagePriority, SocketClose};

use crate::apply::{self, SendError};
use crate::arrival::Arrival;
use crate::context::CoreIo;
use crate::entry::{Entry, SocketState};
use crate::send_queue::SendQueue;
use crate::{App, ByteSource, CloseReason, Deadline, SendPart};

/// One connection or user, during one of its callbacks.
pub struct Conn<'a, D: Driver, A: App<D>> {
    pub(crate) entry: &'a mut Entry<D::Fd, A::Session, A::State>,
    pub(crate) io: &'a mut CoreIo<D>,
    pub(crate) actions: Actions,
    key: Key,
}

/// What a callback asked for its own connection.
#[derive(Default)]
pub(crate) struct Actions {
    pub(crate) close: Option<(CloseReason, SocketClose)>,
    pub(crate) finish: bool,
    pub(crate) connect: Option<ConnectSpec>,
    pub(crate) deadline: Option<Deadline>,
    pub(crate) remove: bool,
    /// Nothing waited for the peer when the callback began.
    pub(crate) was_empty: bool,
}

/// What became of bytes that were sent.
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
        let was_empty = entry.socket.pending_bytes() == 0;
        Self { entry, io, actions: Actions { was_empty, ..Actions::default() }, key }
    }

    /// Its key. A user's key changes with every connection.
    pub fn key(&self) -> Key {
        self.key
    }

    /// The time at which the present event was taken up.
    pub fn now(&self) -> Instant {
        self.io.now
    }

    /// The time at this very moment.
    pub fn clock(&self) -> Instant {
        self.io.driver.now()
    }

    /// Returns what the kernel said of the bytes that the present event was read from.
    pub fn arrival(&self) -> Arrival {
        self.io.arrival
    }

    /// Asks the kernel from now on, or no longer, when bytes arrive. The socket must have been opened with
    /// [`SocketOptions::arrival_stamps`](throng_driver::SocketOptions::arrival_stamps).
    pub fn want_arrival(&mut self, wanted: bool) {
        self.entry.wants_arrival = wanted;
    }

    /// Returns when the answer to a connect of `dialed_at`, which has just succeeded, reached the kernel:
    /// a round trip later, as the kernel has measured it.
    pub fn handshake_arrival(&mut self, dialed_at: Instant) -> Arrival {
        let Some(weight) = self.io.sampler.next_weight() else { return Arrival::NotSampled };
        let rtt = self.entry.socket.fd().and_then(|fd| self.io.driver.handshake_rtt(fd));
        rtt.map_or(Arrival::Unknown { weight }, |rtt| Arrival::Stamped {
            at: dialed_at + rtt,
            weight,
        })
    }

    /// What the app keeps for it.
    pub fn state(&mut self) -> &mut A::State {
        &mut self.entry.state
    }

    /// Its protocol, and the buffer that takes what the protocol encodes.
    pub fn session(&mut self) -> (&mut A::Session, &mut Vec<u8>) {
        (&mut self.entry.session, &mut self.io.out)
    }

    /// Sends `bytes` once the callback has returned, all of the callback's bytes in one call.
    pub fn send(&mut self, bytes: &[u8]) {
        self.io.out.extend_from_slice(bytes);
    }

    /// The buffer of what is sent once the callback has returned; append only.
    pub fn out(&mut self) -> &mut Vec<u8> {
        &mut self.io.out
    }

    /// Sends `bytes`, and everything appended before, now, and says how many bytes the kernel has really taken.
    pub fn send_now(&mut self, bytes: &[u8]) -> SendOutcome {
        self.io.out.extend_from_slice(bytes);
        let before = self.io.counters.bytes_sent;
        if let Err(errno) = apply::flush(self.entry, self.io, self.key) {
            self.actions.close.get_or_insert((CloseReason::Failed(errno), SocketClose::Finish));
        }
        SendOutcome {
            taken: (self.io.counters.bytes_sent - before) as usize,
            pending: self.entry.socket.pending_bytes(),
        }
    }

    /// Sends `parts` now, behind everything appended before. Of a shared part a slow peer's queue
    /// holds a pointer.
    pub fn send_parts(&mut self, parts: &[SendPart<'_>]) {
        self.send_behind(|pending| pending.push_parts(parts));
    }

    /// Sends what `source` makes, behind everything appended before: as much as the kernel takes
    /// now, and the rest as it takes more. What is sent later is behind it.
    pub fn send_source(&mut self, source: Box<dyn ByteSource>) {
        self.send_behind(|pending| pending.push_source(source));
    }

    fn send_behind(&mut self, fill: impl FnOnce(&mut SendQueue)) {
        let close = match apply::send_behind(self.entry, self.io, self.key, fill) {
            Ok(()) => return,
            Err(SendError::Socket(errno)) => (CloseReason::Failed(errno), SocketClose::Finish),
            Err(SendError::SourcePanic) => {
                self.io.counters.panics += 1;
                (CloseReason::Panicked, SocketClose::Reset)
            }
        };
        self.actions.close.get_or_insert(close);
    }

    /// Whether bytes wait for the peer to take what was sent before.
    pub fn is_blocked(&self) -> bool {
        matches!(self.entry.socket, SocketState::Blocked(..))
    }

    /// Whether it has an established socket.
    pub fn is_open(&self) -> bool {
        self.entry.socket.is_live()
    }

    /// Whether it has no socket.
    pub fn is_detached(&self) -> bool {
        matches!(self.entry.socket, SocketState::Detached)
    }

    /// The socket, to look at.
    pub fn fd(&self) -> Option<&D::Fd> {
        self.entry.socket.fd()
    }

    /// The world below.
    pub fn driver(&mut self) -> &mut D {
        &mut self.io.driver
    }

    /// Which core this is.
    pub fn core(&self) -> CoreId {
        self.io.driver.core()
    }

    /// Bytes that wait for the kernel to take them.
    pub fn pending_bytes(&self) -> usize {
        self.entry.socket.pending_bytes()
    }

    /// When the kernel last took some of the bytes that wait; [`Instant::ZERO`] when none has been taken, or none wait.
    pub fn taken_at(&self) -> Instant {
        match &self.entry.socket {
            SocketState::Blocked(_, pending) | SocketState::Draining(_, pending) => {
                pending.taken_at
            }
            SocketState::Detached | SocketState::Connecting(_) | SocketState::Open(_) => {
                Instant::ZERO
            }
        }
    }

    /// The address of the other end, while there is a socket.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.io.driver.peer_addr(self.entry.socket.fd()?)
    }

    /// The address of this end, while there is a socket.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.io.driver.local_addr(self.entry.socket.fd()?)
    }

    /// Connects once the callback has returned; [`App::opened`] or [`App::closed`] follows.
    pub fn connect(&mut self, spec: ConnectSpec) {
        debug_assert!(
            matches!(self.entry.socket, SocketState::Detached),
            "there is a socket already"
        );
        self.actions.connect = Some(spec);
    }

    /// Closes in order once the callback has returned and what was sent is taken; [`App::closed`] follows.
    pub fn close(&mut self) {
        self.actions.close = Some((CloseReason::Requested, SocketClose::Finish));
    }

    /// Closes by RST once the callback has returned.
    pub fn reset(&mut self) {
        self.actions.close = Some((CloseReason::Requested, SocketClose::Reset));
    }

    /// Closes in order for a reason of the app's choosing.
    pub fn close_because(&mut self, reason: CloseReason) {
        self.actions.close = Some((reason, SocketClose::Finish));
    }

    /// Tells the other end, once the callback has returned and what was sent is taken, that nothing more will be
    /// sent.
    pub fn finish(&mut self) {
        self.actions.finish = true;
    }

    /// Takes an entry without a socket out of the table once the callback has returned; nothing more is
    /// called for it.
    pub fn remove(&mut self) {
        debug_assert!(self.is_detached(), "an entry with a socket is closed, not removed");
        self.actions.remove = true;
    }

    /// Has [`App::deadline`] called then; replaces the deadline that was set.
    pub fn set_deadline(&mut self, deadline: Deadline) {
        self.actions.deadline = Some(deadline);
    }

    /// Puts `mail` into another core's mailbox.
    ///
    /// # Errors
    /// Bulk mail comes back, counted, when the mailbox is full.
    pub fn send_message(
        &mut self,
        to: CoreId,
        mail: D::Mail,
        kind: MessagePriority,
    ) -> Result<(), MailboxFull<D::Mail>> {
        self.io.send_message(to, mail, kind)
    }
}
