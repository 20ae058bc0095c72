//! What a core keeps for TLS at most.

/// Limits of a core's TLS connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsLimits {
    /// Handshakes at once. Each has 3 to 8 kB while it lasts; above the limit, the first bytes of a
    /// client wait in the kernel.
    pub handshakes_max: u32,
    /// Bytes that a peer may send in a handshake: room for long chains of certificates.
    pub handshake_bytes_max: u32,
    /// Time from the first byte of a handshake to its end.
    pub handshake_timeout_ms: u32,
    /// Time in which a record must arrive whole, from its first byte on.
    pub record_timeout_ms: u32,
    /// Time after its handshake for which a client waits for tickets of the server.
    pub ticket_timeout_ms: u32,
}

impl Default for TlsLimits {
    fn default() -> Self {
        Self {
            handshakes_max: 4_096,
            handshake_bytes_max: 64 << 10,
            handshake_timeout_ms: 10_000,
            record_timeout_ms: 60_000,
            ticket_timeout_ms: 2_000,
        }
    }
}
