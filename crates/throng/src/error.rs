//! Errors of servers and loads.

use std::fmt;
use std::io;

use throng_lab::recorder::{Outcome, RecordError};
use throng_load::run::{LoadError, SetupError};
use throng_load::scenario::Diagnostics;
use throng_server::StartError;

/// The result of a server or a load.
pub type Result<T = ()> = std::result::Result<T, Error>;

/// The reason why a server or a load did not run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The address of a server could not be understood or resolved.
    Address {
        /// The address as it was given.
        address: String,
        /// The reason.
        error: io::Error,
    },
    /// The server could not start.
    Start(StartError),
    /// A core of the server has ended by itself, by a panic outside of its handler.
    CoreEnded,
    /// The process could not take over SIGINT and SIGTERM.
    Signals(io::Error),
    /// A file could not be read.
    Read {
        /// The file.
        path: String,
        /// The reason.
        error: io::Error,
    },
    /// The scenario has mistakes; each is shown with its line.
    Scenario(Box<Diagnostics>),
    /// The target of a load could not be understood.
    Target(String),
    /// The target is an address that belongs to others.
    /// [`Load::i_am_allowed`](crate::Load::i_am_allowed) loads it.
    Forbidden(String),
    /// The load could not start.
    Load(LoadError),
    /// `setup` of the scenario failed: the load did not run.
    Setup(SetupError),
    /// The load ran, and `teardown` of the scenario failed.
    Teardown {
        /// The result of the load, which is whole.
        outcome: Box<Outcome>,
        /// The reason.
        error: SetupError,
    },
    /// The run file could not be written.
    Record(RecordError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address { address, error } => {
                write!(f, "cannot listen on `{address}`: {error}; write HOST:PORT")
            }
            Self::Start(error) => error.fmt(f),
            Self::CoreEnded => f.write_str("a core of the server has panicked and ended"),
            Self::Signals(error) => write!(f, "cannot handle SIGINT and SIGTERM: {error}"),
            Self::Read { path, error } => write!(f, "cannot read {path}: {error}"),
            Self::Scenario(mistakes) => f.write_str(&mistakes.render(false)),
            Self::Target(text) => f.write_str(text),
            Self::Forbidden(target) => write!(
                f,
                "refusing to load {target}, which is not an address of this machine or its \
                 networks; call `i_am_allowed` if you have its owner's permission"
            ),
            Self::Load(error) => error.fmt(f),
            Self::Setup(error) | Self::Teardown { error, .. } => error.fmt(f),
            Self::Record(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<StartError> for Error {
    fn from(error: StartError) -> Self {
        Self::Start(error)
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
