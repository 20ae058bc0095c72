//! The errors of a test bed.

use std::path::PathBuf;

use crate::isolate::IsolateError;

/// The reason why server or generator did not run.
#[derive(Debug, thiserror::Error)]
pub enum TestBedError {
    /// The kernel or `ip` refused the network namespaces.
    #[error(transparent)]
    Isolate(#[from] IsolateError),
    /// Server or generator did not start, or ended too early.
    #[error("the {name} {message}")]
    Process {
        /// `server` or `generator`.
        name: &'static str,
        /// The failure, and the last lines of the process's output.
        message: String,
    },
    /// A file cannot be written or read.
    #[error("{path}: {1}", path = .0.display())]
    File(PathBuf, std::io::Error),
}
