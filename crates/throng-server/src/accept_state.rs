//! The accept state of a core: whether it watches its listener, and if not, the reason.
//!
//! There are three reasons not to watch it, and each has its own way back. Without a permit, the
//! core resumes when a close on any core signals it. Without an fd or memory, it resumes at the
//! next close on this core, or after 100 ms. In `dispatch`, it resumes when the registry answers.
//! Meanwhile the listener is not watched: it is level-triggered, and epoll would report it in every
//! turn. Connects wait in the kernel's accept queue.

use std::time::Duration;

use throng_base::Instant;
use throng_driver::{Driver, Errno};
use throng_engine::CoreContext;
use throng_report::RunEventKind;

use crate::Handler;
use crate::app::ServerApp;
use crate::core_message::CoreMessage;

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
    since: Instant,
    /// The time to try again even if no event resumes accepting.
    pub(crate) retry_at: Instant,
    /// True if an event reported the pause.
    is_reported: bool,
}

/// The reason of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PauseReason {
    /// `connections_max` is reached, or all fd tables are full. Both are the same number then.
    Permits,
    /// The kernel refused with EMFILE, ENFILE, ENOBUFS, ENOMEM or ENOSPC.
    Kernel(Errno),
}

impl<H, D> ServerApp<H, D>
where
    H: Handler,
    D: Driver<Message = CoreMessage<H::Message>>,
{
    /// Watches the listener, and reports the end of a pause.
    pub(crate) fn resume_accepting(&mut self, cx: &mut CoreContext<D, Self>) {
        let Some(listener) = &self.acceptor.listener else { return };
        if self.acceptor.state == AcceptState::Listening {
            return;
        }
        if let Err(errno) = cx.driver().watch(listener, LISTENER) {
            self.acceptor.count_error(errno);
            return self.pause(cx, PauseReason::Kernel(errno));
        }
        self.emit_resumed(cx.now());
        self.acceptor.state = AcceptState::Listening;
    }

    /// Stops watching the listener and sets the accept state.
    pub(crate) fn stop_accepting(&mut self, cx: &mut CoreContext<D, Self>, state: AcceptState) {
        if self.acceptor.state == AcceptState::Listening
            && let Some(listener) = &self.acceptor.listener
        {
            // Closing the fd is not enough: a reference in another core's table keeps it in the
            // set.
            let _ = cx.driver().unwatch(listener);
        }
        self.emit_resumed(cx.now());
        self.acceptor.state = state;
    }

    /// Emits the end of a pause if its start was emitted.
    fn emit_resumed(&self, now: Instant) {
        if let AcceptState::Paused(Pause { since, is_reported: true, .. }) = self.acceptor.state {
            let paused_ms = now.since(since).as_millis() as u64;
            let core = self.acceptor.core as u32;
            self.events.emit(now, RunEventKind::AcceptResumed { core, paused_ms });
        }
    }

    /// Pauses accepting, and counts and reports the pause.
    pub(crate) fn pause(&mut self, cx: &mut CoreContext<D, Self>, reason: PauseReason) {
        if self.acceptor.listener.is_none() || self.acceptor.awaiting_placement.is_some() {
            // Already not accepting. Resuming checks the limit again and pauses if it still holds.
            return;
        }
        let since = cx.now();
        let retry_at = match reason {
            PauseReason::Permits => Instant::FAR,
            PauseReason::Kernel(_) => since + RETRY,
        };
        if let AcceptState::Paused(pause) = self.acceptor.state {
            // Events show one pause, but the counters count each reason.
            if pause.reason != reason {
                self.emit_paused(cx, reason);
            }
            self.acceptor.state = AcceptState::Paused(Pause { reason, retry_at, ..pause });
            return;
        }
        let is_reported = self.emit_paused(cx, reason);
        let pause = Pause { reason, since, retry_at, is_reported };
        self.stop_accepting(cx, AcceptState::Paused(pause));
    }

    /// Counts a pause and emits it. Returns false if the event was suppressed.
    fn emit_paused(&mut self, cx: &CoreContext<D, Self>, reason: PauseReason) -> bool {
        let errno = match reason {
            PauseReason::Kernel(errno) => Some(errno),
            PauseReason::Permits if self.config.limited_by_fds => Some(Errno::TABLE_FULL),
            PauseReason::Permits => None,
        };
        let connections_max = self.config.connections_max as u64;
        let (core, open) = (self.acceptor.core as u32, cx.len() as u64);
        match errno {
            Some(errno) => {
                self.counters.pauses_fd += 1;
                let errno = errno.name().to_owned();
                self.events.emit_pause(cx.now(), || RunEventKind::FdTableFull { core, errno, open })
            }
            None => {
                self.counters.pauses_max += 1;
                self.events.emit_pause(cx.now(), || RunEventKind::ConnectionsMaxReached {
                    connections_max,
                })
            }
        }
    }
}

/// The number by which epoll reports a core's one listener.
const LISTENER: u32 = 0;
/// The time to wait before asking the kernel again for an fd or memory.
const RETRY: Duration = Duration::from_millis(100);
