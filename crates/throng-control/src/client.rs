//! The client of a control socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::{ControlRequest, ProcessRole};

/// The time within which a process must answer, unless the client sets another.
pub const ANSWER_TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);
/// The longest reply that is read, in bytes: ten times a snapshot of a thousand cores.
pub const REPLY_BYTES_MAX: u64 = 16 << 20;

/// A connection to a running process.
#[derive(Debug)]
pub struct ControlClient {
    stream: BufReader<UnixStream>,
    path: PathBuf,
    timeout: Duration,
}

/// The answer of a process.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlReply {
    /// The role of the process in a test.
    pub role: ProcessRole,
    /// The requested data.
    pub data: Value,
}

/// The reason why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No process accepts connections at the path.
    #[error("no throng process answers at {path}: {1}", path = .0.display())]
    NotThere(PathBuf, io::Error),
    /// The process accepts connections and did not answer in time.
    #[error("the process at {path} did not answer within {1:?}", path = .0.display())]
    TimedOut(PathBuf, Duration),
    /// The process closed the connection before it answered.
    #[error("the process at {} ended before it answered", .0.display())]
    Gone(PathBuf),
    /// The answer is not that of a throng process.
    #[error("the answer at {path} is not that of a throng process: {1}", path = .0.display())]
    Malformed(PathBuf, String),
    /// The process refused the request; the text is its reason.
    #[error("{0}")]
    Refused(String),
}

impl ControlClient {
    /// Connects to the control socket at `path`.
    ///
    /// # Errors
    /// [`ControlError::NotThere`] if no process accepts connections at `path`.
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

    /// Sets a time-out other than [`ANSWER_TIMEOUT_DEFAULT`].
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout.max(Duration::from_millis(1));
        let stream = self.stream.get_ref();
        let set = |result: io::Result<()>| debug_assert!(result.is_ok(), "never zero");
        set(stream.set_read_timeout(Some(self.timeout)));
        set(stream.set_write_timeout(Some(self.timeout)));
        self
    }

    /// Sends a request and waits for the answer. After an error other than
    /// [`ControlError::Refused`], the connection cannot be used again.
    ///
    /// # Errors
    /// The reason why there is no answer, or why the process refused.
    pub fn request(&mut self, request: &ControlRequest) -> Result<ControlReply, ControlError> {
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

    /// Returns the connection.
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
    /// Parses a line: the requested data, or the reason why the process refused.
    ///
    /// # Errors
    /// The line is not a reply: a sentence that says why.
    pub fn parse(line: &[u8]) -> Result<Result<Self, String>, String> {
        match serde_json::from_slice(line) {
            Ok(WireReply { ok: true, role: Some(role), data, .. }) => Ok(Ok(Self { role, data })),
            Ok(WireReply { ok: false, error: Some(error), .. }) => Ok(Err(error)),
            Ok(_) => Err("a field is missing".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// A reply on the wire.
#[derive(Deserialize)]
struct WireReply {
    ok: bool,
    role: Option<ProcessRole>,
    #[serde(default)]
    data: Value,
    error: Option<String>,
}
