//! Reasons why a socket closes.

use throng_driver::{Errno, SocketClose};
use throng_proto::TransportError;

/// Reason why a socket is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The app requested it.
    Requested,
    /// The peer finished sending, and the app closed in turn.
    Finished,
    /// The connect failed.
    ConnectFailed(Errno),
    /// A receive or a send failed.
    Failed(Errno),
    /// The handshake of the transport took longer than `handshake_timeout`. The connection was
    /// never open.
    HandshakeTimeout,
    /// The transport failed: during its handshake, or because of what the peer sent later.
    TransportFailed(TransportError),
    /// The peer is too slow: more than `pending_bytes_max` bytes wait for it, or it did not take
    /// them within `drain_timeout` after the close.
    Overflow,
    /// A callback panicked.
    Panicked,
}

impl CloseReason {
    /// Reports whether the peer gets what waits for it before the socket closes.
    pub(crate) fn is_orderly(self, how: SocketClose) -> bool {
        how == SocketClose::Finish && matches!(self, Self::Requested | Self::Finished)
    }
}
