//! Limits of a core.

use std::time::Duration;

/// Limits of a core.
#[derive(Clone, Copy, Debug)]
pub struct CoreLimits {
    /// Bytes that may wait for one slow peer. Two things are exempt: the bytes that one callback
    /// adds while nothing waits, up to eight times this limit, and one shared frame of any length.
    /// Default 1 MiB.
    pub pending_bytes_max: usize,
    /// Time that a closing connection has to deliver the bytes that wait. Default 5 s.
    pub drain_timeout: Duration,
    /// Size of the core's one receive buffer. Default 64 KiB.
    pub receive_bytes: usize,
    /// Work for one connection at a time, in bytes of input of the same cost: an event costs 1 KiB
    /// beside its bytes, and an inflated message costs its whole length. Further input waits for
    /// the next turn; up to `receive_bytes` of it wait in this process. Default 256 KiB.
    pub connection_work_bytes_max: usize,
    /// Work for all connections of a turn, in the same unit. The remaining connections wait for the
    /// next turn. Default 4 MiB.
    pub turn_work_bytes_max: usize,
}

impl Default for CoreLimits {
    fn default() -> Self {
        Self {
            pending_bytes_max: 1 << 20,
            drain_timeout: Duration::from_secs(5),
            receive_bytes: 64 << 10,
            connection_work_bytes_max: 256 << 10,
            turn_work_bytes_max: 4 << 20,
        }
    }
}
