//! The errno table: errors of sockets, their names, and their causes.

use std::fmt;

use serde::{Deserialize, Serialize};
use throng_measure::Limit;

/// Error number of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Errno(pub i32);

/// Cause of an error, which decides the reaction to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// Temporary: try again at the next event.
    Transient,
    /// The peer or the network: this connection ends, and nothing else.
    Peer,
    /// A limit of this machine: pause, and continue when resources are free.
    Limit,
    /// This program: a wrong address or a wrong option.
    Misuse,
}

macro_rules! table {
    ($($(#[$meta:meta])* $constant:ident = $name:ident, $blame:ident, $text:literal;)*) => {
        impl Errno {
            $($(#[$meta])* #[doc = $text] pub const $constant: Self = Self(libc::$name);)*

            /// Returns the symbol, such as `ECONNREFUSED`; `E?` for a number outside the table.
            pub const fn name(self) -> &'static str {
                match self.0 { $(libc::$name => stringify!($name),)* _ => "E?" }
            }

            /// Returns a description of the error.
            pub const fn text(self) -> &'static str {
                match self.0 { $(libc::$name => $text,)* _ => "an unexpected error" }
            }

            /// Returns the cause. An error outside the table counts as the peer's: it ends one
            /// connection, not the core.
            pub const fn blame(self) -> Blame {
                match self.0 { $(libc::$name => Blame::$blame,)* _ => Blame::Peer }
            }
        }
    };
}

table! {
    AGAIN = EAGAIN, Transient, "no data or no room now";
    INTR = EINTR, Transient, "interrupted by a signal";
    IN_PROGRESS = EINPROGRESS, Transient, "the connect is in progress";
    CONN_ABORTED = ECONNABORTED, Peer, "the connection ended before it was accepted";
    CONN_REFUSED = ECONNREFUSED, Peer, "no process listens at this address";
    CONN_RESET = ECONNRESET, Peer, "the peer reset the connection";
    PIPE = EPIPE, Peer, "the peer receives no more bytes";
    TIMED_OUT = ETIMEDOUT, Peer, "the peer did not answer";
    HOST_UNREACHABLE = EHOSTUNREACH, Peer, "no route to the host";
    NET_UNREACHABLE = ENETUNREACH, Peer, "no route to the network";
    NET_DOWN = ENETDOWN, Peer, "the network is down";
    HOST_DOWN = EHOSTDOWN, Peer, "the host is down";
    PROTOCOL = EPROTO, Peer, "protocol error";
    NOT_CONNECTED = ENOTCONN, Peer, "not connected";
    TABLE_FULL = EMFILE, Limit, "the fd table is full";
    SYSTEM_FULL = ENFILE, Limit, "the system's file table is full";
    NO_BUFFERS = ENOBUFS, Limit, "the kernel has no buffer space";
    NO_MEMORY = ENOMEM, Limit, "the kernel has no memory";
    NO_SPACE = ENOSPC, Limit, "no epoll watches are left";
    ADDR_NOT_AVAILABLE = EADDRNOTAVAIL, Limit,
        "the source address does not belong to this machine, or no port of it is left";
    ADDR_IN_USE = EADDRINUSE, Limit, "the address and port are in use";
    TOO_MANY_REFS = ETOOMANYREFS, Limit, "too many sockets are in transit between cores";
    PERMISSION = EPERM, Misuse, "not permitted (a firewall rule, or a missing capability)";
    ACCESS = EACCES, Misuse, "not permitted";
    BAD_FD = EBADF, Misuse, "not an open socket";
    INVALID = EINVAL, Misuse, "invalid argument";
    FAMILY = EAFNOSUPPORT, Misuse, "the machine does not support this address family";
}

impl From<rustix::io::Errno> for Errno {
    fn from(errno: rustix::io::Errno) -> Self {
        Self(errno.raw_os_error())
    }
}

impl From<Errno> for std::io::Error {
    fn from(errno: Errno) -> Self {
        Self::from_raw_os_error(errno.0)
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            "E?" => write!(f, "errno {}", self.0),
            name => {
                write!(f, "{name}: {}", self.text())?;
                Limit::of_errno(name).map_or(Ok(()), |limit| write!(f, " ({limit})"))
            }
        }
    }
}

impl std::error::Error for Errno {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_its_name_and_its_blame() {
        assert_eq!(Errno::TABLE_FULL.name(), "EMFILE");
        assert_eq!(Errno::TABLE_FULL.blame(), Blame::Limit);
        assert_eq!(Errno(9999).blame(), Blame::Peer);
        assert_eq!(Errno(9999).to_string(), "errno 9999");
    }
}
