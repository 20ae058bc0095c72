//! The server of Phoenix Channels: the application of [`demo`] with the settings of the command
//! line.

use std::sync::Arc;

use throng_pubsub::Rulebook;

use super::KindOptions;
use super::start::start_shared_server;
use crate::channels::{Channels, defaults, demo};
use crate::{AnyServer, ServerOptions, StartError};

pub(super) fn start(options: &KindOptions) -> Result<Arc<dyn AnyServer>, StartError> {
    let channels = configure(demo(), options);
    // Channels apply the idle timeout themselves: they send a close frame first.
    let server = ServerOptions { idle_timeout: None, ..options.server.clone() };
    start_shared_server(&server, options.shared.as_ref(), move |core| channels.handler(core))
}

/// Applies the options to `channels`.
fn configure(channels: Channels, options: &KindOptions) -> Channels {
    let KindOptions { server, websocket, channels: own, .. } = options;
    let channels = channels
        .check_origin(websocket.check_origin.clone())
        .https(server.tls.is_some())
        .deflate(websocket.deflate)
        .limits(websocket.limits(defaults::limits()))
        .topics(Rulebook::all(websocket.rules))
        .timeout(server.idle_timeout.unwrap_or(defaults::TIMEOUT))
        .channels_max(own.channels_max)
        .poll_sessions_max(own.poll_sessions_max)
        .poll_bytes_max(own.poll_bytes_max)
        .presence(own.presence);
    match &websocket.host {
        Some(host) => channels.host(host),
        None => channels,
    }
}
