//! Whether connects are told to a core, and why not.
//!
//! There are three reasons not to, each with its own way back: no permit (a close on any core names this one), no
//! fd or memory (the next close here, or 100 ms), and, in `dispatch`, waiting for the registry. Meanwhile the
//! listener is not watched, since it is level-triggered and would be told every turn; connects wait in the kernel's queue.

use std::time::Duration;

use throng_base::Instant;
use throng_driver::{Driver, Errno};
use throng_engine::CoreContext;
use throng_report::RunEventKind;

use crate::Handler;
use crate::app::ServerApp;
use crate::core_message::CoreMessage;

/// Whether connects are told, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AcceptState {
    /// There is no listener.
    Closed,
    Listening,
    /// Until the registry says where the last one goes.
    AwaitingPlacement,
    Paused(Pause),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    pub(crate) reason: PauseReason,
    since: Instant,
    /// When to try again even if nothing happens.
    pub(crate) retry_at: Instant,
    /// Whether an event told of it.
    is_reported: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PauseReason {
    /// `connections_max` is reached, or all fd tables are full, which is the same number then.
    Permits,
    /// The kernel refused: EMFILE, ENFILE, ENOBUFS, ENOMEM, ENOSPC.
    Kernel(Errno),
}

impl<H, D> ServerApp<H, D>
where
    H: Handler,
    D: Driver<Mail = CoreMessage<H::Message>>,
{
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

    pub(crate) fn stop_accepting(&mut self, cx: &mut CoreContext<D, Self>, state: AcceptState) {
        if self.acceptor.state == AcceptState::Listening
            && let Some(listener) = &self.acceptor.listener
        {
            // By name, not by closing: a reference in another core's table would keep it in the set.
            let _ = cx.driver().unwatch(listener);
        }
        self.emit_resumed(cx.now());
        self.acceptor.state = state;
    }

    /// Tells that a pause is over, if it was told that it began.
    fn emit_resumed(&self, now: Instant) {
        if let AcceptState::Paused(Pause { since, is_reported: true, .. }) = self.acceptor.state {
            let paused_ms = now.since(since).as_millis() as u64;
            let core = self.acceptor.core as u32;
            self.events.emit(now, RunEventKind::AcceptResumed { core, paused_ms });
        }
    }

    pub(crate) fn pause(&mut self, cx: &mut CoreContext<D, Self>, why: PauseReason) {
        if self.acceptor.listener.is_none() || self.acceptor.awaiting_placement.is_some() {
            // It does not accept anyhow; whoever begins again finds out for himself.
            return;
        }
        let now = cx.now();
        let until = match why {
            PauseReason::Permits => Instant::FAR,
            PauseReason::Kernel(_) => now + RETRY,
        };
        if let AcceptState::Paused(pause) = self.acceptor.state {
            // One pause to whoever hears of it, but another reason counts as another one.
            if pause.reason != why {
                self.emit_paused(cx, why);
            }
            self.acceptor.state = AcceptState::Paused(Pause { reason: why, retry_at: until, ..pause });
            return;
        }
        let is_told = self.emit_paused(cx, why);
        self.stop_accepting(cx, AcceptState::Paused(Pause { reason: why, since: now, retry_at: until, is_reported: is_told }));
    }

    /// Counts a pause and tells of it.
    fn emit_paused(&mut self, cx: &CoreContext<D, Self>, why: PauseReason) -> bool {
        let errno = match why {
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
                self.events
                    .emit_pause(cx.now(), || RunEventKind::ConnectionsMaxReached { connections_max })
            }
        }
    }
}

/// The number of a core's one listener.
const LISTENER: u32 = 0;
/// How long to wait before asking the kernel again for what it did not have.
const RETRY: Duration = Duration::from_millis(100);
