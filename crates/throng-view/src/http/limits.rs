//! The limits of an HTTP server.

use std::time::Duration;

/// The limits of an HTTP server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpLimits {
    /// The most connections.
    pub(crate) connections_max: usize,
    /// The time in which a request's head must arrive whole.
    pub(crate) head_timeout: Duration,
    /// The time in which a request's body must arrive whole.
    pub(crate) body_timeout: Duration,
    /// The time without a byte in either direction, while the server waits for the client. A stream
    /// of events waits for the server, and has no such time.
    pub(crate) idle_timeout: Duration,
}

impl Default for HttpLimits {
    /// A page takes two connections, and a scraper one.
    fn default() -> Self {
        Self {
            connections_max: 128,
            head_timeout: Duration::from_secs(5),
            body_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(30),
        }
    }
}
