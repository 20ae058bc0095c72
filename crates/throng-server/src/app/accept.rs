//! Accepting: carries out the steps of the [acceptor](crate::acceptor).

use throng_driver::CoreId;
use throng_engine::CoreContext;

use super::ServerApp;
use crate::Handler;
use crate::acceptor::{AcceptContext, AcceptStep, BatchEnd, PauseReason};
use crate::core_message::ServerDriver;
use crate::events::handler_panic;
use crate::slot::Slot;

impl<H: Handler, D: ServerDriver<Payload = H::Message>> ServerApp<H, D> {
    /// Accepts a batch.
    pub(super) fn accept(&mut self, cx: &mut CoreContext<D, Self>) {
        let burst = self.acceptor.burst();
        for accepted in 0..burst {
            let step = self.acceptor.accept_one(&mut self.lend(cx));
            if let Err(end) = step.and_then(|step| self.carry_out(cx, step)) {
                return self.acceptor.end_batch(&mut self.lend(cx), accepted, end);
            }
        }
        self.acceptor.end_batch(&mut self.lend(cx), burst, BatchEnd::Filled);
    }

    /// Carries out a step. Returns the reason if nothing more is to be accepted.
    fn carry_out(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        step: AcceptStep<D::Fd>,
    ) -> Result<(), BatchEnd> {
        match step {
            AcceptStep::Accepted(fd) => return self.adopt(cx, fd),
            AcceptStep::PassOn { fd, to } => cx.driver().hand_off(fd, to),
            AcceptStep::Skip => {}
        }
        Ok(())
    }

    /// Opens a connection that this core has accepted.
    fn adopt(&mut self, cx: &mut CoreContext<D, Self>, fd: D::Fd) -> Result<(), BatchEnd> {
        // User code makes the handler's state. If it panics here, there is no connection to end
        // yet.
        let now = cx.now();
        let made = cx.catch_panic(|| (self.handler.session(now), Slot::default()));
        let Some((session, slot)) = made else {
            self.events.emit_rarely(now, || handler_panic::<H>(cx.core()));
            self.acceptor.refuse(cx.driver(), fd, None);
            return Ok(());
        };
        cx.adopt(fd, session, slot).map(drop).map_err(|(fd, errno)| {
            // No epoll watches left, or no memory.
            self.acceptor.refuse(cx.driver(), fd, Some(errno));
            BatchEnd::Pause(PauseReason::Kernel(errno))
        })
    }

    /// Opens a connection that another core has handed off.
    pub(super) fn handoff_received(&mut self, cx: &mut CoreContext<D, Self>, fd: D::Fd) {
        let step = self.acceptor.place(&mut self.lend(cx), fd);
        if let Err(end) = self.carry_out(cx, step) {
            self.acceptor.end_batch(&mut self.lend(cx), 0, end);
        }
    }

    /// Places the waiting connection on the core that the registry has named, and accepts again.
    pub(super) fn placement_received(&mut self, cx: &mut CoreContext<D, Self>, to: CoreId) {
        let step = self.acceptor.placement_received(&mut self.lend(cx), to);
        let Some(step) = step else { return };
        match self.carry_out(cx, step) {
            Ok(()) => self.accept(cx),
            Err(end) => self.acceptor.end_batch(&mut self.lend(cx), 0, end),
        }
    }

    /// Accepts established connections while permits and room last, then closes the listening
    /// socket. The kernel resets the connections left in its queue and refuses later connects.
    pub(super) fn suspend(&mut self, cx: &mut CoreContext<D, Self>) {
        for _ in 0..self.acceptor.last_accepts() {
            let step = self.acceptor.accept_one(&mut self.lend(cx));
            if step.and_then(|step| self.carry_out(cx, step)).is_err() {
                break;
            }
        }
        self.acceptor.close_listener(&mut self.lend(cx));
    }

    /// Accepts again if closes of this turn or permits of other cores made it possible.
    pub(super) fn accept_after_turn(&mut self, cx: &mut CoreContext<D, Self>) {
        if self.acceptor.turn_ended(cx.driver()) {
            self.accept(cx);
        }
        while self.acceptor.needs_permit(cx.driver()) {
            self.accept(cx);
        }
    }

    /// Lends the acceptor what it needs of the core.
    pub(super) fn lend<'a>(&self, cx: &'a mut CoreContext<D, Self>) -> AcceptContext<'a, D> {
        AcceptContext { now: cx.now(), open: self.connections(cx), driver: cx.driver() }
    }
}
