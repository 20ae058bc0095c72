//! The handle by which other threads reach channels.

use throng_proto::phoenix::PhoenixPayload;

use super::broadcast::Broadcast;
use super::channel::Info;
use super::client::ChannelHandler;
use super::socket::{Address, assert_object};
use crate::ServerHandle;

impl ServerHandle<ChannelHandler> {
    /// Sends `event` to all clients that have joined `topic`. Broadcasts of one thread arrive in
    /// order. Returns false if `mailbox_max` messages wait for core 0.
    ///
    /// `disconnect` to the id that the connect callback gave to connections closes them with code
    /// 1001.
    ///
    /// # Panics
    /// If `payload` is JSON but not an object.
    pub fn broadcast(&self, topic: &str, event: &str, payload: PhoenixPayload<'_>) -> bool {
        assert_object(payload);
        self.publish(Broadcast::new(event, payload).publication(topic)).is_ok()
    }

    /// Sends a message to a channel, which receives it in
    /// [`Channel::handle_info`](super::Channel::handle_info). It is lost if the channel has ended.
    ///
    /// # Errors
    /// Returns the message if `mailbox_max` messages wait for that channel's core.
    pub fn send_info(&self, to: &Address, info: Info) -> Result<(), Info> {
        self.send_message(to.connection, to.message(info)).map_err(super::ChannelMessage::into_info)
    }
}
