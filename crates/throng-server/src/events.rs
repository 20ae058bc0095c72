//! The events of a core: what the counters alone do not say. They are rare, and a core never waits
//! for a reader.

use std::sync::mpsc::SyncSender;
use std::time::Duration;

use throng_base::Instant;
use throng_driver::CoreId;
use throng_report::{RunEvent, RunEventKind};

use crate::Handler;

/// One core's sender to the server's event queue. Repeated events are limited to one per second;
/// the counters count all of them.
pub(crate) struct EventSink {
    queue: Option<SyncSender<RunEvent>>,
    epoch: Instant,
    pause_quiet_until: Instant,
    panic_quiet_until: Instant,
}

impl EventSink {
    pub(crate) fn new(queue: Option<SyncSender<RunEvent>>, epoch: Instant) -> Self {
        Self { queue, epoch, pause_quiet_until: Instant::ZERO, panic_quiet_until: Instant::ZERO }
    }

    /// Emits the start of a pause of accepting. Returns false if it was suppressed; then the end of
    /// the pause is not emitted either.
    pub(crate) fn emit_pause(
        &mut self,
        now: Instant,
        event: impl FnOnce() -> RunEventKind,
    ) -> bool {
        if now < self.pause_quiet_until {
            return false;
        }
        self.pause_quiet_until = now + QUIET;
        self.emit(now, event());
        true
    }

    /// Emits a panic, unless one was emitted less than a second ago.
    pub(crate) fn emit_panic(&mut self, now: Instant, event: impl FnOnce() -> RunEventKind) {
        if now >= self.panic_quiet_until {
            self.panic_quiet_until = now + QUIET;
            self.emit(now, event());
        }
    }

    /// Adds an event to the queue.
    pub(crate) fn emit(&self, now: Instant, event: RunEventKind) {
        if let Some(queue) = &self.queue {
            // If the queue is full, no reader has read it for long. The counters have the rest.
            let _ = queue.try_send(RunEvent::new(now.since(self.epoch).as_millis() as u64, event));
        }
    }
}

/// Makes the event for a panic in a handler.
pub(crate) fn handler_panic<H: Handler>(core: CoreId) -> RunEventKind {
    RunEventKind::HandlerPanicked { core: core as u32, message: format!("in {}", H::NAME) }
}

/// The minimum time between two events of the same kind.
const QUIET: Duration = Duration::from_secs(1);
