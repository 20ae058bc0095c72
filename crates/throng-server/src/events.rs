//! The events of a core: what the counters alone do not say. They are rare, and a core never waits
//! for a reader.

use std::sync::mpsc::SyncSender;
use std::time::Duration;

use throng_base::Instant;
use throng_driver::CoreId;
use throng_measure::{RunEvent, RunEventKind};

use crate::{Handler, ServerConfig};

/// A sender to the server's event queue. Events that may repeat are limited to one per second; the
/// counters count all of them.
pub(crate) struct EventSink {
    queue: Option<SyncSender<RunEvent>>,
    epoch: Instant,
    quiet_until: Instant,
}

impl EventSink {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        let (queue, epoch) = (config.events.clone(), config.epoch);
        Self { queue, epoch, quiet_until: Instant::ZERO }
    }

    /// Makes a sender to this queue.
    pub(crate) const fn to(queue: SyncSender<RunEvent>, epoch: Instant) -> Self {
        Self { queue: Some(queue), epoch, quiet_until: Instant::ZERO }
    }

    /// Emits an event, unless this sender emitted such a one less than a second ago. Returns false
    /// if it was suppressed.
    pub(crate) fn emit_rarely(
        &mut self,
        now: Instant,
        event: impl FnOnce() -> RunEventKind,
    ) -> bool {
        if now < self.quiet_until {
            return false;
        }
        self.quiet_until = now + QUIET;
        self.emit(now, event());
        true
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

/// The minimum time between two events that may repeat.
const QUIET: Duration = Duration::from_secs(1);
