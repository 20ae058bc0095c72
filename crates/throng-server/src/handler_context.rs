//! What a handler may do for its whole core, rather than for one connection.

use std::sync::Arc;

use throng_base::Instant;
use throng_driver::{CoreId, Driver, MessagePriority};
use throng_engine::CoreContext;
use throng_pubsub::Publication;

use crate::app::ServerApp;
use crate::core_message::{CoreMessage, CoreMessageKind};
use crate::fanout::Fanout;
use crate::{ConnectionId, Handler};

/// A core, for the length of one call of its [`Handler`].
pub struct HandlerContext<'a, H: Handler> {
    pub(crate) ops: &'a mut dyn CoreOps<H>,
    pub(crate) fanout: &'a mut Fanout,
}

impl<H: Handler> HandlerContext<'_, H> {
    /// Which core this is.
    pub fn core(&self) -> CoreId {
        self.ops.core()
    }

    /// How many cores the server has.
    pub fn cores(&self) -> usize {
        self.fanout.cores()
    }

    /// The time, as of the present call.
    pub fn now(&self) -> Instant {
        self.ops.now()
    }

    /// Has [`Handler::mail`] called on another core, or on this one. Never refused: what keeps the cores in agreement. What
    /// one core tells another arrives in order.
    pub fn mail(&mut self, core: CoreId, message: H::Message) {
        self.ops.post(core, CoreMessageKind::Core(message));
    }

    /// Has [`Handler::message`] called for a connection of any core. Never refused, in order.
    pub fn tell(&mut self, to: ConnectionId, message: H::Message) {
        self.ops.post(to.core(), CoreMessageKind::Message(to.key(), message));
    }

    /// Publishes to the members that live on this core. Cores may share the publication, and then share its frames.
    pub fn publish_here(&mut self, publication: &Arc<Publication>) {
        self.fanout.publish_here(publication, None);
    }
}

/// A core with the driver behind it out of sight.
pub(crate) trait CoreOps<H: Handler> {
    fn core(&self) -> CoreId;
    fn now(&self) -> Instant;
    fn post(&mut self, core: CoreId, kind: CoreMessageKind<H::Message>);
}

impl<H, D> CoreOps<H> for CoreContext<D, ServerApp<H, D>>
where
    H: Handler,
    D: Driver<Mail = CoreMessage<H::Message>>,
{
    fn core(&self) -> CoreId {
        self.core()
    }

    fn now(&self) -> Instant {
        self.now()
    }

    fn post(&mut self, core: CoreId, kind: CoreMessageKind<H::Message>) {
        // Control mail is never refused.
        let _ = self.send_message(core, CoreMessage(kind), MessagePriority::Control);
    }
}
