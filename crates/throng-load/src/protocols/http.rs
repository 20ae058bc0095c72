//! HTTP/1.1 requests (RFC 9112).

pub(crate) mod exchange;
pub(crate) mod input;
pub(crate) mod request;
pub(crate) mod session;
pub(crate) mod steps;
#[cfg(test)]
mod tests;

use throng_proto::http::{BODY_BYTES_MAX, HEAD_BYTES_MAX};

use super::{
    CalibrationMessages, CalibrationTraffic, ClientProtocol, MessageForm, PathPlace, Scheme,
    SchemeRules, Starter,
};
use crate::program::LimitedAction;
use crate::user::UserSession;

pub(super) const SCHEME: SchemeRules = SchemeRules {
    name: "http",
    secure_name: "https",
    alpn: Some("http/1.1"),
    port: Some(80),
    path: PathPlace::Request,
    has_credentials: true,
};

pub(super) const PROTOCOL: ClientProtocol = ClientProtocol {
    names: &["http"],
    title: "HTTP",
    scheme: Scheme::Http,
    messages: MessageForm::Answers,
    session: UserSession::http_client,
    handshake: None,
    opens_itself: true,
    connect_keys: &[],
    limits: &[LimitedAction::Request],
    in_place_of: |step| match step {
        "connect" => Some("leave it out: the first request opens the connection"),
        "expect" | "receive" => {
            Some("a request has its own `expect`, for example `get: {path: /, expect: 200}`")
        }
        "send" => Some("send a request, for example `post: {path: /, body: hello}`"),
        _ => None,
    },
    // Between two requests, a connection has no buffer.
    user_bytes: 256,
    // The head of an answer and its body.
    held_bytes_max: (HEAD_BYTES_MAX + BODY_BYTES_MAX) as u64,
    calibration: CalibrationTraffic {
        protocol: "http",
        target: "http://@",
        begin: &[GET],
        sent: GETS,
        answered: GETS,
    },
    starter: Starter {
        text: include_str!("http/starter.yaml"),
        load: "10 users a second over HTTP",
        edit: "requests",
        claims: |_| false,
    },
};

const GETS: CalibrationMessages = CalibrationMessages { server: "channels", steps: GET };

/// A request that the server answers at once: it has no such page.
const GET: &str = "get: {path: /none, expect: 404}";
