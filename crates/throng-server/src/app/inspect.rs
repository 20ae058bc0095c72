//! The look of a core at itself, as the server's control thread asks for it.

use std::sync::mpsc::Sender;

use throng_engine::CoreContext;
use throng_measure::ServerCounters;

use super::ServerApp;
use crate::Handler;
use crate::core_message::ServerDriver;
use crate::inspection::{CoreLook, Inspection};

impl<H: Handler, D: ServerDriver<Payload = H::Message>> ServerApp<H, D> {
    /// Begins a look. It replaces one in progress, whose caller has given up.
    pub(super) fn begin_inspection(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        rows: usize,
        reply: Sender<CoreLook>,
    ) {
        cx.observe();
        let before = (self.totals(cx), cx.totals());
        self.inspection = Some(Box::new(Inspection::new(rows, reply, cx.now(), before)));
    }

    /// Does this turn's part of the look, and answers at its end.
    pub(super) fn continue_inspection(&mut self, cx: &mut CoreContext<D, Self>) {
        let Some(inspection) = &mut self.inspection else { return };
        inspection.walk(cx, &self.fanout.hub);
        if !inspection.is_over(cx.now()) {
            return;
        }
        let Some(mut inspection) = self.inspection.take() else { return };
        let totals = self.totals(cx);
        let mut look = inspection.finish(cx, &totals);
        look.core.publications_waiting = self.fanout.outgoing() as u64;
        // The caller may have given up.
        let _ = inspection.reply.send(look);
    }

    /// Returns the counters of this core, without its maxima and those of its handler.
    fn totals(&self, cx: &CoreContext<D, Self>) -> ServerCounters {
        let mut server = self.counters.clone();
        server.open = self.connections(cx) as u64;
        self.acceptor.add_totals(&mut server);
        self.fanout.report(&mut server);
        server
    }
}
