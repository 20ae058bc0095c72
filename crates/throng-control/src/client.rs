//! The side that asks.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::{ControlRequest, ProcessRole};

/// How long a process may take to answer, unless the client says otherwise.
pub const ANSWER_TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);
/// Longest reply that is read, in bytes: a snapshot of a thousand cores fits ten times over.
pub const REPLY_BYTES_MAX: u64 = 16 << 20;

/// A connection to a running process.
#[derive(Debug)]
pub struct ControlClient {
    stream: BufReader<UnixStream>,
    path: PathBuf,
    timeout: Duration,
}

/// What a process answered.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlReply {
    /// Which end of a test it is.
    pub role: ProcessRole,
    /// What was asked for.
    pub data: Value,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum ControlError {
    /// No process listens at the path.
    NotThere(PathBuf, io::Error),
    /// The process listens and does not answer in time.
    TimedOut(PathBuf, Duration),
    /// The process went away before it answered.
    Gone(PathBuf),
    /// Something answers that does not speak as a throng process does.
    Malformed(PathBuf, String),
    /// The process refused, and said why.
    Refused(String),
}

impl ControlClient {
    /// Connects to the control socket at `path`.
    ///
    /// # Errors
    /// [`ControlError::NotThere`].
    pub fn connect(path: impl AsRef<Path>) -> Result<Self, ControlError> {
        let path = path.as_ref().to_owned();
        match UnixStream::connect(&path) {
            Ok(stream) => {
                let client = Self { stream: BufReader::new(stream), path, timeout: Duration::ZERO };
                Ok(client.with_timeout(ANSWER_TIMEOUT_DEFAULT))
            }
            Err(error) => Err(ControlError::NotThere(path, error)),
        }
    }

    /// The same with another time-out than [`ANSWER_TIMEOUT_DEFAULT`].
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout.max(Duration::from_millis(1));
        let stream = self.stream.get_ref();
        let set = |result: io::Result<()>| debug_assert!(result.is_ok(), "never zero");
        set(stream.set_read_timeout(Some(self.timeout)));
        set(stream.set_write_timeout(Some(self.timeout)));
        self
    }

    /// Asks and waits for the answer. After an error other than [`ControlError::Refused`] the
    /// connection is of no more use.
    ///
    /// # Errors
    /// Why there is no answer, or why the process refused.
    pub fn ask(&mut self, request: &ControlRequest) -> Result<ControlReply, ControlError> {
        let mut line = serde_json::to_vec(request)
            .map_err(|error| ControlError::Malformed(self.path.clone(), error.to_string()))?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line).map_err(|error| self.explain(&error))?;
        let mut reply = Vec::new();
        let mut limited = (&mut self.stream).take(REPLY_BYTES_MAX);
        if let Err(error) = limited.read_until(b'\n', &mut reply) {
            return Err(self.explain(&error));
        }
        if !reply.ends_with(b"\n") {
            return Err(ControlError::Gone(self.path.clone()));
        }
        match ControlReply::parse(&reply) {
            Ok(answer) => answer.map_err(ControlError::Refused),
            Err(what) => Err(ControlError::Malformed(self.path.clone(), what)),
        }
    }

    /// The connection.
    pub(crate) fn stream(&self) -> &UnixStream {
        self.stream.get_ref()
    }

    fn explain(&self, error: &io::Error) -> ControlError {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                ControlError::TimedOut(self.path.clone(), self.timeout)
            }
            _ => ControlError::Gone(self.path.clone()),
        }
    }
}

impl ControlReply {
    /// Reads a line: what was asked for, or why the process refused.
    ///
    /// # Errors
    /// It is no reply: a sentence about that.
    pub fn parse(line: &[u8]) -> Result<Result<Self, String>, String> {
        match serde_json::from_slice(line) {
            Ok(WireReply { ok: true, role: Some(role), data, .. }) => Ok(Ok(Self { role, data })),
            Ok(WireReply { ok: false, error: Some(error), .. }) => Ok(Err(error)),
            Ok(_) => Err("a field is missing".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// A reply as it is written.
#[derive(Deserialize)]
struct WireReply {
    ok: bool,
    role: Option<ProcessRole>,
    #[serde(default)]
    data: Value,
    error: Option<String>,
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotThere(path, error) => {
                write!(f, "no throng process answers at {}: {error}", path.display())
            }
            Self::TimedOut(path, after) => {
                write!(f, "the process at {} did not answer within {after:?}", path.display())
            }
            Self::Gone(path) => {
                write!(f, "the process at {} ended before it answered", path.display())
            }
            Self::Malformed(path, what) => {
                write!(f, "what answers at {} is no throng process: {what}", path.display())
            }
            Self::Refused(error) => f.write_str(error),
        }
    }
}

impl std::error::Error for ControlError {}
