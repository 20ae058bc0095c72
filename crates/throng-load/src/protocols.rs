//! The protocols that users speak: a file and a folder for each, and the table of them.
//!
//! | of a protocol | what it is |
//! |---|---|
//! | `<name>.rs` | `PROTOCOL`: what others must know of it; `SCHEME`, if it has its own |
//! | `<name>/steps.rs` | `OF_USER` and `OF_RULE`: the steps that its users may take |
//! | `<name>/session.rs` | the session that reads its bytes, if it has its own |
//! | `<name>/input.rs` | answers, faults and what comes unasked, and what a user does then |
//! | `<name>/starter.yaml` | the first scenario, which `throng init` writes |
//!
//! No other file asks which protocol it is: it asks for a property of [`ClientProtocol`].

/// Gives the rows of all protocols to another macro.
///
/// A row has the protocol and its module, its scheme unless that is another protocol's, its session
/// unless another protocol's session reads its bytes, and over WebSockets the function of its
/// `input.rs` that takes their messages. The first protocol of a scheme is the one of a target for
/// which a scenario names none.
macro_rules! with_protocols {
    ($make:ident) => {
        $make! {
            /// Any bytes over TCP.
            Tcp = tcp, scheme Tcp, session Tcp;
            /// Messages over WebSocket.
            Ws = ws, scheme Ws, session Ws, messages message_received;
            /// Phoenix Channels over WebSocket.
            Phoenix = phoenix, messages message_received;
            /// HTTP/1.1 requests.
            Http = http, scheme Http, session Http;
        }
    };
}
pub(crate) use with_protocols;

pub(crate) mod http;
pub(crate) mod input;
pub(crate) mod phoenix;
pub(crate) mod session;
pub(crate) mod tcp;
pub(crate) mod ws;

use std::ops::Deref;

use crate::program::LimitedAction;
use crate::user::UserSession;

macro_rules! protocols {
    ($(
        $(#[doc = $doc:literal])+
        $protocol:ident = $module:ident $(, scheme $scheme:ident)? $(, session $session:ident)?
        $(, messages $read:ident)?;
    )+) => {
        /// Protocol of a connection. It decides the valid steps.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Protocol {
            $( $(#[doc = $doc])+ $protocol, )+
        }

        /// Scheme of a target: what its URL begins with. It says nothing of how a connection is
        /// secured.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Scheme {
            $( $(
                #[doc = concat!("That of `Protocol::", stringify!($protocol), "`.")]
                $scheme,
            )? )+
        }

        /// The rows of all protocols.
        pub const PROTOCOLS: &[&ClientProtocol] = &[ $( &$module::PROTOCOL, )+ ];

        impl Protocol {
            /// All protocols, in the order in which mistakes and documents name them.
            pub const ALL: &[Self] = &[ $( Self::$protocol, )+ ];

            /// Returns the protocol's row.
            pub const fn row(self) -> &'static ClientProtocol {
                PROTOCOLS[self as usize]
            }
        }

        impl Scheme {
            /// All schemes.
            pub const ALL: &[Self] = &[ $( $( Self::$scheme, )? )+ ];

            /// Returns what the reader of targets must know of the scheme.
            pub(crate) const fn rules(self) -> &'static SchemeRules {
                match self { $( $( Self::$scheme => &$module::SCHEME, )? )+ }
            }
        }
    };
}

with_protocols!(protocols);

/// A protocol that users speak: what the rest of the program must know of it.
#[derive(Debug)]
pub struct ClientProtocol {
    /// Names in a scenario. The first one is shown.
    pub names: &'static [&'static str],
    /// Name in a sentence.
    pub title: &'static str,
    /// Scheme of its targets.
    pub scheme: Scheme,
    /// Form of what its users send and receive.
    pub messages: MessageForm,
    /// Creates the session of a new connection, which reads its bytes.
    pub(crate) session: fn() -> UserSession,
    /// Answer that opens a connection after TCP; `None` if TCP alone opens it.
    pub handshake: Option<&'static str>,
    /// True if its first request opens the connection: it has no step `connect`.
    pub opens_itself: bool,
    /// Keys of its step `connect`.
    pub(crate) connect_keys: &'static [&'static str],
    /// What limits may count of its users, their messages first.
    pub(crate) limits: &'static [LimitedAction],
    /// Returns what to do in place of a step of other protocols.
    pub(crate) in_place_of: fn(step: &str) -> Option<&'static str>,
    /// Most bytes that a user without unread data takes.
    pub user_bytes: u64,
    /// Most bytes that a user holds of what the target sent.
    pub(crate) held_bytes_max: u64,
    /// Traffic that measures what a machine can do.
    pub calibration: CalibrationTraffic,
    /// First scenario for a server.
    pub starter: Starter,
}

/// What a user expects whose connection is not established.
pub(crate) const TCP_CONNECTION: &str = "a TCP connection";

/// Form of what users send and receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageForm {
    /// A stream of bytes, which has no messages.
    Bytes,
    /// Whole messages. One that no step waits for is kept for a later step.
    Messages,
    /// Events of channels. A step waits for one and skips others.
    Events,
    /// Answers to requests.
    Answers,
}

impl MessageForm {
    /// Reports whether messages may arrive that answer nothing, such as those of a broadcast.
    pub fn come_unasked(self) -> bool {
        matches!(self, Self::Messages | Self::Events)
    }
}

/// What the reader of targets must know of a scheme.
#[derive(Debug)]
pub(crate) struct SchemeRules {
    /// Name, before `://`.
    pub(crate) name: &'static str,
    /// Name of the same scheme over TLS.
    pub(crate) secure_name: &'static str,
    /// Application protocol that is offered over TLS, if there is one.
    pub(crate) alpn: Option<&'static str>,
    /// Port of a plain target that has none; `None` if it must have one.
    pub(crate) port: Option<u16>,
    /// Place of the paths.
    pub(crate) path: PathPlace,
    /// True if a target may have user and password.
    pub(crate) has_credentials: bool,
}

/// Place of the paths of a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathPlace {
    /// There are none.
    Nowhere,
    /// The target has one.
    Target,
    /// Each request has its own.
    Request,
}

/// Traffic that measures what a machine can do. Its server is throng's own. A protocol that throng
/// has no server for is calibrated with the traffic of another, the most similar one.
#[derive(Debug)]
pub struct CalibrationTraffic {
    /// Name of the protocol of this traffic.
    pub protocol: &'static str,
    /// Target, in which `@` stands for the address of the server.
    pub target: &'static str,
    /// First steps of a user, after which it may send.
    pub begin: &'static [&'static str],
    /// Messages that are sent without a wait.
    pub sent: CalibrationMessages,
    /// Messages whose answers the users wait for.
    pub answered: CalibrationMessages,
}

/// Messages of a calibration.
#[derive(Debug)]
pub struct CalibrationMessages {
    /// Kind of the server: the one that does least with such a message.
    pub server: &'static str,
    /// Steps that send one.
    pub steps: &'static str,
}

/// First scenario for a server.
#[derive(Debug)]
pub struct Starter {
    /// Scenario, in which `TARGET` and `PATH` are placeholders.
    pub text: &'static str,
    /// Users of the load.
    pub load: &'static str,
    /// Parts that differ from server to server.
    pub edit: &'static str,
    /// Reports whether a path leads to a server of this protocol, where the scheme is that of
    /// several.
    pub claims: fn(path: &str) -> bool,
}

impl Protocol {
    /// Returns the protocol of a target's scheme, for a scenario that names none.
    pub fn of(scheme: Scheme) -> Self {
        Self::find(|protocol| protocol.scheme == scheme)
    }

    /// Returns the protocol that a server at `path` of a target with this scheme is likely to
    /// speak.
    pub fn likely(scheme: Scheme, path: &str) -> Self {
        let claims = |one: &ClientProtocol| one.scheme == scheme && (one.starter.claims)(path);
        let claiming = Self::ALL.iter().find(|protocol| claims(protocol));
        claiming.copied().unwrap_or_else(|| Self::of(scheme))
    }

    fn find(is_meant: impl Fn(&ClientProtocol) -> bool) -> Self {
        Self::ALL.iter().copied().find(|protocol| is_meant(protocol)).unwrap_or_default()
    }

    /// Returns the scheme of the protocol's targets.
    pub const fn scheme(self) -> Scheme {
        self.row().scheme
    }

    /// Returns the protocol's name in a scenario.
    pub const fn name(self) -> &'static str {
        self.row().names[0]
    }
}

impl Default for Protocol {
    fn default() -> Self {
        Self::ALL[0]
    }
}

/// A protocol has the properties of its row.
impl Deref for Protocol {
    type Target = ClientProtocol;

    fn deref(&self) -> &ClientProtocol {
        self.row()
    }
}

impl Scheme {
    /// Returns the text before `://`.
    pub const fn as_str(self) -> &'static str {
        self.rules().name
    }

    /// Returns the text before `://` of a target over TLS.
    pub const fn over_tls(self) -> &'static str {
        self.rules().secure_name
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn each_name_is_that_of_one_protocol() {
        let all = || PROTOCOLS.iter().flat_map(|row| row.names);
        assert_eq!(all().collect::<BTreeSet<_>>().len(), all().count());
        for protocol in Protocol::ALL {
            assert!(format!("{protocol:?}").eq_ignore_ascii_case(protocol.name()));
        }
    }

    #[test]
    fn each_scheme_has_a_protocol_of_its_own() {
        for scheme in Scheme::ALL {
            assert_eq!(Protocol::of(*scheme).scheme, *scheme);
        }
        assert_eq!(Protocol::of(Scheme::Ws), Protocol::Ws, "not the other one of this scheme");
    }

    #[test]
    fn each_starter_is_a_scenario_of_its_protocol() {
        for protocol in Protocol::ALL {
            let target = format!("{}://h:1", protocol.scheme().as_str());
            let text = protocol.starter.text.replace("TARGET", &target).replace("PATH", "\"/\"");
            let scenario =
                Scenario::parse(&text, "starter.yaml").unwrap_or_else(|it| panic!("{it}"));
            assert_eq!(scenario.protocol, *protocol);
        }
    }

    #[test]
    fn a_protocol_that_opens_itself_has_no_connect() {
        for protocol in Protocol::ALL {
            let has = protocol.limits.contains(&LimitedAction::Connect);
            assert_eq!(has, !protocol.opens_itself, "{protocol:?}");
            assert_eq!(protocol.connect_keys.is_empty(), protocol.opens_itself, "{protocol:?}");
        }
    }
}
