//! Reasons of failed connects, and which error an event is.

use std::fmt;

use serde::{Deserialize, Serialize};
use throng_driver::Errno;
use throng_engine::CloseReason;
use throng_measure::ErrorClass;
pub use throng_measure::ErrorKind;
use throng_measure::error_kind::NO_CODE;
use throng_proto::TransportError;
use throng_proto::websocket::Violation;

/// Reason of a failed connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConnectFailure {
    /// No result within the time-out of the step.
    Timeout,
    /// An error of the kernel.
    Errno(Errno),
    /// The server answered the upgrade with this HTTP status.
    Http(u16),
    /// The server's answer to the upgrade violates the protocol.
    Violation,
    /// The server closed the connection instead of answering the upgrade.
    Closed,
    /// The kernel connected the socket to itself: the target's own address and port were its
    /// source.
    SelfConnected,
    /// A value that stands as it is in the upgrade request would have broken it.
    BadValue,
    /// The handshake of TLS failed, with this kind of error.
    Tls(ErrorKind),
    /// A fault of throng itself.
    Internal,
}

impl fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => ErrorKind::ConnectTimeout.fmt(f),
            Self::Errno(errno) => match errno.name() {
                "E?" => write!(f, "errno {}", errno.0),
                name => f.write_str(name),
            },
            Self::Http(status) => f.write_str(&ErrorKind::UpgradeStatus.with(status)),
            Self::Violation => ErrorKind::UpgradeViolation.fmt(f),
            Self::Closed => ErrorKind::UpgradeClosed.fmt(f),
            Self::SelfConnected => ErrorKind::SelfConnected.fmt(f),
            Self::BadValue => ErrorKind::BadValue.fmt(f),
            Self::Tls(kind) => kind.fmt(f),
            Self::Internal => ErrorKind::Internal.fmt(f),
        }
    }
}

/// Returns the name of a close code among the errors: `ws_close_1011`, or `ws_close_none` without a
/// code.
pub(crate) fn close_code_name(code: Option<u16>) -> String {
    let kind = ErrorKind::CloseFrame;
    code.map_or_else(|| kind.with(NO_CODE), |code| kind.with(code))
}

/// Returns the error of a handshake of TLS that ended with `error`.
pub(crate) const fn handshake_error(error: TransportError) -> ErrorKind {
    use TransportError as Cause;
    match error {
        Cause::CertificateExpired | Cause::CertificateNotYetValid => ErrorKind::TlsExpired,
        Cause::CertificateForOtherName => ErrorKind::TlsWrongName,
        Cause::CertificateUnknownIssuer => ErrorKind::TlsUnknownIssuer,
        Cause::CertificateRejected | Cause::CertificateMissing => ErrorKind::TlsCertificate,
        Cause::NoCommonVersion | Cause::NoCommonCipher | Cause::NoCommonProtocol => {
            ErrorKind::TlsNoAgreement
        }
        Cause::HandshakeAlert | Cause::AlertReceived => ErrorKind::TlsAlert,
        Cause::NotTls => ErrorKind::TlsNotSpoken,
        Cause::ClientKey => ErrorKind::TlsClientKey,
        Cause::HandshakeClosed => ErrorKind::TlsClosed,
        _ => ErrorKind::TlsViolation,
    }
}

/// Returns the error for an unexpected end of a connection.
pub(crate) fn end_error(reason: CloseReason) -> ErrorKind {
    match reason {
        CloseReason::Finished | CloseReason::Requested => ErrorKind::ClosedByPeer,
        CloseReason::Failed(Errno::CONN_RESET) => ErrorKind::ResetByPeer,
        CloseReason::Failed(Errno::PIPE) => ErrorKind::SendFailed,
        CloseReason::Failed(_) | CloseReason::ConnectFailed(_) => ErrorKind::SocketError,
        CloseReason::HandshakeTimeout | CloseReason::TransportFailed(_) => {
            ErrorKind::TransportFailed
        }
        CloseReason::Overflow => ErrorKind::SendOverflow,
        CloseReason::Panicked => ErrorKind::Internal,
    }
}

/// Returns the error for a violation on an upgraded connection.
pub(crate) const fn violation_error(violation: Violation) -> ErrorKind {
    match violation.is_too_large() {
        true => ErrorKind::WebSocketTooLarge,
        false => ErrorKind::WebSocketViolation,
    }
}

/// Reports whether a step ended with the error after the server had all the time that the step
/// gives it. A heartbeat belongs to no step.
pub(crate) fn is_step_timeout(kind: ErrorKind) -> bool {
    kind.class() == ErrorClass::Unanswered && kind != ErrorKind::HeartbeatTimeout
}
