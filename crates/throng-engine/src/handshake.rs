//! What an entry keeps while the handshake of its transport is under way.

use throng_base::Instant;
use throng_proto::{TransportKey, TransportRole};

/// Handshake of a connection. While it is under way, the app knows of no connection.
pub(crate) struct Handshake {
    pub(crate) role: TransportRole,
    /// None until it has begun: a server's begins with the first bytes of its client.
    pub(crate) key: Option<TransportKey>,
    pub(crate) deadline: Instant,
    /// Client that the app has named.
    pub(crate) client: u64,
    /// Bytes that the kernel has not taken.
    pub(crate) unsent: Vec<u8>,
    /// A record has arrived in part, which the transport's context keeps.
    pub(crate) has_part: bool,
    /// One of the core's queues holds the connection.
    pub(crate) is_queued: bool,
}

impl Handshake {
    /// Creates the handshake of a socket that has just been established.
    pub(crate) const fn new(role: TransportRole, deadline: Instant) -> Self {
        let unsent = Vec::new();
        Self { role, key: None, deadline, client: 0, unsent, has_part: false, is_queued: false }
    }
}
