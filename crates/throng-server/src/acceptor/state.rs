//! The accept state of a core: whether it watches its listener, and if not, the reason.
//!
//! There are three reasons not to watch it, and each has its own way back. Without a permit, the
//! core resumes when a close on any core signals it. Without an fd or memory, it resumes at the
//! next close on this core, or after 100 ms. In `dispatch`, it resumes when the registry answers.
//! Meanwhile the listener is not watched: it is level-triggered, and epoll would report it in every
//! turn. Connects wait in the kernel's accept queue.

use std::time::Duration;

use throng_base::Instant;
use throng_driver::Errno;

/// The state of a core's accepting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AcceptState {
    /// There is no listener.
    Closed,
    /// The listener is watched.
    Listening,
    /// An accepted connection waits for the registry to name its core.
    AwaitingPlacement,
    /// Accepting is paused.
    Paused(Pause),
}

/// A pause of accepting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    pub(crate) reason: PauseReason,
    pub(crate) since: Instant,
    /// True if an event reported the pause.
    pub(crate) is_reported: bool,
    /// The time to try again even if no event resumes accepting.
    pub(crate) retry_at: Instant,
}

/// The reason of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PauseReason {
    /// `connections_max` is reached, or all fd tables are full. Both are the same number then.
    Permits,
    /// The kernel refused with EMFILE, ENFILE, ENOBUFS, ENOMEM or ENOSPC.
    Kernel(Errno),
}

impl PauseReason {
    /// Returns when to accept again after a pause that began at `now`.
    pub(crate) fn retry_at(self, now: Instant) -> Instant {
        match self {
            Self::Permits => Instant::FAR,
            Self::Kernel(_) => now + RETRY,
        }
    }
}

/// The time to wait before asking the kernel again for an fd or memory.
const RETRY: Duration = Duration::from_millis(100);
