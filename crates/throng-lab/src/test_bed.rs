//! The two ends of a lab as processes of this program, and what a lab sees of them.
//!
//! Each end reads its standard input, which is a pipe from the lab, and ends when that does: the kernel
//! closes it however the lab ends. Each is in a process group of its own, so that Ctrl-C on the terminal
//! reaches the lab alone, which then lets the load ramp down.

mod folder;
mod follow;
mod network;
mod process;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use throng_base::units::show_duration;
use throng_control::{ControlClient, ControlRequest, Verb};
use throng_doctor::{History, diagnose};
use throng_driver::folder::create_file;
use throng_report::runfile::RunFile;
use throng_report::{Interval, LoadInterval, ServerSnapshot, Summary};

use crate::error::LabError;
use crate::isolate::{self, Isolation};
use crate::options::LabOptions;
use crate::progress::LabProgress;
use crate::report::RowDiagnosis;
use folder::WorkFolder;
use follow::RunFileFollower;
use network::Network;
use process::Process;

/// Where a lab happens: the program, a folder for its files, and the namespaces if there are any.
#[derive(Debug)]
pub(crate) struct TestBed {
    program: PathBuf,
    /// Scenarios, run files, output.
    folder: PathBuf,
    /// Control sockets: their paths may not be longer than 107 bytes, so they are not kept elsewhere. And
    /// what is run as a program.
    work: WorkFolder,
    network: Network,
    /// Whether the generator tries what should not fit.
    force: bool,
    stop: Arc<AtomicBool>,
    /// What stopped each load so far.
    diagnoses: RefCell<Vec<RowDiagnosis>>,
}

/// A server to be started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerSpec<'a> {
    /// The name of its row, for its files.
    pub(crate) row: &'a str,
    /// `ok`, `pingpong`, ….
    pub(crate) handler: &'a str,
    /// `reuseport`, `shared`, `dispatch`.
    pub(crate) accept: &'a str,
    /// Event loops.
    pub(crate) cores: u64,
    /// Where to listen; 0 for any port that is free.
    pub(crate) port: u16,
    /// After how long a silence it closes a connection; none for the handler's default.
    pub(crate) idle_timeout: Option<Duration>,
}

impl<'a> ServerSpec<'a> {
    /// With a listener a core, at any port.
    pub(crate) fn new(row: &'a str, handler: &'a str, cores: u64) -> Self {
        Self { row, handler, accept: "reuseport", cores, port: 0, idle_timeout: None }
    }
}

/// A load to be run against a server.
#[derive(Clone, Debug)]
pub(crate) struct LoadSpec<'a> {
    /// The name of its row.
    pub(crate) row: &'a str,
    /// The scenario's text; its target is replaced.
    pub(crate) scenario: &'a str,
    /// The target, with `@` for the server's address: [`TCP`], [`CHAT`], [`CHANNELS`].
    pub(crate) target: &'a str,
    /// How long it should take.
    pub(crate) seconds: u64,
    /// The length of an interval.
    pub(crate) interval: Duration,
    /// Event loops; none for what suits the load.
    pub(crate) cores: Option<usize>,
    /// Whether nobody wants the rest of it: when the user ends it early it is killed, and leaves no result.
    pub(crate) killed_on_stop: bool,
}

impl<'a> LoadSpec<'a> {
    /// Bytes over TCP, recorded every second.
    pub(crate) fn tcp(row: &'a str, scenario: &'a str, seconds: u64) -> Self {
        let interval = Duration::from_secs(1);
        Self { row, scenario, target: TCP, seconds, interval, cores: None, killed_on_stop: false }
    }
}

/// A server that listens.
#[derive(Debug)]
pub(crate) struct RunningServer {
    process: Process,
    /// Where it is found.
    pub(crate) endpoint: ServerEndpoint,
}

/// Where a server is found.
#[derive(Clone, Debug)]
pub(crate) struct ServerEndpoint {
    /// Where it listens.
    pub(crate) addr: SocketAddr,
    /// Its control socket; none when it is not a throng server.
    control: Option<PathBuf>,
}

/// Whether a run should go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    Continue,
    /// The load ramps down and the row ends.
    Stop,
}

/// A run that is over.
#[derive(Debug)]
pub(crate) struct FinishedRun {
    /// Everything that was recorded.
    pub(crate) file: RunFile,
    /// Whether the user ended it early.
    pub(crate) interrupted: bool,
}

impl TestBed {
    pub(crate) fn new(lab: &str, options: &LabOptions) -> Result<Self, LabError> {
        let program = match &options.program {
            Some(program) => program.clone(),
            None => std::env::current_exe()
                .map_err(|error| LabError::File("/proc/self/exe".into(), error))?,
        };
        let work =
            WorkFolder::create(lab).map_err(|error| LabError::File(std::env::temp_dir(), error))?;
        let folder = match &options.keep_files {
            Some(folder) => {
                folder::prepare_kept(folder)
                    .map_err(|error| LabError::File(folder.clone(), error))?;
                folder.clone()
            }
            None => work.path().to_owned(),
        };
        let isolation = match options.isolate {
            true => Some(Isolation::new(options.users.unwrap_or(0))?),
            false => None,
        };
        Ok(Self {
            program,
            folder,
            work,
            network: Network::new(isolation),
            force: options.force,
            stop: Arc::clone(&options.stop),
            diagnoses: RefCell::default(),
        })
    }

    /// What stopped each of the loads that were run.
    pub(crate) fn diagnoses(&self) -> Vec<RowDiagnosis> {
        self.diagnoses.borrow().clone()
    }

    /// Forgets what stopped a load that was only a trial.
    pub(crate) fn drop_diagnosis(&self, row: &str) {
        self.diagnoses.borrow_mut().retain(|diagnosis| diagnosis.row != row);
    }

    /// Whether the user asked for the end of the lab.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether each end has a namespace of its own.
    pub(crate) fn is_isolated(&self) -> bool {
        self.network.is_isolated()
    }

    /// Moves what is started from now on into a network namespace where `sockets` would users the machine's own table
    /// of connections, which has `buckets`; says what it costs where it `may_move` not, or cannot.
    pub(crate) fn use_larger_table(&self, sockets: u64, buckets: u64, may_move: bool) {
        self.network.use_larger_table(sockets, buckets, may_move);
    }

    /// What the report should say about the ends' network.
    pub(crate) fn network_note(&self) -> Option<String> {
        self.network.note()
    }

    /// A path for a file of this lab.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A path for what nobody wants to keep, and nobody else may change.
    pub(crate) fn work_path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    /// Writes a file of this lab, in place of one that was there.
    pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
        create_file(path)?.write_all(text.as_bytes())
    }

    /// Starts a throng server and waits until it listens.
    pub(crate) fn serve(&self, spec: ServerSpec<'_>) -> Result<RunningServer, LabError> {
        let control = self.work_path(&format!("{}.server.sock", spec.row));
        let mut command = Command::new(&self.program);
        command.args(["serve", spec.handler, "--accept", spec.accept, "--backlog", BACKLOG]);
        command.args(["--listen", &self.listen_at(spec.port).to_string()]);
        command.args(["--cores", &spec.cores.to_string(), "--exit-with-parent"]);
        command.arg("--control").arg(&control);
        if let Some(idle) = spec.idle_timeout {
            command.args(["--idle-timeout", &show_duration(idle)]);
        }
        let mut process = self.start_server(spec.row, command)?;
        let addr = self.wait_for(&mut process, || listens_at(&control))?;
        Ok(RunningServer { process, endpoint: ServerEndpoint { addr, control: Some(control) } })
    }

    /// Starts some other server, and waits until it accepts connections at `addr`.
    pub(crate) fn serve_other(
        &self,
        row: &str,
        command: Command,
        addr: SocketAddr,
    ) -> Result<RunningServer, LabError> {
        let mut process = self.start_server(row, command)?;
        let ready = || self.network.accepts(addr, WAIT_STEP).then_some(addr);
        let addr = self.wait_for(&mut process, ready)?;
        Ok(RunningServer { process, endpoint: ServerEndpoint { addr, control: None } })
    }

    /// Where a server is to listen.
    pub(crate) fn listen_at(&self, port: u16) -> SocketAddr {
        self.network.listen_at(port)
    }

    fn start_server(&self, row: &str, command: Command) -> Result<Process, LabError> {
        let spawn = |command| self.network.spawn_server(command);
        Process::start("server", command, self.path(&format!("{row}.server.log")), spawn)
    }

    fn wait_for<T>(
        &self,
        process: &mut Process,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Result<T, LabError> {
        let began = Instant::now();
        loop {
            if let Some(found) = ready() {
                return Ok(found);
            }
            if let Some(error) = process.early_exit() {
                return Err(error);
            }
            if began.elapsed() > START_TIMEOUT || self.is_stopped() {
                return Err(process.error(&format!("was not ready within {START_TIMEOUT:?}")));
            }
            std::thread::sleep(WAIT_STEP);
        }
    }

    /// Runs a load against `server` to its end. `each` sees every interval and may end it early, as
    /// may the user.
    pub(crate) fn load(
        &self,
        spec: &LoadSpec<'_>,
        server: &ServerEndpoint,
        progress: &mut dyn FnMut(LabProgress<'_>),
        mut each: impl FnMut(&Interval) -> NextStep,
    ) -> Result<FinishedRun, LabError> {
        let row = spec.row;
        let scenario = self.path(&format!("{row}.yaml"));
        Self::write(&scenario, spec.scenario)
            .map_err(|error| LabError::File(scenario.clone(), error))?;
        let record = self.path(&format!("{row}.jsonl"));
        let _ = fs::remove_file(&record);
        let control = self.load_control(row);
        let command = self.load_command(spec, &scenario, server, &record, &control);
        let spawn = |command| self.network.spawn_generator(command);
        let log = self.path(&format!("{row}.load.log"));
        let mut process = Process::start("generator", command, log, spawn)?;

        let mut follow = RunFileFollower::new(&record);
        let mut asked_to_end = false;
        let mut interrupted = false;
        let end_timeout = if spec.killed_on_stop { BRIEF_END_TIMEOUT } else { END_TIMEOUT };
        let mut give_up_at = Instant::now() + Duration::from_secs(spec.seconds) + end_timeout;
        let latest = give_up_at + LEAVING_MAX;
        loop {
            let ended = process.has_ended();
            let mut go = NextStep::Continue;
            follow.read(&mut |interval, previous| {
                progress(LabProgress::Interval { row, interval, previous, seconds: spec.seconds });
                if each(interval) == NextStep::Stop {
                    go = NextStep::Stop;
                }
                // Millions take minutes to leave: whoever is at it is not stuck.
                if interval.load.as_ref().is_some_and(LoadInterval::is_leaving) {
                    give_up_at = latest.min(give_up_at.max(Instant::now() + end_timeout));
                }
            });
            if ended {
                break;
            }
            interrupted |= self.is_stopped();
            if interrupted && spec.killed_on_stop {
                process.kill();
                return Err(process.error("was killed"));
            }
            if !asked_to_end && (interrupted || go == NextStep::Stop) {
                request_shutdown(&control);
                asked_to_end = true;
                give_up_at = Instant::now() + END_TIMEOUT;
            }
            if Instant::now() > give_up_at {
                return Err(process.error("did not end in time and was killed"));
            }
            std::thread::sleep(WAIT_STEP);
        }
        process.check_ran()?;
        let file = follow.finish().map_err(|error| LabError::File(record, error))?;
        let diagnosis = diagnose(&History::of(&file), &Summary::of(&file), &[]);
        // Of a row that was run again, the last time counts.
        self.drop_diagnosis(row);
        self.diagnoses.borrow_mut().push(RowDiagnosis { row: row.to_owned(), diagnosis });
        Ok(FinishedRun { file, interrupted })
    }

    fn load_command(
        &self,
        spec: &LoadSpec<'_>,
        scenario: &Path,
        server: &ServerEndpoint,
        record: &Path,
        control: &Path,
    ) -> Command {
        let mut command = Command::new(&self.program);
        let target = spec.target.replace('@', &server.addr.to_string());
        command.arg("run").arg(scenario).args(["--target", &target]);
        command.args(["--interval", &show_duration(spec.interval)]);
        command.arg("--record").arg(record).arg("--control").arg(control);
        command.args(["--exit-with-parent", "--no-calibrate"]);
        if self.force {
            command.arg("--force");
        }
        if let Some(cores) = spec.cores {
            command.args(["--cores", &cores.to_string()]);
        }
        if let Some(control) = &server.control {
            command.arg("--server-control").arg(control);
        }
        if self.is_isolated() {
            for source in isolate::sources() {
                command.args([OsStr::new("--source"), OsStr::new(&source.to_string())]);
            }
        }
        command
    }

    /// The control socket of a row's generator.
    pub(crate) fn load_control(&self, row: &str) -> PathBuf {
        self.work_path(&format!("{row}.load.sock"))
    }
}

impl RunningServer {
    /// Ends it, and waits until it has.
    pub(crate) fn stop(mut self) {
        self.process.stop();
    }
}

fn listens_at(control: &Path) -> Option<SocketAddr> {
    let mut client = ControlClient::connect(control).ok()?.with_timeout(Duration::from_secs(1));
    let reply = client.ask(&ControlRequest::new(Verb::Snapshot)).ok()?;
    let snapshot: ServerSnapshot = serde_json::from_value(reply.data).ok()?;
    snapshot.listen.parse().ok()
}

/// A generator that does not answer is not asked again: the time-out ends it.
fn request_shutdown(control: &Path) {
    if let Ok(client) = ControlClient::connect(control) {
        let _ =
            client.with_timeout(Duration::from_secs(2)).ask(&ControlRequest::new(Verb::Shutdown));
    }
}

/// A target that takes bytes.
pub(crate) const TCP: &str = "tcp://@";
/// `throng serve chat`.
pub(crate) const CHAT: &str = "ws://@/";
/// `throng serve channels`.
pub(crate) const CHANNELS: &str = "ws://@/socket/websocket";

/// What every server of every row gets.
const BACKLOG: &str = "4096";
/// How long an end may take until it is ready.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a load may take to end after its phases, or after it was told to.
const END_TIMEOUT: Duration = Duration::from_secs(90);
/// The longest that it may take its users to leave, on top of that.
const LEAVING_MAX: Duration = Duration::from_secs(600);
/// How long a load that is brief may take to end.
const BRIEF_END_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a lab looks.
const WAIT_STEP: Duration = Duration::from_millis(50);
