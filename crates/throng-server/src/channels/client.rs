//! The clients of a core, and the handler that serves them.

use throng_driver::CoreId;

use super::config::Config;
use super::core_state::CoreState;
use crate::Connection;

/// The handler of one core of a server of channels, made by
/// [`Channels::handler`](super::Channels::handler).
pub struct ChannelHandler {
    pub(crate) core: CoreState,
}

/// A client's connection, or its long-poll session.
pub(crate) type Client<'c> = Connection<'c, ChannelHandler>;

impl ChannelHandler {
    pub(crate) fn new(config: Config, core: CoreId) -> Self {
        Self { core: CoreState::new(config, core) }
    }
}

/// The tag of the subscription of a channel.
pub(crate) const CHANNEL: u16 = 0;
/// The tag of the subscription to the socket's id.
pub(crate) const SOCKET_ID: u16 = 1;

/// Close code of a disconnect, RFC 6455 section 7.4.1. The codes below are from there too.
pub(crate) const GOING_AWAY: u16 = 1001;
/// Close code for an idle client, the same as Bandit's.
pub(crate) const PROTOCOL_ERROR: u16 = 1002;
pub(crate) const INTERNAL_ERROR: u16 = 1011;
/// Close code of a server that shuts down; the client connects again later.
pub(crate) const SERVICE_RESTART: u16 = 1012;
