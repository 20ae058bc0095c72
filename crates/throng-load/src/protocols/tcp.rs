//! Any bytes over TCP: a stream, on which a user sends bytes and expects bytes.

pub(crate) mod input;
pub(crate) mod session;
pub(crate) mod steps;

use super::{
    CalibrationMessages, CalibrationTraffic, ClientProtocol, MessageForm, PathPlace, Scheme,
    SchemeRules, Starter,
};
use crate::program::LimitedAction;
use crate::user::{self, UserSession};

pub(super) const SCHEME: SchemeRules = SchemeRules {
    name: "tcp",
    secure_name: "tls",
    alpn: None,
    port: None,
    path: PathPlace::Nowhere,
    has_credentials: false,
};

pub(super) const PROTOCOL: ClientProtocol = ClientProtocol {
    names: &["tcp"],
    title: "plain TCP",
    scheme: Scheme::Tcp,
    messages: MessageForm::Bytes,
    session: || UserSession::Tcp(session::ByteStream),
    handshake: None,
    opens_itself: false,
    connect_keys: &["timeout"],
    limits: &[LimitedAction::Send, LimitedAction::Connect],
    in_place_of: |_| None,
    user_bytes: 256,
    // Unread data, and an answer of which it keeps a part.
    held_bytes_max: (user::INBOX_BYTES_MAX + user::ANSWER_BYTES_MAX) as u64,
    calibration: CALIBRATION,
    starter: Starter {
        text: include_str!("tcp/starter.yaml"),
        load: "20 users over TCP",
        edit: "messages",
        claims: |_| false,
    },
};

pub(super) const CALIBRATION: CalibrationTraffic = CalibrationTraffic {
    protocol: "tcp",
    target: "tcp://@",
    begin: &["connect"],
    sent: CalibrationMessages { server: "hold", steps: "send: x" },
    answered: CalibrationMessages { server: "echo", steps: "{send: x}, {expect: x}" },
};
