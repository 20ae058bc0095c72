//! Fan-out: delivers this core's publications in bounded batches.

use std::sync::Arc;

use throng_engine::CoreContext;
use throng_pubsub::{Delivery, DeliveryContent, Dialect, Frames, Publication};

use super::ServerApp;
use crate::core_message::ServerDriver;
use crate::{Handler, InterceptAction};

impl<H: Handler, D: ServerDriver<Payload = H::Message>> ServerApp<H, D> {
    /// Sends publications to other cores, then delivers one batch on this core.
    pub(super) fn fan_out(&mut self, cx: &mut CoreContext<D, Self>) {
        let now = cx.now();
        self.fanout.post_outgoing(cx.driver().link(), now);
        let mut bytes = 0;
        for _ in 0..DELIVERIES_OF_BATCH {
            let Self { fanout, handler, .. } = self;
            let delivery = fanout
                .hub
                .next(&mut |publication, dialect| render_frame(handler, cx, publication, dialect));
            let Some(Delivery { key, tag, dialect, lane, content }) = delivery else { return };
            match content {
                DeliveryContent::Frames(frames, range) => {
                    let count = range.len();
                    bytes += frames.span(range.clone()).len();
                    let delivered = cx.deliver(key, frames, range, &lane);
                    fanout.count(count, delivered);
                }
                DeliveryContent::Publication(publication) => {
                    let mut intercepted = InterceptAction::Handled;
                    cx.with(key, |conn| {
                        self.call_handler(conn, |handler, conn| {
                            intercepted = handler.delivery(conn, &publication, tag);
                        });
                    });
                    match intercepted {
                        InterceptAction::Handled => self.fanout.count_intercepted(),
                        InterceptAction::Declined => {
                            let frame = render_frame(&mut self.handler, cx, &publication, dialect);
                            bytes += frame.len();
                            if !frame.is_empty() {
                                let delivered = cx.deliver(key, &Frames::one(frame), 0..1, &lane);
                                self.fanout.count(1, delivered);
                            }
                        }
                    }
                }
                DeliveryContent::Nothing => {}
            }
            if bytes >= BYTES_OF_BATCH {
                return;
            }
        }
    }
}

/// Returns the frame that all subscribers of `dialect` share. Empty if the handler panics: then
/// nothing is sent.
fn render_frame<H: Handler, D: ServerDriver<Payload = H::Message>>(
    handler: &mut H,
    cx: &mut CoreContext<D, ServerApp<H, D>>,
    publication: &Publication,
    dialect: Dialect,
) -> Arc<[u8]> {
    let render = |out: &mut Vec<u8>| handler.render(publication, dialect, out);
    cx.catch_panic(|| Arc::clone(publication.frame(dialect, render))).unwrap_or_default()
}

/// Deliveries in one batch at most, before other work of the core: about a millisecond, at 8 us
/// each.
const DELIVERIES_OF_BATCH: usize = 128;
/// Bytes in one batch at most, however few subscribers have received them.
const BYTES_OF_BATCH: usize = 1 << 20;
