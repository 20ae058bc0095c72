//! The chat: one room over WebSockets.

use std::sync::Arc;

use throng_proto::websocket::WebSocketLimits;

use super::KindOptions;
use super::start::start_shared_server;
use crate::{
    AnyServer, Message, Peer, ServerOptions, StartError, WebSocketHandler, WebSocketOptions,
    WebSockets,
};

/// A chat of one room, which every path leads to. Every message, text or binary, goes to all
/// clients, the sender included.
#[derive(Debug)]
pub struct Chat {
    room: Arc<str>,
}

impl Chat {
    /// Creates the handler of one core.
    pub fn handler(options: WebSocketOptions) -> WebSockets<Self> {
        WebSockets::new(options, Self { room: "chat".into() })
    }
}

impl WebSocketHandler for Chat {
    type State = ();
    const NAME: &'static str = "chat";

    fn open(&mut self, peer: &mut Peer<'_, Self>) {
        peer.subscribe(&self.room);
    }

    fn message(&mut self, peer: &mut Peer<'_, Self>, message: Message<'_>) {
        peer.publish(Arc::clone(&self.room), message);
    }
}

pub(super) fn start(options: &KindOptions) -> Result<Arc<dyn AnyServer>, StartError> {
    let KindOptions { server, websocket, shared, .. } = options;
    let chat = WebSocketOptions {
        limits: websocket.limits(WebSocketLimits::default()),
        check_origin: websocket.check_origin.clone(),
        host: websocket.host.clone(),
        https: server.tls.is_some(),
        deflate: websocket.deflate,
        rules: websocket.rules,
        idle_timeout: server.idle_timeout,
    };
    // The chat applies the idle timeout itself: it sends a close frame first.
    let server = ServerOptions { idle_timeout: None, ..server.clone() };
    start_shared_server(&server, shared.as_ref(), move |_| Chat::handler(chat.clone()))
}
