//! One entry of a core's table: a socket, a protocol, a deadline, and the app's state.

use throng_base::Instant;
use throng_base::wheel::Timer;
use throng_proto::Session;

use crate::Deadline;
use crate::deadline::PackedDeadline;
use crate::handshake::Handshake;
use crate::record_layer::RecordLayer;
use crate::send_queue::SendQueue;

/// Entry of a core's table. State that few connections need at a time is behind one pointer, so an
/// idle entry costs 48 bytes beside its session and the app's state.
pub(crate) struct Entry<F, S, T> {
    pub(crate) socket: SocketState<F>,
    /// The entry's place in the wheel, while its deadline is far.
    pub(crate) timer: Timer,
    /// The app's deadline.
    pub(crate) deadline: PackedDeadline,
    /// Number of the valid timer. A timer of the heap or of the due list with another number is
    /// stale.
    pub(crate) timer_sequence: u32,
    /// The socket may hold bytes that no further event reports.
    pub(crate) has_unread: bool,
    /// The entry is in the ready list.
    pub(crate) is_ready_queued: bool,
    /// The peer has finished sending, and the app knows it.
    pub(crate) peer_finished: bool,
    pub(crate) session: S,
    pub(crate) state: T,
}

impl<F, S, T> Entry<F, S, T> {
    /// Creates an entry without a socket.
    pub(crate) fn new(session: S, state: T) -> Self {
        Self {
            socket: SocketState::Detached,
            timer: Timer::default(),
            deadline: PackedDeadline::NEVER,
            timer_sequence: 0,
            has_unread: false,
            is_ready_queued: false,
            peer_finished: false,
            session,
            state,
        }
    }

    /// Reports whether more than `bytes_max` bytes wait for the peer. Bytes that one callback added
    /// to an empty queue are exempt up to eight times that limit, because the peer had no chance to
    /// read any of them.
    pub(crate) fn overflows(&mut self, queue_was_empty: bool, bytes_max: usize) -> bool {
        let SocketState::Blocked(_, queue) = &mut self.socket else { return false };
        if queue_was_empty {
            queue.exempt(bytes_max);
        }
        queue.overflows(bytes_max)
    }
}

impl<F, S: Session, T> Entry<F, S, T> {
    /// Returns the earliest exact and the earliest coarse deadline; [`Instant::FAR`] for none. The
    /// session's deadline counts while the entry has a live connection.
    pub(crate) fn deadlines(&self) -> (Instant, Instant) {
        let session = if self.socket.is_live() { self.session.deadline() } else { Instant::FAR };
        let own = session.min(self.socket.transport_deadline());
        match self.deadline.get() {
            Deadline::Never => (Instant::FAR, own),
            Deadline::Coarse(moment) => (Instant::FAR, moment.min(own)),
            Deadline::Exact(moment) => (moment, own),
        }
    }
}

/// State of an entry's socket.
pub(crate) enum SocketState<F> {
    /// There is no socket.
    Detached,
    /// The connect is in progress.
    Connecting(F),
    /// Established; the handshake of its transport is under way, and the app does not know it yet.
    Opening(F, Box<Handshake>),
    /// Established; the kernel has taken everything that was sent.
    Open(F, RecordLayer),
    /// Established; bytes wait until the kernel takes them.
    Blocked(F, Box<SendQueue>),
    /// Closed by the app; the socket closes when the kernel has taken the bytes that wait.
    Draining(F, Box<SendQueue>),
}

impl<F> SocketState<F> {
    pub(crate) fn fd(&self) -> Option<&F> {
        match self {
            Self::Detached => None,
            Self::Connecting(fd)
            | Self::Opening(fd, _)
            | Self::Open(fd, _)
            | Self::Blocked(fd, _)
            | Self::Draining(fd, _) => Some(fd),
        }
    }

    /// Reports whether the connection is established and not closed.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self, Self::Open(..) | Self::Blocked(..))
    }

    /// Reports whether the app has closed the connection and bytes still wait. The only callback
    /// that follows is [`App::closed`](crate::App::closed).
    pub(crate) fn is_draining(&self) -> bool {
        matches!(self, Self::Draining(..))
    }

    /// Returns how many bytes wait until the kernel takes them.
    pub(crate) fn pending_bytes(&self) -> usize {
        match self {
            Self::Blocked(_, queue) | Self::Draining(_, queue) => queue.pending_bytes(),
            Self::Detached | Self::Connecting(_) | Self::Opening(..) | Self::Open(..) => 0,
        }
    }

    /// Returns the record layer of an established connection; that of a plain one has no key.
    pub(crate) fn record_layer(&mut self) -> Option<&mut RecordLayer> {
        match self {
            Self::Open(_, layer) => Some(layer),
            Self::Blocked(_, queue) | Self::Draining(_, queue) => Some(&mut queue.layer),
            Self::Detached | Self::Connecting(_) | Self::Opening(..) => None,
        }
    }

    /// Returns when the handshake or a record that has arrived in part is too slow;
    /// [`Instant::FAR`] for never.
    pub(crate) fn transport_deadline(&self) -> Instant {
        match self {
            Self::Opening(_, handshake) => handshake.deadline,
            Self::Open(_, layer) => layer.deadline(),
            // While a peer is slow, its bytes may wait in the kernel.
            _ => Instant::FAR,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_entry_is_small() {
        assert_eq!(size_of::<Entry<i32, (), ()>>(), 48);
        assert_eq!(size_of::<SocketState<i32>>(), 16, "a transport costs an idle entry nothing");
    }
}
