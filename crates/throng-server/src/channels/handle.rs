//! How other threads reach channels.

use throng_proto::phoenix::PhoenixPayload;

use super::broadcast::Broadcast;
use super::channel::Info;
use super::handler::ChannelHandler;
use super::socket::{Address, assert_object};
use crate::ServerHandle;

impl ServerHandle<ChannelHandler> {
    /// Sends `event` to everyone who is joined to `topic`. What one thread broadcasts arrives in order. False
    /// when too much waits for the server.
    ///
    /// `disconnect` to the id that the connect callback gave to connections closes them (code 1001).
    ///
    /// # Panics
    /// When `payload` is JSON but no object.
    pub fn broadcast(&self, topic: &str, event: &str, payload: PhoenixPayload<'_>) -> bool {
        assert_object(payload);
        self.publish(Broadcast::new(event, payload).publication(topic)).is_ok()
    }

    /// Has [`Channel::handle_info`](super::Channel::handle_info) called for a channel; for one that has ended by then it is
    /// lost.
    ///
    /// # Errors
    /// The message again, when too much waits for that channel's core.
    pub fn send_info(&self, to: &Address, info: Info) -> Result<(), Info> {
        self.send_message(to.connection, to.message(info)).map_err(super::ChannelMessage::into_info)
    }
}
