//! One entry of a core's table: a socket in some state, a protocol, a deadline, and what the app keeps.

use throng_base::Instant;
use throng_base::wheel::Timer;
use throng_proto::Session;

use crate::send_queue::SendQueue;

/// An entry. Everything that only a few connections need at a time is behind one pointer, so that an idle
/// one costs 48 bytes beside its session and the app's state.
pub(crate) struct Entry<F, S, T> {
    pub(crate) socket: SocketState<F>,
    /// Where the entry stands in the wheel, while its deadline is far.
    pub(crate) timer: Timer,
    /// When the app wants to be called, and how exactly.
    pub(crate) deadline: PackedDeadline,
    /// Names the timer that counts; an entry of the heap or of the due list with another number is stale.
    pub(crate) timer_sequence: u32,
    /// Bytes may be waiting in the socket that no event will tell again.
    pub(crate) has_unread: bool,
    /// The entry stands in the ready list.
    pub(crate) is_ready_queued: bool,
    /// The other end has finished, and the app knows.
    pub(crate) peer_finished: bool,
    /// The app measures by when bytes arrive.
    pub(crate) wants_arrival: bool,
    pub(crate) session: S,
    pub(crate) state: T,
}

impl<F, S, T> Entry<F, S, T> {
    /// The open socket's peer is slow: `pending` waits for it.
    pub(crate) fn block(&mut self, pending: Box<SendQueue>) {
        if let SocketState::Open(fd) = std::mem::replace(&mut self.socket, SocketState::Detached) {
            self.socket = SocketState::Blocked(fd, pending);
        }
    }
}

impl<F, S: Session, T> Entry<F, S, T> {
    /// When it wants to be called exactly, and when within a tick; [`Instant::FAR`] for never. The session is
    /// asked while it has a connection.
    pub(crate) fn deadlines(&self) -> (Instant, Instant) {
        let session = if self.socket.is_live() { self.session.deadline() } else { Instant::FAR };
        match self.deadline.get() {
            Deadline::Never => (Instant::FAR, session),
            Deadline::Coarse(moment) => (Instant::FAR, moment.min(session)),
            Deadline::Exact(moment) => (moment, session),
        }
    }
}

/// What the entry's socket is doing. One state, one enum.
pub(crate) enum SocketState<F> {
    /// There is none.
    Detached,
    /// Its connect is not decided.
    Connecting(F),
    /// It is established, and the kernel has taken everything that was sent.
    Open(F),
    /// It is established, and bytes wait for the kernel to take them.
    Blocked(F, Box<SendQueue>),
    /// It ends as soon as the kernel has taken the bytes that wait.
    Draining(F, Box<SendQueue>),
}

impl<F> SocketState<F> {
    pub(crate) fn fd(&self) -> Option<&F> {
        match self {
            Self::Detached => None,
            Self::Connecting(fd)
            | Self::Open(fd)
            | Self::Blocked(fd, _)
            | Self::Draining(fd, _) => Some(fd),
        }
    }

    /// Whether it is established and not closed.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self, Self::Open(_) | Self::Blocked(..))
    }

    /// Whether the app has closed it already; all that it hears of it any more is the end.
    pub(crate) fn is_draining(&self) -> bool {
        matches!(self, Self::Draining(..))
    }

    /// Whether more waits for the peer than may.
    pub(crate) fn overflows(&self, bytes_max: usize) -> bool {
        matches!(self, Self::Blocked(_, pending) if pending.overflows(bytes_max))
    }

    /// All that waits was added by one callback.
    pub(crate) fn excuse(&mut self, bytes_max: usize) {
        if let Self::Blocked(_, pending) = self {
            pending.exempt(bytes_max);
        }
    }

    pub(crate) fn pending_bytes(&self) -> usize {
        match self {
            Self::Blocked(_, pending) | Self::Draining(_, pending) => pending.bytes(),
            Self::Detached | Self::Connecting(_) | Self::Open(_) => 0,
        }
    }
}

/// When an entry wants to be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// Not at all.
    Never,
    /// Within one [`TICK`](throng_base::wheel::TICK) after this moment: time-outs, heartbeats.
    Coarse(Instant),
    /// At this moment: pacing.
    Exact(Instant),
}

impl Deadline {
    /// The moment; [`Instant::FAR`] for never.
    pub const fn moment(self) -> Instant {
        match self {
            Self::Never => Instant::FAR,
            Self::Coarse(moment) | Self::Exact(moment) => moment,
        }
    }
}

/// A deadline in eight bytes: the moment, and in the highest bit whether it is coarse. Moments lie within
/// the 292 years that the other bits hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedDeadline(u64);

impl PackedDeadline {
    pub(crate) const NEVER: Self = Self(u64::MAX);
    const COARSE: u64 = 1 << 63;
    /// The latest moment that is not "never", with the bit set and without.
    const LAST: u64 = Self::COARSE - 2;

    pub(crate) fn get(self) -> Deadline {
        let moment = Instant::from_nanos(self.0 & !Self::COARSE);
        match self {
            Self::NEVER => Deadline::Never,
            Self(bits) if bits & Self::COARSE != 0 => Deadline::Coarse(moment),
            Self(_) => Deadline::Exact(moment),
        }
    }
}

impl From<Deadline> for PackedDeadline {
    fn from(deadline: Deadline) -> Self {
        match deadline {
            Deadline::Never | Deadline::Coarse(Instant::FAR) | Deadline::Exact(Instant::FAR) => {
                Self::NEVER
            }
            Deadline::Coarse(moment) => Self(moment.as_nanos().min(Self::LAST) | Self::COARSE),
            Deadline::Exact(moment) => Self(moment.as_nanos().min(Self::LAST)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_deadline_is_the_deadline() {
        let late = Instant::from_nanos(PackedDeadline::LAST);
        for moment in [Instant::ZERO, Instant::from_nanos(1_234_567_890_123), late] {
            for deadline in [Deadline::Coarse(moment), Deadline::Exact(moment)] {
                assert_eq!(PackedDeadline::from(deadline).get(), deadline);
            }
        }
        for never in
            [Deadline::Never, Deadline::Coarse(Instant::FAR), Deadline::Exact(Instant::FAR)]
        {
            assert_eq!(PackedDeadline::from(never).get(), Deadline::Never);
        }
    }

    #[test]
    fn an_idle_entry_is_small() {
        assert_eq!(size_of::<Entry<i32, (), ()>>(), 48);
    }
}
