//! Limits of a core.

use std::time::Duration;

/// Limits of a core.
#[derive(Clone, Copy, Debug)]
pub struct CoreLimits {
    /// Bytes that may wait for one slow peer. Sealed records that the kernel did not take, of at
    /// most 16 KiB and their overhead, wait beside them. Two things are exempt: the bytes that one
    /// callback adds while nothing waits, up to eight times this limit, and one shared frame of any
    /// length. Default 1 MiB.
    pub pending_bytes_max: usize,
    /// Time that a closing connection has to deliver the bytes that wait. Default 5 s.
    pub drain_timeout: Duration,
    /// Time that the peer of a failed transport has to read why, and to close. Default 1 s.
    pub linger_timeout: Duration,
    /// Bytes of such a peer that are received and discarded meanwhile. Default 256 KiB.
    pub linger_bytes_max: usize,
    /// Size of the core's one receive buffer. Default 64 KiB.
    pub receive_bytes: usize,
    /// Work for one connection at a time, in bytes of input of the same cost: an event costs 1 KiB
    /// beside its bytes, and an inflated message costs its whole length. Further input waits for
    /// the next turn; up to `receive_bytes` of it wait in this process. Default 256 KiB.
    pub connection_work_bytes_max: usize,
    /// Work for all connections of a turn, in the same unit. The remaining connections wait for the
    /// next turn. Default 4 MiB.
    pub turn_work_bytes_max: usize,
    /// Time that the handshake of a transport may take, from the established connection on. Default
    /// 10 s.
    pub handshake_timeout: Duration,
    /// Handshakes at once. The bytes of further ones wait in the kernel. Default 4,096.
    pub handshakes_max: usize,
    /// Work of all handshakes in a turn, in the unit of `turn_work_bytes_max`. Default 640 KiB:
    /// four signatures by ECDSA, or one by RSA.
    pub handshake_work_bytes_max: usize,
    /// Time that a record may take from its first byte to its last. Default 10 s.
    pub record_timeout: Duration,
    /// Bytes of records that have arrived in part, of all connections. One connection may hold at
    /// most as much as is left for all others. Default 64 MiB.
    pub record_parts_bytes_max: usize,
}

impl Default for CoreLimits {
    fn default() -> Self {
        Self {
            pending_bytes_max: 1 << 20,
            drain_timeout: Duration::from_secs(5),
            linger_timeout: Duration::from_secs(1),
            linger_bytes_max: 256 << 10,
            receive_bytes: 64 << 10,
            connection_work_bytes_max: 256 << 10,
            turn_work_bytes_max: 4 << 20,
            handshake_timeout: Duration::from_secs(10),
            handshakes_max: 4_096,
            handshake_work_bytes_max: 640 << 10,
            record_timeout: Duration::from_secs(10),
            record_parts_bytes_max: 64 << 20,
        }
    }
}
