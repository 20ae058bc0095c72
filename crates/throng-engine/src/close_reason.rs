//! Reasons why a socket closes.

use throng_driver::Errno;

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
    /// The peer is too slow: more than `pending_bytes_max` bytes wait for it, or it did not take
    /// them within `drain_timeout` after the close.
    Overflow,
    /// A callback panicked.
    Panicked,
}
