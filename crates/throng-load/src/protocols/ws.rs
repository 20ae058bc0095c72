//! Messages over a WebSocket (RFC 6455).

mod deflate;
pub(crate) mod handshake;
pub(crate) mod input;
pub(crate) mod ping;
pub(crate) mod session;
pub(crate) mod steps;
#[cfg(test)]
mod tests;
pub(crate) mod upgrade;

use super::{
    CalibrationMessages, CalibrationTraffic, ClientProtocol, MessageForm, PathPlace, Scheme,
    SchemeRules, Starter,
};
use crate::held::MESSAGE_BYTES_MAX;
use crate::program::LimitedAction;
use crate::user::UserSession;

pub(super) const SCHEME: SchemeRules = SchemeRules {
    name: "ws",
    secure_name: "wss",
    // A WebSocket begins as a request.
    alpn: Some("http/1.1"),
    port: Some(80),
    path: PathPlace::Target,
    has_credentials: true,
};

pub(super) const PROTOCOL: ClientProtocol = ClientProtocol {
    names: &["ws", "websocket"],
    title: "WebSockets",
    scheme: Scheme::Ws,
    messages: MessageForm::Messages,
    session: UserSession::web_socket,
    handshake: Some(UPGRADED),
    opens_itself: false,
    connect_keys: &["timeout", "path", "query", "headers", "subprotocols", "deflate"],
    limits: &LimitedAction::ALL,
    in_place_of: |_| None,
    user_bytes: USER_BYTES,
    held_bytes_max: MESSAGE_BYTES_MAX as u64,
    calibration: CalibrationTraffic {
        protocol: "ws",
        // With version 2 of channels, a heartbeat is the shortest message with an answer.
        target: "ws://@/socket/websocket?vsn=2.0.0",
        begin: &["connect"],
        sent: CalibrationMessages {
            server: "channels",
            steps: r#"send: '[null,"1","phoenix","heartbeat",{}]'"#,
        },
        answered: CalibrationMessages {
            server: "channels",
            steps: concat!(
                r#"{send: '[null,"1","phoenix","heartbeat",{}]'}, "#,
                r#"{expect: {contains: '"ok"'}}"#
            ),
        },
    },
    starter: Starter {
        text: include_str!("ws/starter.yaml"),
        load: "20 users over WebSockets",
        edit: "messages",
        claims: |_| false,
    },
};

/// Answer of a server that accepts the upgrade.
pub(super) const UPGRADED: &str = "101 Switching Protocols";

/// Most bytes of an idle WebSocket whose user has joined a topic.
pub(super) const USER_BYTES: u64 = 300;
