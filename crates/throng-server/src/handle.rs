//! The handle by which other threads reach connections.

use std::sync::Arc;

use throng_driver::MailboxSender;
use throng_pubsub::Publication;

use crate::core_message::{CoreMessage, CoreMessageKind};
use crate::{ConnectionId, Handler};

/// A handle that sends messages to connections and publishes. It works on any thread that shares
/// the fd table of the thread that started the server, and on the server's own cores. On a core of
/// another engine with an fd table of its own, every method panics: see
/// [`ServerOptions::private_fds`](crate::ServerOptions::private_fds).
pub struct ServerHandle<H: Handler> {
    mailboxes: MailboxSender<CoreMessage<H::Message>>,
}

impl<H: Handler> ServerHandle<H> {
    pub(crate) const fn new(post: MailboxSender<CoreMessage<H::Message>>) -> Self {
        Self { mailboxes: post }
    }

    /// Sends a message to a connection; its core calls [`Handler::message`]. If the connection has
    /// ended, [`Handler::undelivered`] receives it.
    ///
    /// # Errors
    /// Returns the message if `mailbox_max` messages wait for that core.
    pub fn send_message(&self, to: ConnectionId, message: H::Message) -> Result<(), H::Message> {
        self.mailboxes
            .send_bulk(to.core(), CoreMessage::to_connection(to, message))
            .map_err(CoreMessage::refused)
    }

    /// Publishes to the topic's subscribers on every core, by way of core 0. Publications of one
    /// thread arrive in order.
    ///
    /// # Errors
    /// Returns the publication if `mailbox_max` messages wait for core 0.
    pub fn publish(
        &self,
        publication: impl Into<Arc<Publication>>,
    ) -> Result<(), Arc<Publication>> {
        self.mailboxes
            .send_bulk(0, CoreMessage(CoreMessageKind::Relay(publication.into())))
            .map_err(|full| match full.0.0 {
                CoreMessageKind::Relay(publication) => publication,
                _ => unreachable!("a full mailbox returns the message it refused"),
            })
    }
}

impl<H: Handler> Clone for ServerHandle<H> {
    fn clone(&self) -> Self {
        Self { mailboxes: self.mailboxes.clone() }
    }
}
