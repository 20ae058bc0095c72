//! Records a run: once a second it reads generator, server and kernel, and writes an interval.
//!
//! The recorder runs on a thread of its own and on absolute boundaries: it records second 7 seven
//! seconds after the run began, however long the sixth took. No probe can stop it. A server whose
//! control socket hangs delays the thread by [`SERVER_TIMEOUT`] and, if it goes on, becomes an
//! event. A full disk costs lines, which the recorder counts.
//!
//! ```no_run
//! # fn load() -> throng_load::run::RunningLoad { unimplemented!() }
//! use throng_run::recorder::{Recorder, RecorderOptions, RunProbes};
//!
//! let options = RecorderOptions { run_file: Some("run.jsonl".into()), ..Default::default() };
//! let recorder = Recorder::create(options)?; // fails here when the file cannot be written
//! let recording = recorder.start(RunProbes::new(load()), |interval, previous| {
//!     println!("{}", throng_report::render::progress_line(interval, previous));
//! });
//! let outcome = recording.wait();
//! println!("{}", outcome.result.text());
//! # Ok::<(), throng_run::recorder::RecordError>(())
//! ```

mod command;
mod control_probe;
pub(crate) mod facts;
pub(crate) mod kernel;
mod load;
mod lock;
mod options;
mod outcome;
mod probes;
mod recorder_loop;
mod run_file_lock;
mod run_probes;
mod server_kernel;
pub(crate) mod server_poller;
mod server_process;
mod watch_source;
pub(crate) mod watched_process;

use std::fs::File;
use std::io;
use std::io::{BufReader, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use throng_measure::runfile::{
    self, ReadError, RunFile, RunFileWriter, RunHeader, Truncate, resumable_bytes,
};
use throng_measure::{Interval, RunEventKind};

use command::RecorderCommand;
pub use control_probe::ControlProbe;
pub use facts::FactsStream;
pub use kernel::LiveKernel;
use lock::lock;
pub use options::RecorderOptions;
pub use outcome::Outcome;
pub use probes::{GeneratorProbe, Interruption, KernelProbe, KernelReading, ServerProbe};
use recorder_loop::RecorderLoop;
use run_file_lock::LockedRunFile;
pub use run_probes::RunProbes;
pub use server_poller::SERVER_TIMEOUT;
pub use watch_source::{NextLine, WatchLines, WatchSource};

/// A recorder, whose run file has its first line.
#[derive(Debug)]
pub struct Recorder<W = File> {
    options: RecorderOptions,
    out: Option<RunFileWriter<W>>,
    before: Option<RecordedBefore>,
}

impl Recorder<File> {
    /// Creates the run file and writes its first line. Call it before the load starts: a run that
    /// cannot be recorded should not begin.
    ///
    /// # Errors
    /// The file cannot be written, another run is writing it, it is a link, or it does not hold a
    /// run.
    pub fn create(options: RecorderOptions) -> Result<Self, RecordError> {
        RunFileLock::acquire(options.run_file.as_deref())?.begin(options)
    }
}

/// A run that another process has recorded so far.
#[derive(Debug)]
pub struct ResumedRun {
    /// Its first line.
    pub header: RunHeader,
    /// Its intervals so far.
    pub intervals: Vec<Interval>,
    /// True if its last line is there: its process recorded it to the end.
    pub has_ended: bool,
    file: File,
    whole_bytes: u64,
    path: PathBuf,
}

impl ResumedRun {
    /// Reads the run file at `path`, and locks it.
    ///
    /// # Errors
    /// It cannot be read or written, another process is writing it, or it holds no run.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        let refuse = |error| RecordError { path: path.into(), error };
        let invalid = |error: ReadError| io::Error::new(io::ErrorKind::InvalidData, error);
        let file = run_file_lock::open_locked(path).map_err(refuse)?;
        let run = runfile::read(&mut BufReader::new(&file)).map_err(invalid).map_err(refuse)?;
        (&file).rewind().map_err(refuse)?;
        let whole_bytes = resumable_bytes(&mut BufReader::new(&file)).map_err(refuse)?;
        let RunFile { header, intervals, end, .. } = run;
        let has_ended = end.is_some();
        Ok(Self { header, intervals, has_ended, file, whole_bytes, path: path.into() })
    }

    /// Returns a recorder that goes on with it. The run began at `began`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn go_on(
        self,
        options: RecorderOptions,
        began: throng_base::Instant,
    ) -> Result<Recorder, RecordError> {
        let Self { intervals, file, whole_bytes, path, .. } = self;
        let out = RunFileWriter::resume(file, whole_bytes)
            .map_err(|error| RecordError { path, error })?;
        Ok(Recorder { options, out: Some(out), before: Some(RecordedBefore { intervals, began }) })
    }
}

/// What was recorded of a run before.
#[derive(Debug)]
struct RecordedBefore {
    intervals: Vec<Interval>,
    began: throng_base::Instant,
}

/// The lock on a run file whose run has not begun. A caller that must still find out what the first
/// line says acquires the lock before that, so that it learns at once when the file cannot be
/// written. An earlier run stays in the file if the run does not begin.
#[derive(Debug)]
pub struct RunFileLock(Option<LockedRunFile>);

impl RunFileLock {
    /// Locks the file at `path`. Without a path there is no run file, and only the
    /// summary stays.
    ///
    /// # Errors
    /// The errors of [`Recorder::create`]: an earlier run may be overwritten, but no other content.
    pub fn acquire(path: Option<&Path>) -> Result<Self, RecordError> {
        let Some(path) = path else { return Ok(Self(None)) };
        let file =
            LockedRunFile::open(path).map_err(|error| RecordError { path: path.into(), error })?;
        Ok(Self(Some(file)))
    }

    /// Empties the file, writes the first line and returns the recorder.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn begin(self, options: RecorderOptions) -> Result<Recorder, RecordError> {
        let Some(file) = self.0 else { return Ok(Recorder { options, out: None, before: None }) };
        let path = options.run_file.clone().unwrap_or_default();
        let out = file.begin().and_then(|file| RunFileWriter::create(file, &options.header));
        let out = out.map_err(|error| RecordError { path, error })?;
        Ok(Recorder { options, out: Some(out), before: None })
    }
}

impl<W: Write + Truncate + Send + 'static> Recorder<W> {
    /// Writes the first line to `out`, which is open already.
    pub fn to(out: W, options: RecorderOptions) -> io::Result<Self> {
        let out = RunFileWriter::create(out, &options.header)?;
        Ok(Self { options, out: Some(out), before: None })
    }

    /// Starts recording: first the counters as of now, then one interval after the other until the
    /// generator has finished. Calls `progress` with each interval and the interval before it, on
    /// the recorder's thread.
    pub fn start(
        self,
        probes: RunProbes,
        progress: impl FnMut(&Interval, Option<&Interval>) + Send + 'static,
    ) -> Recording {
        let (commands, received) = mpsc::channel();
        let handle = RecordingHandle { commands, latest: Arc::default() };
        let latest = Arc::clone(&handle.latest);
        let run = move || {
            let mut recorder =
                RecorderLoop::new(self.options, self.out, probes, latest, Box::new(progress));
            if let Some(before) = self.before {
                recorder.go_on_from(before);
            }
            recorder.run(&received)
        };
        let thread = std::thread::Builder::new().name("recorder".into()).spawn(run);
        Recording { handle, thread: thread.expect("a thread for the recorder") }
    }
}

/// The recording of a run.
#[derive(Debug)]
pub struct Recording {
    handle: RecordingHandle,
    thread: JoinHandle<Outcome>,
}

impl Recording {
    /// Returns a handle that steers the recording from another thread, such as a signal handler's.
    pub fn handle(&self) -> RecordingHandle {
        self.handle.clone()
    }

    /// Reports whether the last line is written.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the end of the run and returns its outcome.
    pub fn wait(self) -> Outcome {
        match self.thread.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// A handle that steers a recording and reads its state. It does nothing once the recording is
/// over.
#[derive(Clone, Debug)]
pub struct RecordingHandle {
    commands: Sender<RecorderCommand>,
    latest: Arc<Mutex<Option<Interval>>>,
}

impl RecordingHandle {
    /// Ramps the generator down. `by` names the cause: `SIGINT`. After a second call the recorder
    /// no longer waits for the generator.
    pub fn stop(&self, by: &str) {
        let _ = self.commands.send(RecorderCommand::Stop(by.to_owned()));
    }

    /// Writes an event into the next interval.
    pub fn add_event(&self, event: RunEventKind) {
        let _ = self.commands.send(RecorderCommand::AddEvent(Box::new(event)));
    }

    /// Returns the last recorded interval.
    pub fn latest(&self) -> Option<Interval> {
        lock(&self.latest).clone()
    }
}

/// The error of a run file that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the run file {}: {error}", .path.display())]
pub struct RecordError {
    /// The run file's path.
    pub path: PathBuf,
    /// The error of the operating system.
    pub error: io::Error,
}

#[cfg(test)]
mod tests;
