//! The server's state of a connection.

use std::time::Duration;

use throng_base::Instant;
use throng_engine::Deadline;
use throng_pubsub::Memberships;

/// The server's state of a connection.
pub struct Slot<C> {
    /// The time of the last activity: a received event, or the time when the peer took bytes that
    /// waited, if the timer has checked since.
    pub(crate) last_activity: Instant,
    /// The time at which the handler's timeout is due.
    pub(crate) timeout: Instant,
    pub(crate) memberships: Memberships,
    /// True if the connection was closed because it was idle.
    pub(crate) is_idle: bool,
    /// True if the connection never had a socket.
    pub(crate) is_detached: bool,
    /// The handler's state.
    pub(crate) state: C,
}

impl<C> Slot<C> {
    pub(crate) fn new(state: C) -> Self {
        Self {
            last_activity: Instant::ZERO,
            timeout: Instant::FAR,
            memberships: Memberships::default(),
            is_idle: false,
            is_detached: false,
            state,
        }
    }

    /// Reports whether the handler knows of the connection. It does not while a transport's
    /// handshake is under way.
    pub(crate) fn was_opened(&self) -> bool {
        self.is_detached || self.last_activity > Instant::ZERO
    }

    /// Returns the earlier of the handler's timeout and the idle timeout.
    pub(crate) fn deadline(&self, idle_timeout: Option<Duration>) -> Deadline {
        match self.timeout.min(self.idle_at(idle_timeout)) {
            Instant::FAR => Deadline::Never,
            moment => Deadline::Coarse(moment),
        }
    }

    /// Returns when the idle timeout ends. A connection without a socket receives no bytes and has
    /// none.
    pub(crate) fn idle_at(&self, idle_timeout: Option<Duration>) -> Instant {
        let idle_timeout = idle_timeout.filter(|_| !self.is_detached);
        idle_timeout.map_or(Instant::FAR, |idle| self.last_activity + idle)
    }
}

impl<C: Default> Default for Slot<C> {
    fn default() -> Self {
        Self::new(C::default())
    }
}

const _: () = assert!(size_of::<Slot<()>>() == 24, "a slot is small: there are millions");
