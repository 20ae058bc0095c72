//! How cores tell what a counter alone does not: seldom, and never waiting for a reader.

use std::sync::mpsc::SyncSender;
use std::time::Duration;

use throng_base::Instant;
use throng_driver::CoreId;
use throng_report::{RunEvent, RunEventKind};

use crate::Handler;

/// One core's way to the server's queue of events. What repeats is told once a second at most; counters have all of it.
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

    /// Accepting pauses; says whether that was told, so that its end is told too.
    pub(crate) fn emit_pause(&mut self, now: Instant, event: impl FnOnce() -> RunEventKind) -> bool {
        if now < self.pause_quiet_until {
            return false;
        }
        self.pause_quiet_until = now + QUIET;
        self.emit(now, event());
        true
    }

    pub(crate) fn emit_panic(&mut self, now: Instant, event: impl FnOnce() -> RunEventKind) {
        if now >= self.panic_quiet_until {
            self.panic_quiet_until = now + QUIET;
            self.emit(now, event());
        }
    }

    pub(crate) fn emit(&self, now: Instant, event: RunEventKind) {
        if let Some(queue) = &self.queue {
            // Full, nobody has read for long; the counters tell the rest.
            let _ = queue.try_send(RunEvent::new(now.since(self.epoch).as_millis() as u64, event));
        }
    }
}

pub(crate) fn handler_panic<H: Handler>(core: CoreId) -> RunEventKind {
    RunEventKind::HandlerPanicked { core: core as u32, message: format!("in {}", H::NAME) }
}

const QUIET: Duration = Duration::from_secs(1);
