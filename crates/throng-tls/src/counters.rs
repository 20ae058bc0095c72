//! What a core counts of TLS.

/// Counters of a core's TLS connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsCounters {
    /// Full handshakes that were completed.
    pub handshakes_full: u64,
    /// Resumed handshakes that were completed.
    pub handshakes_resumed: u64,
    /// Handshakes that failed.
    pub handshakes_failed: u64,
    /// Records that were sealed.
    pub records_sealed: u64,
    /// Records that were opened.
    pub records_opened: u64,
    /// Key updates, of both directions.
    pub key_updates: u64,
    /// Tickets that a client received and kept.
    pub tickets_received: u64,
    /// Connections that failed after the handshake.
    pub failed: u64,
}
