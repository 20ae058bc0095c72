//! Header fields that a scenario may have.

/// What a header field is sent with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderPlace {
    /// A request of HTTP.
    Request,
    /// The upgrade of a WebSocket.
    Upgrade,
}

impl HeaderPlace {
    /// Reports whether a scenario cannot have this field here: throng sets it itself, or it would
    /// change the meaning of the message.
    pub fn excludes(self, name: &str) -> bool {
        let own: &[&str] = match self {
            Self::Request => &OWN_OF_REQUEST,
            Self::Upgrade => &OWN_OF_UPGRADE,
        };
        own.iter().any(|own| name.eq_ignore_ascii_case(own))
    }
}

/// Reports whether a text is a token (RFC 9110 section 5.6.2), as names of header fields and
/// subprotocols are.
pub fn is_token(text: &str) -> bool {
    let may_stand = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(may_stand)
}

const OWN_OF_REQUEST: [&str; 6] =
    ["content-length", "transfer-encoding", "upgrade", "expect", "te", "trailer"];

const OWN_OF_UPGRADE: [&str; 8] = [
    "host",
    "upgrade",
    "connection",
    "content-length",
    "sec-websocket-key",
    "sec-websocket-version",
    "sec-websocket-protocol",
    "sec-websocket-extensions",
];
