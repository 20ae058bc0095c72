//! How other threads reach connections.

use std::sync::Arc;

use throng_driver::MailboxSender;
use throng_pubsub::Publication;

use crate::core_message::{CoreMessage, CoreMessageKind};
use crate::{ConnectionId, Handler};

/// Sends messages to connections, and publishes, from any thread that shares the fd table of the one that started the
/// server, and from the server's own cores. On a core of another engine that has an fd table of its own every method
/// panics: see [`ServerOptions::private_fds`](crate::ServerOptions::private_fds).
pub struct ServerHandle<H: Handler> {
    post: MailboxSender<CoreMessage<H::Message>>,
}

impl<H: Handler> ServerHandle<H> {
    pub(crate) const fn new(post: MailboxSender<CoreMessage<H::Message>>) -> Self {
        Self { post }
    }

    /// Has [`Handler::message`] called for the connection on its core. One that has ended by then loses the message.
    ///
    /// # Errors
    /// The message again, when `mailbox_max` messages wait for that core.
    pub fn send_message(&self, to: ConnectionId, message: H::Message) -> Result<(), H::Message> {
        self.post
            .send_bulk(to.core(), CoreMessage(CoreMessageKind::Message(to.key(), message)))
            .map_err(|full| match full.0.0 {
                CoreMessageKind::Message(_, message) => message,
                _ => unreachable!("what comes back is what was sent"),
            })
    }

    /// Publishes to the members of its topic on every core, by way of core 0. What one thread publishes
    /// arrives in order.
    ///
    /// # Errors
    /// The publication again, when `mailbox_max` messages wait for core 0.
    pub fn publish(
        &self,
        publication: impl Into<Arc<Publication>>,
    ) -> Result<(), Arc<Publication>> {
        self.post.send_bulk(0, CoreMessage(CoreMessageKind::Relay(publication.into()))).map_err(
            |full| match full.0.0 {
                CoreMessageKind::Relay(publication) => publication,
                _ => unreachable!("what comes back is what was sent"),
            },
        )
    }
}

impl<H: Handler> Clone for ServerHandle<H> {
    fn clone(&self) -> Self {
        Self { post: self.post.clone() }
    }
}
