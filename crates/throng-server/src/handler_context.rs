//! The operations of a handler on its whole core, rather than on one connection.

use std::sync::Arc;

use throng_base::Instant;
use throng_driver::CoreId;
use throng_pubsub::Publication;
use throng_pubsub::presence::Diff;

use crate::core_message::CoreMessageKind;
use crate::fanout::Fanout;
use crate::{ConnectionId, Handler};

/// A core, for the duration of one call of its [`Handler`].
pub struct HandlerContext<'a, H: Handler> {
    pub(crate) core: CoreId,
    pub(crate) now: Instant,
    pub(crate) fanout: &'a mut Fanout,
    /// Puts a message into the mailbox of a core, which never refuses it.
    pub(crate) post: &'a mut dyn FnMut(CoreId, CoreMessageKind<H::Message>),
}

impl<H: Handler> HandlerContext<'_, H> {
    /// Returns the number of this core.
    pub fn core(&self) -> CoreId {
        self.core
    }

    /// Returns the number of cores of the server.
    pub fn cores(&self) -> usize {
        self.fanout.cores()
    }

    /// Returns the time of the current call.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Calls [`Handler::core_message`] on the given core, which may be this one. The message is
    /// never refused, because it keeps the cores in agreement. Messages from one core to another
    /// arrive in order.
    pub fn send_to_core(&mut self, core: CoreId, message: H::Message) {
        (self.post)(core, CoreMessageKind::Handler(message));
    }

    /// Calls [`Handler::message`] for a connection of any core. The message is never refused and
    /// arrives in order.
    pub fn send_unbounded(&mut self, to: ConnectionId, message: H::Message) {
        (self.post)(to.core(), CoreMessageKind::Connection(to.key(), message));
    }

    /// Tells the other nodes, if there are any, of changes of the members that this core owns.
    pub fn share_presence(&mut self, diff: &Arc<Diff>) {
        self.fanout.share_presence(diff);
    }

    /// Publishes to the subscribers on this core. Cores that share the publication share its
    /// frames.
    pub fn publish_here(&mut self, publication: &Arc<Publication>) {
        self.fanout.publish_here(publication, None);
    }
}
