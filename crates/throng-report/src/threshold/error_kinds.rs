//! The kinds of errors that a threshold may name.

/// Kinds of errors: failed connects, and the names that the generator gives to its other errors.
pub(super) const ERROR_KINDS: [&str; 24] = [
    "connect",
    "closed_by_peer",
    "reset_by_peer",
    "expect_timeout",
    "expect_mismatch",
    "send_failed",
    "send_overflow",
    "inbox_overflow",
    "not_connected",
    "socket_error",
    "internal",
    "ws_violation",
    "bad_message",
    "heartbeat_timeout",
    "join_refused",
    "join_timeout",
    "push_refused",
    "push_timeout",
    "leave_refused",
    "leave_timeout",
    "not_joined",
    "channel_error",
    "channel_closed",
    "probe_refused",
];
