//! Errors of servers and loads.

use std::io;

use throng_load::run::{LoadError, SetupError};
use throng_load::scenario::Diagnostics;
use throng_run::recorder::{Outcome, RecordError};
use throng_server::{StartError, TlsReloadError};
use throng_tls::TlsConfigError;

/// The result of a server or a load.
pub type Result<T = ()> = std::result::Result<T, Error>;

/// The reason why a server or a load did not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address of a server could not be understood or resolved.
    #[error("cannot listen on `{address}`: {error}; write HOST:PORT")]
    Address {
        /// The address as it was given.
        address: String,
        /// The reason.
        error: io::Error,
    },
    /// A certificate, a key or an option of TLS is wrong.
    #[error(transparent)]
    Tls(TlsConfigError),
    /// The server did not take other options of TLS.
    #[error(transparent)]
    TlsReload(TlsReloadError),
    /// The server could not start.
    #[error(transparent)]
    Start(StartError),
    /// A core of the server has ended by itself, by a panic outside of its handler.
    #[error("a core of the server has panicked and ended")]
    CoreEnded,
    /// The process could not take over SIGINT and SIGTERM.
    #[error("cannot handle SIGINT and SIGTERM: {0}")]
    Signals(io::Error),
    /// A file could not be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file.
        path: String,
        /// The reason.
        error: io::Error,
    },
    /// The scenario has mistakes; each is shown with its line.
    #[error("{0}")]
    Scenario(Box<Diagnostics>),
    /// The target of a load could not be understood.
    #[error("{0}")]
    Target(String),
    /// The target is an address that belongs to others.
    /// [`Load::i_am_allowed`](crate::Load::i_am_allowed) loads it.
    #[error(
        "refusing to load {0}, which is not an address of this machine or its networks; call \
         `i_am_allowed` if you have its owner's permission"
    )]
    Forbidden(String),
    /// The load could not start.
    #[error(transparent)]
    Load(LoadError),
    /// `setup` of the scenario failed: the load did not run.
    #[error(transparent)]
    Setup(SetupError),
    /// The load ran, and `teardown` of the scenario failed.
    #[error("{error}")]
    Teardown {
        /// The result of the load, which is whole.
        outcome: Box<Outcome>,
        /// The reason.
        error: SetupError,
    },
    /// The run file could not be written.
    #[error(transparent)]
    Record(RecordError),
}

impl From<StartError> for Error {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Tls(error) => Self::Tls(error),
            error => Self::Start(error),
        }
    }
}

impl From<TlsReloadError> for Error {
    fn from(error: TlsReloadError) -> Self {
        match error {
            TlsReloadError::Config(error) => Self::Tls(error),
            error => Self::TlsReload(error),
        }
    }
}

impl From<TlsConfigError> for Error {
    fn from(error: TlsConfigError) -> Self {
        Self::Tls(error)
    }
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        Self::Load(error)
    }
}

impl From<SetupError> for Error {
    fn from(error: SetupError) -> Self {
        Self::Setup(error)
    }
}

impl From<RecordError> for Error {
    fn from(error: RecordError) -> Self {
        Self::Record(error)
    }
}
