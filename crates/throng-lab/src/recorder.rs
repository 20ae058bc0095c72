//! Watches a run: once a second it asks generator, server and kernel, and writes what they said.
//!
//! The recorder runs on a thread of its own and on absolute boundaries: second 7 is asked for seven
//! seconds after the run began, however long the sixth took. Nothing that it asks can stop it: a server
//! whose control socket hangs costs [`SERVER_TIMEOUT`] of that thread and, if it goes on, becomes an event; a disk that
//! is full costs lines, which are counted.
//!
//! ```no_run
//! # fn load() -> throng_load::run::Load { unimplemented!() }
//! use throng_lab::recorder::{Recorder, RecorderOptions, RunProbes};
//!
//! let options = RecorderOptions { run_file: Some("run.jsonl".into()), ..Default::default() };
//! let recorder = Recorder::create(options)?; // fails here when the file cannot be written
//! let recording = recorder.start(RunProbes::new(load()), |interval, previous| {
//!     println!("{}", throng_report::render::progress_line(interval, previous));
//! });
//! let outcome = recording.wait();
//! println!("{}", throng_report::render::render_text(&outcome.summary, &outcome.judgements, Some(&outcome.diagnosis)));
//! # Ok::<(), throng_lab::recorder::RecordError>(())
//! ```

pub(crate) mod facts;
pub(crate) mod kernel;
mod load;
mod place;
mod probes;
mod recorder_loop;
pub(crate) mod server;
mod server_kernel;
mod server_process;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{fmt, io};

use throng_report::runfile::{RunEnd, RunFileWriter, RunHeader, Truncate};
use throng_report::{Diagnosis, Interval, Judgement, RunEventKind, RunExit, Summary, Threshold};

pub use facts::FactsStream;
pub use kernel::LiveKernel;
pub use probes::{GeneratorProbe, KernelProbe, KernelReading, RunProbes, ServerProbe};
use recorder_loop::RecorderLoop;
pub use server::{ControlProbe, SERVER_TIMEOUT};

/// How a run is recorded.
#[derive(Clone, Debug)]
pub struct RecorderOptions {
    /// Where the run file goes; it is overwritten. None: the summary is all that stays.
    pub run_file: Option<PathBuf>,
    /// The first line of the run file.
    pub header: RunHeader,
    /// The length of an interval. Default 1 s.
    pub interval: Duration,
    /// What the run should meet.
    pub thresholds: Vec<Threshold>,
    /// How long a server may leave its questions unanswered until it counts as lost: one that closes a
    /// million connections has other things to do. A server that is not there is lost at once. Default 3 s.
    pub server_lost_after: Duration,
    /// How long the generator may take to ramp down after [`RecordingHandle::stop`]. Default 30 s.
    pub ramp_down_timeout: Duration,
}

impl Default for RecorderOptions {
    fn default() -> Self {
        Self {
            run_file: None,
            header: RunHeader::default(),
            interval: Duration::from_secs(1),
            thresholds: Vec::new(),
            server_lost_after: Duration::from_secs(3),
            ramp_down_timeout: Duration::from_secs(30),
        }
    }
}

/// A recorder whose run file has its first line.
#[derive(Debug)]
pub struct Recorder<W = File> {
    options: RecorderOptions,
    out: Option<RunFileWriter<W>>,
}

impl Recorder<File> {
    /// Creates the run file and writes its first line. Call it before the load is started: a run that
    /// cannot be recorded should not begin. A file that another run is writing is refused, and so is a
    /// link, and a file that holds something else than a run.
    pub fn create(options: RecorderOptions) -> Result<Self, RecordError> {
        RunFileLock::acquire(options.run_file.as_deref())?.begin(options)
    }
}

/// A run file that is empty and ours. Whoever has something to find out before the first line can be written takes the place first: the
/// news that there is none should not have to wait for that.
#[derive(Debug)]
pub struct RunFileLock(Option<File>);

impl RunFileLock {
    /// Takes the place; without a path, that of a run of which only the summary stays. An earlier run is
    /// overwritten, and nothing else.
    pub fn acquire(path: Option<&Path>) -> Result<Self, RecordError> {
        let Some(path) = path else { return Ok(Self(None)) };
        let file =
            place::create_locked(path).map_err(|error| RecordError { path: path.into(), error })?;
        Ok(Self(Some(file)))
    }

    /// Writes the first line.
    pub fn begin(self, options: RecorderOptions) -> Result<Recorder, RecordError> {
        let Some(file) = self.0 else { return Ok(Recorder { options, out: None }) };
        let path = options.run_file.clone().unwrap_or_default();
        let out = RunFileWriter::create(file, &options.header)
            .map_err(|error| RecordError { path, error })?;
        Ok(Recorder { options, out: Some(out) })
    }
}

impl<W: Write + Truncate + Send + 'static> Recorder<W> {
    /// As [`Recorder::create`], to an output that is open already.
    pub fn to(out: W, options: RecorderOptions) -> io::Result<Self> {
        let out = RunFileWriter::create(out, &options.header)?;
        Ok(Self { options, out: Some(out) })
    }

    /// Begins: takes the counters as they are now, then an interval after the other until the generator
    /// has finished. `progress` gets each interval with the one before it, on the recorder's thread.
    pub fn start(
        self,
        sources: RunProbes,
        progress: impl FnMut(&Interval, Option<&Interval>) + Send + 'static,
    ) -> Recording {
        let (tell, told) = mpsc::channel();
        let handle = RecordingHandle { commands: tell, latest: Arc::default() };
        let latest = Arc::clone(&handle.latest);
        let run = move || {
            RecorderLoop::new(self.options, self.out, sources, latest, Box::new(progress))
                .run(&told)
        };
        let thread = std::thread::Builder::new().name("recorder".into()).spawn(run);
        Recording { handle, thread: thread.expect("a thread for the recorder") }
    }
}

/// A run that is being recorded.
#[derive(Debug)]
pub struct Recording {
    handle: RecordingHandle,
    thread: JoinHandle<Outcome>,
}

impl Recording {
    /// A way to steer the recording from elsewhere, such as a signal handler's thread.
    pub fn handle(&self) -> RecordingHandle {
        self.handle.clone()
    }

    /// Whether the last line is written.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the end of the run.
    pub fn wait(self) -> Outcome {
        match self.thread.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Steers a recording and tells how it stands. It does nothing once the recording is over.
#[derive(Clone, Debug)]
pub struct RecordingHandle {
    commands: Sender<RecorderCommand>,
    latest: Arc<Mutex<Option<Interval>>>,
}

impl RecordingHandle {
    /// Asks the generator to ramp down, and names who asked (`SIGINT`). Asked a second time, the recorder
    /// does not wait for that any longer.
    pub fn stop(&self, by: &str) {
        let _ = self.commands.send(RecorderCommand::Stop(by.to_owned()));
    }

    /// Writes an event into the next interval.
    pub fn add_event(&self, event: RunEventKind) {
        let _ = self.commands.send(RecorderCommand::AddEvent(event));
    }

    /// The last interval that was recorded.
    pub fn latest(&self) -> Option<Interval> {
        lock(&self.latest).clone()
    }
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The whole run.
    pub summary: Summary,
    /// What became of the thresholds, in their order.
    pub judgements: Vec<Judgement>,
    /// What stopped it.
    pub diagnosis: Diagnosis,
    /// The last line of the run file.
    pub end: RunEnd,
    /// The last error of the run file, even if it was written again later.
    pub run_file_error: Option<String>,
}

impl Outcome {
    /// What came of it.
    pub fn exit(&self) -> RunExit {
        RunExit::of(&self.summary, &self.judgements)
    }
}

/// The run file cannot be written.
#[derive(Debug)]
pub struct RecordError {
    /// Which file.
    pub path: PathBuf,
    /// What the operating system said.
    pub error: io::Error,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write the run file {}: {}", self.path.display(), self.error)
    }
}

impl std::error::Error for RecordError {}

/// What others tell the recorder's thread.
#[derive(Debug)]
enum RecorderCommand {
    Stop(String),
    AddEvent(RunEventKind),
}

/// An interval is replaced whole, so one that a panic left behind is still good.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
