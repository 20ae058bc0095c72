//! All kinds of errors of a run, each in one row: constant, name in the run file, operation, class,
//! and what a user received instead.
//!
//! The generator counts by this table, thresholds name its rows, and rules and labs query it. A
//! name of a run file is read by [`ErrorKey::parse`].

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::operation::Operation;

/// Class of an error: whose doing it is, and what became of the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The server ended the connection.
    Ended,
    /// No answer arrived, and the user gave up waiting for it.
    Unanswered,
    /// Something arrived that the user did not ask for, or that breaks a rule.
    Wrong,
    /// The user could not send, or needed what an earlier error had ended.
    NotSent,
    /// Other users did not do what the user waited for.
    Users,
    /// A limit or a fault of throng, or an error of the kernel.
    Own,
}

macro_rules! error_kinds {
    (
        of_users { $( $(#[doc = $doc:literal])+
            $kind:ident = $name:literal [$($operation:ident)?] $class:ident $got:literal; )+ }
        of_connects { $( $(#[doc = $cdoc:literal])+
            $ckind:ident = $cname:literal [$($coperation:ident)?] $cclass:ident $cgot:literal; )+ }
    ) => {
        /// Kind of an error. A mismatch and a time-out are different errors.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum ErrorKind {
            $( $(#[doc = $doc])+ $kind, )+
            $( $(#[doc = $cdoc])+ $ckind, )+
        }

        impl ErrorKind {
            /// Kinds of errors of established connections and their users, in the order of the
            /// generator's counts.
            pub const OF_USERS: [Self; [$($name),+].len()] = [$(Self::$kind),+];

            /// Kinds of failed connects, of which there is no count by kind, and kinds whose names
            /// have a value behind them.
            pub const OTHERS: [Self; [$($cname),+].len()] = [$(Self::$ckind),+];

            /// Returns the name in reports. Where a value belongs to it, it stands behind the name:
            /// [`Self::with`].
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$kind => $name, )+
                    $( Self::$ckind => $cname, )+
                }
            }

            /// Returns the operation that fails; `None` if it may be any.
            pub const fn operation(self) -> Option<Operation> {
                match self {
                    $( Self::$kind => error_kinds!(@operation $($operation)?), )+
                    $( Self::$ckind => error_kinds!(@operation $($coperation)?), )+
                }
            }

            /// Returns the class.
            pub const fn class(self) -> ErrorClass {
                match self {
                    $( Self::$kind => ErrorClass::$class, )+
                    $( Self::$ckind => ErrorClass::$cclass, )+
                }
            }

            /// Returns what the user received instead, for people. It is `""` where only what
            /// arrived can say it.
            pub const fn got(self) -> &'static str {
                match self {
                    $( Self::$kind => $got, )+
                    $( Self::$ckind => $cgot, )+
                }
            }
        }
    };
    (@operation) => { None };
    (@operation $operation:ident) => { Some(Operation::$operation) };
}

error_kinds! {
    of_users {
        /// The server closed the connection unexpectedly.
        ClosedByPeer = "closed_by_peer" [] Ended "the end of the connection (FIN)";
        /// The server reset the connection.
        ResetByPeer = "reset_by_peer" [] Ended "a reset of the connection (RST)";
        /// The answer that `expect` waits for did not arrive in time.
        ExpectTimeout = "expect_timeout" [Message] Unanswered "nothing";
        /// Something else arrived.
        ExpectMismatch = "expect_mismatch" [Message] Wrong "";
        /// The kernel refused to send.
        SendFailed = "send_failed" [] NotSent "EPIPE: the connection is closed";
        /// The server did not accept what was sent.
        SendOverflow = "send_overflow" [] NotSent
            "no acceptance of what was sent: the send queue is full";
        /// More than `inbox_bytes_max` arrived while no step waited for it.
        InboxOverflow = "inbox_overflow" [] Own
            "more messages than the user keeps while no step waits";
        /// What users of a core keep of what the target sent exceeded `held_bytes_max`.
        HeldOverflow = "held_overflow" [] Own
            "more than the users of a core may keep together (held_bytes_max)";
        /// A step needed a connection that an earlier error had closed (`on_error: continue`).
        NotConnected = "not_connected" [] NotSent "no connection: an earlier error has closed it";
        /// The kernel closed the connection with another error.
        SocketError = "socket_error" [] Own "an error of the socket";
        /// The transport failed: its handshake, or a record of the server.
        TransportFailed = "transport_failed" [] Wrong "a record of TLS that is wrong or incomplete";
        /// A fault of throng itself.
        Internal = "internal" [] Own "a fault of throng itself";
        /// The server violated the WebSocket protocol.
        WebSocketViolation = "ws_violation" [] Wrong "";
        /// A message of the server was too large, or the unfinished messages of a core were, all
        /// together.
        WebSocketTooLarge = "ws_too_large" [] Wrong "";
        /// The server sent a message that is not valid in Phoenix Channels.
        BadMessage = "bad_message" [] Wrong "";
        /// A join was answered with another status than ok.
        JoinRefused = "join_refused" [Join] Wrong "";
        /// A push was answered with another status than ok.
        PushRefused = "push_refused" [Push] Wrong "";
        /// A leave was answered with another status than ok.
        LeaveRefused = "leave_refused" [] Wrong "";
        /// A push was not answered in time.
        PushTimeout = "push_timeout" [Push] Unanswered "nothing";
        /// A join was not answered in time.
        JoinTimeout = "join_timeout" [Join] Unanswered "nothing";
        /// A leave was not answered in time.
        LeaveTimeout = "leave_timeout" [] Unanswered "nothing";
        /// A heartbeat was not answered until the next one was due.
        HeartbeatTimeout = "heartbeat_timeout" [] Unanswered "nothing";
        /// A step needed a channel that an earlier error had closed (`on_error: continue`).
        NotJoined = "not_joined" [] NotSent "no channel: an earlier error has ended it";
        /// A channel of the user crashed (`phx_error`).
        ChannelError = "channel_error" [] Wrong "phx_error: the channel crashed";
        /// A channel of the user was closed (`phx_close`).
        ChannelClosed = "channel_closed" [] Wrong "phx_close: the channel was closed";
        /// The push of a probe was answered with another status than ok.
        ProbeRefused = "probe_refused" [Broadcast] Wrong "";
        /// The other users that a user waited for did not come in time.
        CueTimeout = "cue_timeout" [] Users "too few other users, or no signal";
        /// An HTTP request was answered with another status than expected. The status stands behind
        /// the name.
        HttpStatus = "http_status" [Http] Wrong "";
        /// An HTTP request was answered with the expected status and another body, or without a
        /// header that is captured.
        HttpMismatch = "http_mismatch" [Http] Wrong "";
        /// An HTTP request was not answered in time.
        HttpTimeout = "http_timeout" [Http] Unanswered "no complete answer";
        /// The server closed the connection before it had answered an HTTP request.
        HttpClosed = "http_closed" [Http] Ended
            "the end of the connection (FIN) before a complete answer";
        /// The answer to an HTTP request is not HTTP/1.1.
        HttpViolation = "http_violation" [Http] Wrong "";
        /// The answer to an HTTP request exceeds a limit.
        HttpTooLarge = "http_too_large" [Http] Wrong "";
        /// The server sent bytes, or a whole answer, on a connection of HTTP requests that none of
        /// them asked for.
        HttpUnasked = "http_unasked" [Http] Wrong "";
        /// A value of the user cannot be sent where it stands. Nothing was sent.
        BadValue = "bad_value" [] NotSent "a value that cannot be sent";
        /// A ping was not answered in time.
        PingTimeout = "ping_timeout" [Message] Unanswered "nothing";
    }
    of_connects {
        /// All failed connects, where they are counted beside the errors of users.
        Connect = "connect" [Connect] Own "";
        /// A connect, or the upgrade on it, was not answered in time.
        ConnectTimeout = "timeout" [Connect] Unanswered "nothing";
        /// The server answered the upgrade with another status than 101. The status stands behind
        /// the name.
        UpgradeStatus = "http" [Connect] Wrong "";
        /// The answer to the upgrade violates the protocol.
        UpgradeViolation = "upgrade_violation" [Connect] Wrong "";
        /// The server closed the connection instead of answering the upgrade.
        UpgradeClosed = "upgrade_closed" [Connect] Ended "the end of the connection (FIN)";
        /// The kernel connected the socket to itself.
        SelfConnected = "self_connected" [Connect] Own "a connection with itself";
        /// The server's certificate has expired, or is not valid yet.
        TlsExpired = "tls_expired" [Connect] Wrong
            "a certificate that is not valid now: renew it, or check the clocks of both machines";
        /// The server's certificate is for other names.
        TlsWrongName = "tls_wrong_name" [Connect] Wrong
            "a certificate for other names: set `server_name` in `tls` to one of its names";
        /// No trusted authority issued the server's certificate, or one between is missing.
        TlsUnknownIssuer = "tls_unknown_issuer" [Connect] Wrong
            "a certificate of an unknown issuer: name its authority with `ca` in `tls`, or send \
             the whole chain from the server";
        /// The server's certificate is missing, or wrong in another way.
        TlsCertificate = "tls_certificate" [Connect] Wrong
            "no valid certificate of a server: `verify: none` in `tls` takes any";
        /// Server and generator have no version, cipher or application protocol in common.
        TlsNoAgreement = "tls_no_agreement" [Connect] Wrong
            "no version, cipher or protocol in common: see `min`, `max` and `alpn` in `tls`";
        /// The server ended the handshake with an alert.
        TlsAlert = "tls_alert" [Connect] Wrong
            "an alert: the server refuses the handshake, and its log may say why (`server_name`, \
             `min`, `max` and `alpn` in `tls` may differ from what it allows)";
        /// What the server sent is not TLS.
        TlsNotSpoken = "tls_not_spoken" [Connect] Wrong
            "bytes that are not TLS: the port is a plain one, use the plain scheme";
        /// The server closed the connection during the handshake.
        TlsClosed = "tls_closed" [Connect] Ended
            "the end of the connection (FIN) during the TLS handshake";
        /// The handshake did not end in time.
        TlsTimeout = "tls_timeout" [Connect] Unanswered
            "nothing: TCP is established, and the TLS handshake did not end";
        /// The certificate that the user is to show, or its key, cannot be read.
        TlsClientKey = "tls_client_key" [Connect] Own
            "no certificate or key of the user to read: see the files of `client` in `tls`";
        /// The server broke the rules of TLS in the handshake, or the generator failed in it.
        TlsViolation = "tls_violation" [Connect] Wrong
            "a handshake that breaks the rules of TLS";
        /// The server sent a close frame too early. Its code, or `none`, stands behind the name.
        CloseFrame = "ws_close" [] Ended "a close frame";
    }
}

impl ErrorKind {
    /// Returns all kinds.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::OF_USERS.into_iter().chain(Self::OTHERS)
    }

    /// Returns the kinds of users that waited for an answer of the target, and gave up, in the
    /// order in which findings show them.
    pub fn unanswered() -> impl Iterator<Item = Self> {
        Self::OF_USERS.into_iter().filter(|kind| kind.class() == ErrorClass::Unanswered)
    }

    /// Returns the name with the value that belongs to it: `ws_close_1011`, `http_status.429`.
    pub fn with(self, value: impl fmt::Display) -> String {
        format!("{}{}{value}", self.name(), self.separator().unwrap_or("."))
    }

    /// Returns the text between the name and its value; `None` if no value belongs to it.
    const fn separator(self) -> Option<&'static str> {
        match self {
            Self::HttpStatus => Some("."),
            Self::CloseFrame | Self::UpgradeStatus => Some("_"),
            _ => None,
        }
    }

    /// Returns the value behind the name of this kind.
    fn value_in(self, name: &str) -> Option<&str> {
        let value = name.strip_prefix(self.name())?.strip_prefix(self.separator()?)?;
        let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        let is_value = match self {
            Self::CloseFrame => is_number || value == NO_CODE,
            Self::UpgradeStatus => is_number,
            _ => true,
        };
        is_value.then_some(value)
    }
}

/// Value of a close frame without a code.
pub const NO_CODE: &str = "none";

impl AsRef<str> for ErrorKind {
    fn as_ref(&self) -> &str {
        self.name()
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<ErrorKind> for String {
    fn from(kind: ErrorKind) -> Self {
        kind.name().to_owned()
    }
}

/// The name of an error in a run file: of a kind of the table, an errno (`ECONNREFUSED`), or of a
/// kind that only a newer version knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorKey<'a> {
    name: &'a str,
    /// The kind; `None` for an errno and for an unknown name.
    pub kind: Option<ErrorKind>,
    /// The value behind the name: the close code of `ws_close_1011`, the status of
    /// `http_status.429`.
    pub value: Option<&'a str>,
}

impl<'a> ErrorKey<'a> {
    /// Reads a name of `errors` or `connect_failed`.
    pub fn parse(name: &'a str) -> Self {
        let whole = ErrorKind::all().find(|kind| kind.name() == name);
        let with_value =
            || ErrorKind::all().find_map(|kind| Some((Some(kind), Some(kind.value_in(name)?))));
        let (kind, value) = match whole {
            Some(kind) => (Some(kind), None),
            None => with_value().unwrap_or_default(),
        };
        Self { name, kind, value }
    }

    /// Returns the value, if the error is of this kind.
    pub fn value_of(self, kind: ErrorKind) -> Option<&'a str> {
        self.value.filter(|_| self.kind == Some(kind))
    }

    /// Reports whether the error is of this class.
    pub fn is(self, class: ErrorClass) -> bool {
        self.kind.is_some_and(|kind| kind.class() == class)
    }

    /// Reports whether the error is a wait that was given up: for an answer, a connect or other
    /// users.
    pub fn is_time_out(self) -> bool {
        let is_known = self.is(ErrorClass::Unanswered) || self.is(ErrorClass::Users);
        is_known || self.is_connect_time_out() || self.name.ends_with("_timeout")
    }

    /// Reports whether the error is a connect that had no answer in time.
    pub fn is_connect_time_out(self) -> bool {
        self.kind == Some(ErrorKind::ConnectTimeout) || self.name == CONNECT_TIMED_OUT
    }
}

/// Errno of a connect whose SYN got no answer.
const CONNECT_TIMED_OUT: &str = "ETIMEDOUT";

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_kind_has_its_own_place_and_name() {
        for (index, kind) in ErrorKind::all().enumerate() {
            assert_eq!(kind as usize, index);
        }
        let names: HashSet<_> = ErrorKind::all().map(ErrorKind::name).collect();
        assert_eq!(names.len(), ErrorKind::all().count());
    }

    #[test]
    fn every_name_that_a_kind_makes_is_read_back() {
        for kind in ErrorKind::all() {
            assert_eq!(ErrorKey::parse(kind.name()).kind, Some(kind));
            if kind.separator().is_some() {
                let name = kind.with(429);
                let key = ErrorKey::parse(&name);
                assert_eq!((key.kind, key.value), (Some(kind), Some("429")), "{name}");
            }
        }
        assert_eq!(ErrorKey::parse("ws_close_none").value_of(ErrorKind::CloseFrame), Some("none"));
        assert_eq!(ErrorKind::HttpStatus.with(429), "http_status.429");
        assert_eq!(ErrorKind::UpgradeStatus.with(503), "http_503");
    }

    #[test]
    fn a_name_that_no_kind_makes_is_of_no_kind() {
        for name in ["", "ECONNRESET", "http_statusless.1", "http_", "ws_close_x", "ws_closed"] {
            assert_eq!(ErrorKey::parse(name), ErrorKey { name, kind: None, value: None });
        }
    }

    #[test]
    fn a_time_out_is_known_by_its_class_and_an_unknown_one_by_its_name() {
        for name in ["expect_timeout", "cue_timeout", "timeout", "ETIMEDOUT", "newer_timeout"] {
            assert!(ErrorKey::parse(name).is_time_out(), "{name}");
        }
        for name in ["expect_mismatch", "ECONNREFUSED", "ws_close_3008"] {
            assert!(!ErrorKey::parse(name).is_time_out(), "{name}");
        }
        // Every name that says so is of such a class: the rule for unknown names fits the table.
        for kind in ErrorKind::all().filter(|kind| kind.name().ends_with("timeout")) {
            assert!(matches!(kind.class(), ErrorClass::Unanswered | ErrorClass::Users), "{kind}");
        }
    }
}
