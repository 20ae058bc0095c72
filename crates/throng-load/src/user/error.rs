//! Kinds of failed connects, and of errors on established connections.

use std::fmt;

use serde::{Deserialize, Serialize};
use throng_driver::Errno;
use throng_engine::CloseReason;
use throng_proto::websocket::Violation;

use crate::program::ChannelRequestKind;

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
    /// A fault of throng itself.
    Internal,
}

impl fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => f.write_str("timeout"),
            Self::Errno(errno) => match errno.name() {
                "E?" => write!(f, "errno {}", errno.0),
                name => f.write_str(name),
            },
            Self::Http(status) => write!(f, "http_{status}"),
            Self::Violation => f.write_str("upgrade_violation"),
            Self::Closed => f.write_str("upgrade_closed"),
            Self::SelfConnected => f.write_str("self_connected"),
            Self::BadValue => f.write_str(ErrorKind::BadValue.name()),
            Self::Internal => f.write_str("internal"),
        }
    }
}

/// Returns the name of a close code among the errors: `ws_close_1011`, or `ws_close_none` without a
/// code.
pub(crate) fn close_code_name(code: Option<u16>) -> String {
    code.map_or_else(|| "ws_close_none".to_owned(), |code| format!("ws_close_{code}"))
}

/// Errors of an established connection. A mismatch and a time-out are different errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErrorKind {
    /// The server closed the connection unexpectedly.
    ClosedByPeer,
    /// The server reset the connection.
    ResetByPeer,
    /// The answer that `expect` waits for did not arrive in time.
    ExpectTimeout,
    /// Something else arrived.
    ExpectMismatch,
    /// The kernel refused to send.
    SendFailed,
    /// The server did not accept what was sent.
    SendOverflow,
    /// More than `inbox_bytes_max` arrived while no step waited for it.
    InboxOverflow,
    /// What users of a core keep of what the target sent exceeded `held_bytes_max`.
    HeldOverflow,
    /// A step needed a connection that an earlier error had closed (`on_error: continue`).
    NotConnected,
    /// The kernel closed the connection with another error.
    SocketError,
    /// A fault of throng itself.
    Internal,
    /// The server violated the WebSocket protocol.
    WebSocketViolation,
    /// A message of the server was too large, or the unfinished messages of a core were, all
    /// together.
    WebSocketTooLarge,
    /// The server sent a message that is not valid in Phoenix Channels.
    BadMessage,
    /// A heartbeat was not answered until the next one was due.
    HeartbeatTimeout,
    /// A join was answered with another status than ok.
    JoinRefused,
    /// A join was not answered in time.
    JoinTimeout,
    /// A push was answered with another status than ok.
    PushRefused,
    /// A push was not answered in time.
    PushTimeout,
    /// A leave was answered with another status than ok.
    LeaveRefused,
    /// A leave was not answered in time.
    LeaveTimeout,
    /// A step needed a channel that an earlier error had closed (`on_error: continue`).
    NotJoined,
    /// A channel of the user crashed (`phx_error`).
    ChannelError,
    /// A channel of the user was closed (`phx_close`).
    ChannelClosed,
    /// The push of a probe was answered with another status than ok.
    ProbeRefused,
    /// The other users that a user waited for did not come in time.
    CueTimeout,
    /// An HTTP request was answered with another status than expected.
    HttpStatus,
    /// An HTTP request was answered with the expected status and another body, or without a header
    /// that is captured.
    HttpMismatch,
    /// An HTTP request was not answered in time.
    HttpTimeout,
    /// The server closed the connection before it had answered an HTTP request.
    HttpClosed,
    /// The answer to an HTTP request is not HTTP/1.1.
    HttpViolation,
    /// The answer to an HTTP request exceeds a limit.
    HttpTooLarge,
    /// The server sent bytes, or a whole answer, on a connection of HTTP requests that none of them
    /// asked for.
    HttpUnasked,
    /// A value of the user cannot be sent where it stands. Nothing was sent.
    BadValue,
    /// A ping was not answered in time.
    PingTimeout,
}

impl ErrorKind {
    /// All kinds, in the order of [`CoreStats::errors`](crate::generator::CoreStats::errors).
    pub const ALL: [Self; 35] = [
        Self::ClosedByPeer,
        Self::ResetByPeer,
        Self::ExpectTimeout,
        Self::ExpectMismatch,
        Self::SendFailed,
        Self::SendOverflow,
        Self::InboxOverflow,
        Self::HeldOverflow,
        Self::NotConnected,
        Self::SocketError,
        Self::Internal,
        Self::WebSocketViolation,
        Self::WebSocketTooLarge,
        Self::BadMessage,
        Self::HeartbeatTimeout,
        Self::JoinRefused,
        Self::JoinTimeout,
        Self::PushRefused,
        Self::PushTimeout,
        Self::LeaveRefused,
        Self::LeaveTimeout,
        Self::NotJoined,
        Self::ChannelError,
        Self::ChannelClosed,
        Self::ProbeRefused,
        Self::CueTimeout,
        Self::HttpStatus,
        Self::HttpMismatch,
        Self::HttpTimeout,
        Self::HttpClosed,
        Self::HttpViolation,
        Self::HttpTooLarge,
        Self::HttpUnasked,
        Self::BadValue,
        Self::PingTimeout,
    ];

    /// Returns the name of the kind in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClosedByPeer => "closed_by_peer",
            Self::ResetByPeer => "reset_by_peer",
            Self::ExpectTimeout => "expect_timeout",
            Self::ExpectMismatch => "expect_mismatch",
            Self::SendFailed => "send_failed",
            Self::SendOverflow => "send_overflow",
            Self::InboxOverflow => "inbox_overflow",
            Self::HeldOverflow => "held_overflow",
            Self::NotConnected => "not_connected",
            Self::SocketError => "socket_error",
            Self::Internal => "internal",
            Self::WebSocketViolation => "ws_violation",
            Self::WebSocketTooLarge => "ws_too_large",
            Self::BadMessage => "bad_message",
            Self::HeartbeatTimeout => "heartbeat_timeout",
            Self::JoinRefused => "join_refused",
            Self::JoinTimeout => "join_timeout",
            Self::PushRefused => "push_refused",
            Self::PushTimeout => "push_timeout",
            Self::LeaveRefused => "leave_refused",
            Self::LeaveTimeout => "leave_timeout",
            Self::NotJoined => "not_joined",
            Self::ChannelError => "channel_error",
            Self::ChannelClosed => "channel_closed",
            Self::ProbeRefused => "probe_refused",
            Self::CueTimeout => "cue_timeout",
            Self::HttpStatus => "http_status",
            Self::HttpMismatch => "http_mismatch",
            Self::HttpTimeout => "http_timeout",
            Self::HttpClosed => "http_closed",
            Self::HttpViolation => "http_violation",
            Self::HttpTooLarge => "http_too_large",
            Self::HttpUnasked => "http_unasked",
            Self::BadValue => "bad_value",
            Self::PingTimeout => "ping_timeout",
        }
    }

    /// Reports whether the server had all the time that it was given.
    pub(crate) const fn is_timeout(self) -> bool {
        matches!(
            self,
            Self::ExpectTimeout
                | Self::JoinTimeout
                | Self::PushTimeout
                | Self::LeaveTimeout
                | Self::HttpTimeout
                | Self::PingTimeout
        )
    }

    /// Returns the error for an unexpected end of a connection.
    pub(crate) fn of(reason: CloseReason) -> Self {
        match reason {
            CloseReason::Finished | CloseReason::Requested => Self::ClosedByPeer,
            CloseReason::Failed(Errno::CONN_RESET) => Self::ResetByPeer,
            CloseReason::Failed(Errno::PIPE) => Self::SendFailed,
            CloseReason::Failed(_) | CloseReason::ConnectFailed(_) => Self::SocketError,
            CloseReason::Overflow => Self::SendOverflow,
            CloseReason::Panicked => Self::Internal,
        }
    }

    /// Returns the error for a violation on an upgraded connection.
    pub(crate) const fn of_violation(violation: Violation) -> Self {
        match violation.is_too_large() {
            true => Self::WebSocketTooLarge,
            false => Self::WebSocketViolation,
        }
    }

    /// Returns the error of a request that the server refused.
    pub(crate) const fn refused(kind: ChannelRequestKind) -> Self {
        match kind {
            ChannelRequestKind::Join => Self::JoinRefused,
            ChannelRequestKind::Push => Self::PushRefused,
            ChannelRequestKind::Leave => Self::LeaveRefused,
        }
    }

    /// Returns the error of a request that the server did not answer in time.
    pub(crate) const fn timeout(kind: ChannelRequestKind) -> Self {
        match kind {
            ChannelRequestKind::Join => Self::JoinTimeout,
            ChannelRequestKind::Push => Self::PushTimeout,
            ChannelRequestKind::Leave => Self::LeaveTimeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_place_and_name() {
        for (index, kind) in ErrorKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
        }
        let names: std::collections::HashSet<_> =
            ErrorKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), ErrorKind::ALL.len());
        for name in names {
            let threshold = format!("errors.{name} < 1").parse::<throng_report::Threshold>();
            assert!(threshold.is_ok(), "{name} cannot be a threshold");
        }
    }
}
