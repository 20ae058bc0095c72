//! Phoenix Channels over a WebSocket.

pub(crate) mod channel_request;
pub(crate) mod channels;
pub(crate) mod event_pattern;
pub(crate) mod heartbeat;
pub(crate) mod input;
mod join;
mod leave;
mod push;
pub(crate) mod receive_event;
pub(crate) mod request;
pub(crate) mod steps;
#[cfg(test)]
mod tests;
pub(crate) mod topic;

use super::{
    CalibrationMessages, CalibrationTraffic, ClientProtocol, MessageForm, Scheme, Starter, ws,
};
use crate::held::MESSAGE_BYTES_MAX;
use crate::program::LimitedAction;
use crate::user::UserSession;

pub(super) const PROTOCOL: ClientProtocol = ClientProtocol {
    names: &["phoenix"],
    title: "Phoenix Channels",
    scheme: Scheme::Ws,
    messages: MessageForm::Events,
    session: UserSession::web_socket,
    handshake: Some(ws::UPGRADED),
    opens_itself: false,
    connect_keys: &[
        "timeout",
        "path",
        "query",
        "headers",
        "subprotocols",
        "deflate",
        "vsn",
        "heartbeat",
    ],
    limits: &LimitedAction::ALL,
    in_place_of: |_| Some("use `push` to send to a channel; it waits for the reply"),
    user_bytes: ws::USER_BYTES,
    held_bytes_max: MESSAGE_BYTES_MAX as u64,
    calibration: CalibrationTraffic {
        protocol: "phoenix",
        target: "ws://@/socket/websocket",
        // Each user has a topic of its own, without other subscribers.
        begin: &["connect", r#"join: {topic: "rooms:${user.id}"}"#],
        sent: PUSHES,
        answered: PUSHES,
    },
    starter: Starter {
        text: include_str!("phoenix/starter.yaml"),
        load: "20 users of Phoenix Channels",
        edit: "topics and events",
        claims: is_socket,
    },
};

const PUSHES: CalibrationMessages = CalibrationMessages {
    server: "channels",
    steps: r#"push: {topic: "rooms:${user.id}", event: echo, payload: {n: 1}}"#,
};

/// Reports whether a path leads to a Phoenix socket: phoenix.js connects to `/websocket` below the
/// path of the socket.
fn is_socket(path: &str) -> bool {
    path.strip_suffix("/websocket").is_some_and(|socket| !socket.is_empty())
}
