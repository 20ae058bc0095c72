//! What a peer did wrong.

use std::fmt;

/// Why a connection failed. The close frame or the HTTP status that says so has been appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// A frame or a message is larger than allowed.
    TooLarge,
}

impl Violation {
    /// The close code that was sent for it (RFC 6455 section 7.4.1); for what went wrong before the upgrade, 1002.
    pub const fn code(self) -> u16 {
        1009
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message is larger than message_bytes_max (RFC 6455 section 7.4.1)")
    }
}

impl std::error::Error for Violation {}
