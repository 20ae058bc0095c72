//! Asks the server without ever waiting long for it.

use std::fmt;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::time::{Duration, Instant};

use throng_control::{ControlClient, ControlRequest, ProcessRole, Verb};
use throng_report::{RunEventKind, SERVER_SILENT, ServerSnapshot};

use super::ServerProbe;

/// How long the recorder waits for a server's snapshot. Default 200 ms.
pub const SERVER_TIMEOUT: Duration = Duration::from_millis(200);

/// A throng server that answers on its control socket.
pub struct ControlProbe {
    path: PathBuf,
    client: Option<ControlClient>,
    find: Option<Find>,
}

/// Finds the control socket of the server that has taken the place of one that is gone.
type Find = Box<dyn Fn() -> Option<PathBuf> + Send>;

impl ControlProbe {
    /// The server whose control socket is at `path`. It need not be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), client: None, find: None }
    }

    /// The same, which asks `find` for another socket once this one is gone: a server that was
    /// restarted has another one.
    #[must_use]
    pub fn or_find(self, find: impl Fn() -> Option<PathBuf> + Send + 'static) -> Self {
        Self { find: Some(Box::new(find)), ..self }
    }

    fn connect(&mut self) -> Result<ControlClient, String> {
        let gone = match ControlClient::connect(&self.path) {
            Ok(client) => return Ok(client),
            Err(error) => error.to_string(),
        };
        let found = self.find.as_ref().and_then(|find| find()).filter(|found| *found != self.path);
        self.path = found.ok_or(gone)?;
        ControlClient::connect(&self.path).map_err(|error| error.to_string())
    }
}

impl fmt::Debug for ControlProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlProbe").field("path", &self.path).finish_non_exhaustive()
    }
}

impl ServerProbe for ControlProbe {
    fn snapshot(&mut self) -> Result<ServerSnapshot, String> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => self.connect()?,
        };
        let reply =
            client.ask(&ControlRequest::new(Verb::Snapshot)).map_err(|error| error.to_string())?;
        if reply.role != ProcessRole::Server {
            return Err(format!("{} belongs to a generator, not to a server", self.path.display()));
        }
        let snapshot = serde_json::from_value(reply.data).map_err(|error| error.to_string())?;
        // Kept only now: after an error the connection is of no more use.
        self.client = Some(client);
        Ok(snapshot)
    }
}

/// The probe on its own thread. A question that is not answered in time stays open, and no second one
/// is asked until it is answered or has failed: a server that hangs is not buried under questions.
#[derive(Debug)]
pub(crate) struct ServerPoller {
    requests: Sender<()>,
    replies: Receiver<SnapshotReply>,
    is_pending: bool,
    /// How long it may be silent until it is lost.
    lost_after: Duration,
    /// Since when it has been silent.
    silent_since: Option<Instant>,
    is_lost: bool,
}

type SnapshotReply = Result<ServerSnapshot, String>;

/// Why there is no snapshot.
enum PollError {
    /// It has not answered in time; it may yet.
    Late,
    /// It cannot be asked.
    Failed(String),
}

impl ServerPoller {
    pub(crate) fn new(mut probe: Box<dyn ServerProbe>, patience: Duration) -> Self {
        let (questions, asked) = mpsc::channel();
        let (answer, answers) = mpsc::channel();
        let run = move || {
            while asked.recv().is_ok() {
                if answer.send(probe.snapshot()).is_err() {
                    return;
                }
            }
        };
        // Nobody joins this thread: it may hang for as long as the server does.
        let thread = std::thread::Builder::new().name("ask-server".into()).spawn(run);
        thread.expect("a thread that asks the server");
        Self {
            requests: questions,
            replies: answers,
            is_pending: false,
            lost_after: patience,
            silent_since: None,
            is_lost: false,
        }
    }

    /// The server's counters. `event` is called when the server was lost or is back.
    pub(crate) fn snapshot(
        &mut self,
        event: &mut impl FnMut(RunEventKind),
    ) -> Option<ServerSnapshot> {
        let asked = Instant::now();
        let reason = match self.poll() {
            Ok(snapshot) => {
                self.silent_since = None;
                if std::mem::take(&mut self.is_lost) {
                    event(RunEventKind::ServerBack { pid: snapshot.process.pid });
                }
                return Some(snapshot);
            }
            Err(PollError::Failed(reason)) => reason,
            Err(PollError::Late) => {
                let silent = self.silent_since.get_or_insert(asked).elapsed();
                if silent < self.lost_after {
                    return None;
                }
                format!("{SERVER_SILENT} for {:.1} s", silent.as_secs_f64())
            }
        };
        if !std::mem::replace(&mut self.is_lost, true) {
            event(RunEventKind::ServerLost { reason });
        }
        None
    }

    /// Whether it counts as lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost
    }

    fn poll(&mut self) -> Result<ServerSnapshot, PollError> {
        if self.is_pending {
            // Whatever it says by now, it was asked in another interval.
            match self.replies.try_recv() {
                Ok(_) => {
                    self.is_pending = false;
                    self.silent_since = None;
                }
                Err(TryRecvError::Empty) => return Err(PollError::Late),
                Err(TryRecvError::Disconnected) => return Err(PollError::Failed(GONE.into())),
            }
        }
        if self.requests.send(()).is_err() {
            return Err(PollError::Failed(GONE.into()));
        }
        match self.replies.recv_timeout(SERVER_TIMEOUT) {
            Ok(answer) => answer.map_err(PollError::Failed),
            Err(RecvTimeoutError::Timeout) => {
                self.is_pending = true;
                Err(PollError::Late)
            }
            Err(RecvTimeoutError::Disconnected) => Err(PollError::Failed(GONE.into())),
        }
    }
}

const GONE: &str = "the thread that asks it has ended";
