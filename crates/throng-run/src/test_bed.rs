//! The test bed of labs and calibrations: server and generator as processes of this program, their
//! files and their network.
//!
//! Each process reads its standard input, a pipe from this process, and ends when the pipe closes:
//! the kernel closes it however this process ends. Each is in a process group of its own, so that
//! Ctrl-C on the terminal reaches this process alone, which then ramps the load down.

mod error;
mod folder;
mod follow;
mod network;
mod options;
mod over_tls;
mod process;
mod progress;
mod row_diagnosis;

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
use throng_measure::runfile::RunFile;
use throng_measure::{Interval, LoadInterval, ServerSnapshot};
use throng_report::Summary;

use crate::isolate::{self, Isolation};
use folder::WorkFolder;
use follow::{RunFileFollower, RunFileLine};
use network::Network;
use over_tls::{scenario_over_tls, target_over_tls};
use process::Process;

pub use error::TestBedError;
pub use options::{BUS_VARIABLE, BusAccess, TestBedOptions};
pub use progress::TestBedProgress;
pub use row_diagnosis::RowDiagnosis;

/// The program, the folders and the network of a lab.
#[derive(Debug)]
pub struct TestBed {
    program: PathBuf,
    /// The folder of scenarios, run files and output.
    folder: PathBuf,
    /// The folder of control sockets and of code that runs. A control socket's path has at most 107
    /// bytes, so it cannot be in a folder of the user's choice.
    work: WorkFolder,
    network: Network,
    /// The bus of agents and of servers that share topics.
    bus: Option<BusAccess>,
    /// The agents that load the server in place of this machine.
    agents: Option<String>,
    /// True when servers and loads are over TLS.
    over_tls: bool,
    /// True when the generator runs a size that should not fit.
    force: bool,
    stop: Arc<AtomicBool>,
    /// The diagnosis of each load so far.
    diagnoses: RefCell<Vec<RowDiagnosis>>,
}

/// The options of a server to start.
#[derive(Clone, Copy, Debug)]
pub struct ServerSpec<'a> {
    /// The name of the row, which its files carry.
    pub row: &'a str,
    /// The kind of server: `ok`, `pingpong`, ….
    pub handler: &'a str,
    /// The accept topology: `reuseport`, `shared`, `dispatch`.
    pub accept: &'a str,
    /// The server's cores.
    pub cores: u64,
    /// The port to listen on; 0 for any free port.
    pub port: u16,
    /// The time after which the server closes an idle connection; none for the handler's default.
    pub idle_timeout: Option<Duration>,
    /// The number, from 1, of a server that shares its topics with others over the bus.
    pub node: Option<u8>,
}

impl<'a> ServerSpec<'a> {
    /// Returns a server with a listener per core, on any free port.
    pub fn new(row: &'a str, handler: &'a str, cores: u64) -> Self {
        Self { row, handler, accept: "reuseport", cores, port: 0, idle_timeout: None, node: None }
    }
}

/// The options of a load to run against a server.
#[derive(Clone, Debug)]
pub struct LoadSpec<'a> {
    /// The name of the row, which its files carry.
    pub row: &'a str,
    /// The scenario's text; the test bed replaces its target.
    pub scenario: &'a str,
    /// The target, with `@` for the server's address: `tcp://@`.
    pub target: &'a str,
    /// The seconds that the load should take.
    pub seconds: u64,
    /// The length of an interval.
    pub interval: Duration,
    /// The generator's cores; none for as many as suit the load.
    pub cores: Option<usize>,
    /// Kills the generator when the user ends the lab early, because half of its result is of no
    /// use.
    pub killed_on_stop: bool,
}

impl<'a> LoadSpec<'a> {
    /// Returns a load that is recorded every second.
    pub fn new(row: &'a str, target: &'a str, scenario: &'a str, seconds: u64) -> Self {
        let interval = Duration::from_secs(1);
        Self { row, scenario, target, seconds, interval, cores: None, killed_on_stop: false }
    }
}

/// A server process that listens.
#[derive(Debug)]
pub struct TestBedServer {
    process: Process,
    /// The server's addresses.
    pub endpoint: ServerEndpoint,
}

/// The addresses of a server.
#[derive(Clone, Debug)]
pub struct ServerEndpoint {
    /// The address on which the server listens.
    pub addr: SocketAddr,
    /// The address for a target; of several nodes, all of them.
    authority: String,
    /// The server's control socket; none when it is not a throng server.
    control: Option<PathBuf>,
}

/// The decision after an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// The load goes on.
    Continue,
    /// The load ramps down and the row ends.
    Stop,
}

/// The result of a run that is over.
#[derive(Debug)]
pub struct FinishedRun {
    /// The recorded intervals.
    pub file: RunFile,
    /// True when the user ended the run early.
    pub interrupted: bool,
}

impl TestBed {
    /// Returns the test bed of a lab; `lab` is part of the name of its folder.
    ///
    /// # Errors
    /// [`TestBedError`]: a folder cannot be written, or the kernel refused the namespaces.
    pub fn new(lab: &str, options: &TestBedOptions) -> Result<Self, TestBedError> {
        let program = match &options.program {
            Some(program) => program.clone(),
            None => std::env::current_exe()
                .map_err(|error| TestBedError::File("/proc/self/exe".into(), error))?,
        };
        let work = WorkFolder::create(lab)
            .map_err(|error| TestBedError::File(std::env::temp_dir(), error))?;
        let folder = match &options.keep_files {
            Some(folder) => {
                folder::prepare_kept(folder)
                    .map_err(|error| TestBedError::File(folder.clone(), error))?;
                folder.clone()
            }
            None => work.path().to_owned(),
        };
        let isolation = options.isolated_users.map(Isolation::new).transpose()?;
        Ok(Self {
            program,
            folder,
            work,
            network: Network::new(isolation, options.listen),
            bus: options.bus.clone(),
            agents: options.agents.clone(),
            over_tls: options.over_tls,
            force: options.force,
            stop: Arc::clone(&options.stop),
            diagnoses: RefCell::default(),
        })
    }

    /// Returns the addresses of a server and of its further nodes, on one port. The run observes
    /// none of them: the counters of one say nothing about the connections to all.
    pub fn address_of_nodes(&self, endpoint: ServerEndpoint, nodes: u8) -> ServerEndpoint {
        let host = |node| self.network.listen_at(Some(node), 0).ip().to_string();
        let hosts: Vec<_> = (1..=nodes).map(host).collect();
        let authority = format!("{}:{}", hosts.join(","), endpoint.addr.port());
        ServerEndpoint { authority, control: None, ..endpoint }
    }

    /// Returns the diagnosis of each load so far.
    pub fn diagnoses(&self) -> Vec<RowDiagnosis> {
        self.diagnoses.borrow().clone()
    }

    /// Removes the diagnosis of a load that was only a trial.
    pub fn drop_diagnosis(&self, row: &str) {
        self.diagnoses.borrow_mut().retain(|diagnosis| diagnosis.row != row);
    }

    /// Reports whether the user has ended the lab.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Reports whether server and generator have a namespace each.
    pub fn is_isolated(&self) -> bool {
        self.network.is_isolated()
    }

    /// Starts later processes in a network namespace with a larger TCP hash table if `sockets`
    /// would crowd the machine's table of `buckets`. Notes the cost where that fails, or where
    /// `may_move` is false.
    pub fn use_larger_table(&self, sockets: u64, buckets: u64, may_move: bool) {
        self.network.use_larger_table(sockets, buckets, may_move);
    }

    /// Returns a note on the network for the report.
    pub fn network_note(&self) -> Option<String> {
        self.network.note()
    }

    /// Returns the path for a file that the user may keep.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the path for a file that the lab removes, and that no other user may change.
    pub fn work_path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    /// Writes a file of this lab and replaces an existing one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(path: &Path, text: &str) -> io::Result<()> {
        create_file(path)?.write_all(text.as_bytes())
    }

    /// Returns the command of this program. The bus of this process's environment is not the test
    /// bed's: a server would share its topics there.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env_remove(BUS_VARIABLE);
        command
    }

    /// Starts a throng server and waits until it listens.
    ///
    /// # Errors
    /// [`TestBedError`]: it did not start, or was not ready in time.
    pub fn serve(&self, spec: ServerSpec<'_>) -> Result<TestBedServer, TestBedError> {
        let name = match spec.node {
            Some(node) => format!("{}.node-{node}", spec.row),
            None => format!("{}.server", spec.row),
        };
        let control = self.work_path(&format!("{name}.sock"));
        let mut command = self.command();
        command.args(["serve", spec.handler, "--accept", spec.accept, "--backlog", BACKLOG]);
        let listen = self.network.listen_at(spec.node, spec.port);
        command.args(["--listen", &listen.to_string()]);
        if let Some((node, bus)) = spec.node.zip(self.bus.as_ref()) {
            bus.add_to(&mut command);
            command.args(["--node", &format!("lab-{}-{node}", std::process::id())]);
        }
        command.args(["--cores", &spec.cores.to_string(), "--exit-with-parent"]);
        command.arg("--control").arg(&control);
        if self.over_tls {
            command.arg("--tls-self-signed");
        }
        if let Some(idle) = spec.idle_timeout {
            command.args(["--idle-timeout", &show_duration(idle)]);
        }
        let mut process = self.start_server(&name, command)?;
        let addr = self.wait_for(&mut process, || snapshot(&control)?.listen.parse().ok())?;
        let endpoint = ServerEndpoint { addr, authority: addr.to_string(), control: Some(control) };
        Ok(TestBedServer { process, endpoint })
    }

    /// Starts another program as the server, and waits until it accepts connections at `addr`.
    ///
    /// # Errors
    /// [`TestBedError`]: it did not start, or was not ready in time.
    pub fn serve_other(
        &self,
        row: &str,
        command: Command,
        addr: SocketAddr,
    ) -> Result<TestBedServer, TestBedError> {
        let mut process = self.start_server(&format!("{row}.server"), command)?;
        let ready = || self.network.accepts(addr, WAIT_STEP).then_some(addr);
        let addr = self.wait_for(&mut process, ready)?;
        let endpoint = ServerEndpoint { addr, authority: addr.to_string(), control: None };
        Ok(TestBedServer { process, endpoint })
    }

    /// Returns the address for a server to listen on.
    pub fn listen_at(&self, port: u16) -> SocketAddr {
        self.network.listen_at(None, port)
    }

    fn start_server(&self, name: &str, command: Command) -> Result<Process, TestBedError> {
        let spawn = |command| self.network.spawn_server(command);
        Process::start("server", command, self.path(&format!("{name}.log")), spawn)
    }

    fn wait_for<T>(
        &self,
        process: &mut Process,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Result<T, TestBedError> {
        let began = Instant::now();
        loop {
            if let Some(result) = ready() {
                return Ok(result);
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

    /// Runs a load against `server` to its end. Calls `each` with every interval; it may end the
    /// load early, as may the user.
    ///
    /// # Errors
    /// [`TestBedError`]: the generator did not start, or did not end in time.
    pub fn load(
        &self,
        spec: &LoadSpec<'_>,
        server: &ServerEndpoint,
        progress: &mut dyn FnMut(TestBedProgress<'_>),
        mut each: impl FnMut(&Interval) -> NextStep,
    ) -> Result<FinishedRun, TestBedError> {
        let row = spec.row;
        let scenario = self.path(&format!("{row}.yaml"));
        let text = match self.over_tls {
            true => scenario_over_tls(spec.scenario),
            false => spec.scenario.to_owned(),
        };
        Self::write(&scenario, &text)
            .map_err(|error| TestBedError::File(scenario.clone(), error))?;
        let record = self.path(&format!("{row}.jsonl"));
        let _ = fs::remove_file(&record);
        let control = self.load_control(row);
        let command = self.load_command(spec, &scenario, server, &record, &control);
        let spawn = |command| self.network.spawn_generator(command);
        let log = self.path(&format!("{row}.load.log"));
        let mut process = Process::start("generator", command, log, spawn)?;

        let mut follow = RunFileFollower::new(&record);
        let mut is_shutting_down = false;
        let mut interrupted = false;
        let end_timeout = if spec.killed_on_stop { BRIEF_END_TIMEOUT } else { END_TIMEOUT };
        let mut kill_at = Instant::now() + Duration::from_secs(spec.seconds) + end_timeout;
        let latest = kill_at + LEAVING_MAX;
        loop {
            let ended = process.has_ended();
            let mut next = NextStep::Continue;
            follow.read(&mut |line| {
                let (interval, previous) = match line {
                    RunFileLine::Header(header) => {
                        let control = &control;
                        return progress(TestBedProgress::Begin { header, control });
                    }
                    RunFileLine::Interval(interval, previous) => (interval, previous),
                };
                progress(TestBedProgress::Interval {
                    row,
                    interval,
                    previous,
                    seconds: spec.seconds,
                });
                if each(interval) == NextStep::Stop {
                    next = NextStep::Stop;
                }
                // Millions of users take minutes to leave: a generator that reports it is not
                // stuck.
                if interval.load.as_ref().is_some_and(LoadInterval::is_leaving) {
                    kill_at = latest.min(kill_at.max(Instant::now() + end_timeout));
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
            if !is_shutting_down && (interrupted || next == NextStep::Stop) {
                request_shutdown(&control);
                is_shutting_down = true;
                kill_at = Instant::now() + END_TIMEOUT;
            }
            if Instant::now() > kill_at {
                return Err(process.error("did not end in time and was killed"));
            }
            std::thread::sleep(WAIT_STEP);
        }
        process.check_ran()?;
        let file = follow.finish().map_err(|error| TestBedError::File(record, error))?;
        self.finish_load(row, &file, progress);
        Ok(FinishedRun { file, interrupted })
    }

    /// Reports the end of a run, and keeps its diagnosis.
    fn finish_load(
        &self,
        row: &str,
        file: &RunFile,
        progress: &mut dyn FnMut(TestBedProgress<'_>),
    ) {
        let (end, lines_torn) = (file.end.as_ref(), file.lines_torn);
        progress(TestBedProgress::End { end, lines_torn });
        let diagnosis = diagnose(&History::of(file), &Summary::of(file), &[]);
        // If a row runs again, its last run counts.
        self.drop_diagnosis(row);
        self.diagnoses.borrow_mut().push(RowDiagnosis { row: row.to_owned(), diagnosis });
    }

    fn load_command(
        &self,
        spec: &LoadSpec<'_>,
        scenario: &Path,
        server: &ServerEndpoint,
        record: &Path,
        control: &Path,
    ) -> Command {
        let mut command = self.command();
        let target = spec.target.replace('@', &server.authority);
        let target = if self.over_tls { target_over_tls(&target) } else { target };
        command.arg("run").arg(scenario).args(["--target", &target]);
        command.args(["--interval", &show_duration(spec.interval)]);
        command.arg("--record").arg(record).arg("--control").arg(control);
        command.args(["--exit-with-parent", "--no-calibrate"]);
        if let Some((agents, bus)) = self.agents.as_ref().zip(self.bus.as_ref()) {
            bus.add_to(&mut command);
            command.args(["--agents", agents]);
        }
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

    /// Returns the control socket of a row's generator.
    pub fn load_control(&self, row: &str) -> PathBuf {
        self.work_path(&format!("{row}.load.sock"))
    }
}

impl TestBedServer {
    /// Ends the server and waits until it has ended.
    pub fn stop(mut self) {
        self.end();
    }

    /// Ends the server, which another one replaces.
    pub fn end(&mut self) {
        self.process.stop();
    }
}

impl ServerEndpoint {
    /// Returns the server's counters; none if it does not answer, or is not a throng server.
    pub fn snapshot(&self) -> Option<ServerSnapshot> {
        snapshot(self.control.as_deref()?)
    }
}

fn snapshot(control: &Path) -> Option<ServerSnapshot> {
    let mut client = ControlClient::connect(control).ok()?.with_timeout(Duration::from_secs(1));
    let reply = client.request(&ControlRequest::new(Verb::Snapshot)).ok()?;
    serde_json::from_value(reply.data).ok()
}

/// Asks the generator to shut down. If it does not answer, the time-out of the load kills it.
fn request_shutdown(control: &Path) {
    if let Ok(client) = ControlClient::connect(control) {
        let _ = client
            .with_timeout(Duration::from_secs(2))
            .request(&ControlRequest::new(Verb::Shutdown));
    }
}

/// The backlog of every server.
const BACKLOG: &str = "4096";
/// The time in which a server must be ready.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// The time in which a load must end after its phases, or after a shutdown request.
const END_TIMEOUT: Duration = Duration::from_secs(90);
/// The longest additional time for the users to leave.
const LEAVING_MAX: Duration = Duration::from_secs(600);
/// The time in which a load with `killed_on_stop` must end after its phases. A machine that gives
/// the load a fraction of a CPU needs more than ten seconds for it.
const BRIEF_END_TIMEOUT: Duration = Duration::from_secs(60);
/// The time between two looks at the processes.
const WAIT_STEP: Duration = Duration::from_millis(50);
