//! The two programs of a run.

use std::fmt;

/// Generator or server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The generator.
    Client,
    /// The server under load.
    Server,
}

impl fmt::Display for Endpoint {
    /// Writes the endpoint's part of the names of its metrics.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "client",
            Self::Server => "server",
        })
    }
}
