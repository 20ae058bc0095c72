//! The stage of a cause: network namespaces that disappear afterwards, the server, and the run
//! against it.

use std::any::Any;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::Value;
use tempfile::TempDir;
use throng_driver::netns;
use throng_run::isolate::{Isolation, SERVER_ADDRESS};

use super::Provoked;

/// The server and the generator of a run. All processes end with the stage.
pub(crate) struct Stage {
    dir: TempDir,
    cause: &'static str,
    /// The fields are dropped in this order: the processes first, then their environment.
    started: Vec<Process>,
    kept: Vec<Box<dyn Any>>,
    link: Option<Isolation>,
    /// The lock that prevents other causes from changing limits of the whole machine.
    unchanged: Option<File>,
}

impl Stage {
    /// Creates a stage with server and generator in one new network namespace, into which the
    /// calling thread moves.
    pub(crate) fn here() -> Result<Self, String> {
        netns::unshare().map_err(|errno| format!("a network namespace needs root: {errno}"))?;
        let stage = Self::new(None);
        stage.at_server("ip link set lo up")?;
        Ok(stage)
    }

    /// Creates a stage with a namespace for the server and one for the generator, and a veth pair
    /// between them, `veth-server` and `veth-load`.
    pub(crate) fn linked() -> Result<Self, String> {
        let link = Isolation::new(1_000).map_err(|error| error.to_string())?;
        Ok(Self::new(Some(link)))
    }

    fn new(link: Option<Isolation>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let unchanged = hold_unchanged();
        Self { dir, cause: "", started: Vec::new(), kept: Vec::new(), link, unchanged }
    }

    /// Sets the name of the cause, from which run files take their name.
    pub(crate) fn is_of(&mut self, cause: &'static str) {
        self.cause = cause;
    }

    /// Runs lines of shell in the server's namespace.
    ///
    /// # Errors
    /// The lines failed; the error is their output.
    pub(crate) fn at_server(&self, lines: &str) -> Result<(), String> {
        finished(lines, self.spawn_server(shell(lines)))
    }

    /// Runs lines of shell in the generator's namespace.
    pub(crate) fn at_load(&self, lines: &str) -> Result<(), String> {
        finished(lines, self.spawn_load(shell(lines)))
    }

    /// Sets sysctls of the whole machine, `(file below /proc/sys, value)`, until the returned value
    /// is dropped. No other cause runs meanwhile.
    ///
    /// # Errors
    /// One of them cannot be set.
    pub(crate) fn limit_machine(
        &mut self,
        sysctls: &[(&str, &str)],
    ) -> Result<Machinewide, String> {
        self.unchanged = None;
        Machinewide::set(sysctls)
    }

    /// Starts `throng serve` with `args`, and returns the address at which it listens.
    pub(crate) fn serve(&mut self, args: &[&str]) -> SocketAddr {
        self.serve_by(&[], args)
    }

    /// Starts the server like [`Self::serve`], with a command prefix such as `taskset -c 1`.
    pub(crate) fn serve_by(&mut self, prefix: &[&str], args: &[&str]) -> SocketAddr {
        let host =
            if self.link.is_some() { SERVER_ADDRESS.to_string() } else { "127.0.0.1".into() };
        let listen = format!("{host}:0");
        let mut all = vec!["serve"];
        all.extend(args);
        if !args.contains(&"--listen") {
            all.extend(["--listen", &listen]);
        }
        all.extend(["--json", "--exit-with-parent"]);
        let command = self.throng(prefix, &all);
        let mut server = Process::of(self.spawn_server(command).expect("it starts"));
        let mut line = String::new();
        BufReader::new(server.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let hello: Value = serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("{error}: {line:?} {}", server.stderr()));
        self.started.push(server);
        hello["addr"].as_str().expect("an address").parse().expect("of the usual form")
    }

    /// Starts a foreign server in the server's namespace, and returns the first line that it
    /// writes.
    pub(crate) fn start_server(&mut self, mut command: Command) -> String {
        piped(command.current_dir(self.dir.path()));
        let mut server = Process::of(self.spawn_server(command).expect("it starts"));
        let mut line = String::new();
        BufReader::new(server.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line.is_empty() {
            panic!("the server wrote nothing: {}", server.stderr());
        }
        self.started.push(server);
        line
    }

    /// Starts lines of shell in the generator's namespace, in the background.
    pub(crate) fn beside_load(&mut self, lines: &str) {
        let process = Process::of(self.spawn_load(shell(lines)).expect("a shell"));
        self.started.push(process);
    }

    /// Starts another run, which is not recorded.
    pub(crate) fn another_run(&mut self, scenario: &str) {
        std::fs::write(self.path("another.yaml"), scenario).unwrap();
        let mut all = vec!["run", "another.yaml", "--no-record", "--exit-with-parent"];
        all.extend(USUAL_FLAGS);
        let process = Process::of(self.spawn_load(self.throng(&[], &all)).expect("it starts"));
        self.started.push(process);
    }

    /// Runs `job` on its own thread in the generator's namespace.
    pub(crate) fn thread_at_load(&mut self, job: impl FnOnce() + Send + 'static) {
        let resident = self.link.is_some().then(|| {
            self.beside_load("cat");
            self.last().child.id()
        });
        std::thread::spawn(move || {
            if let Some(pid) = resident {
                netns::enter(pid).expect("the namespace of a child");
            }
            job();
        });
    }

    /// Returns a flag that is set when the stage ends, for threads that run until then.
    pub(crate) fn stop_at_end(&mut self) -> Arc<AtomicBool> {
        let stop = Arc::new(AtomicBool::new(false));
        self.keep(Stop(Arc::clone(&stop)));
        stop
    }

    /// Keeps a value until the processes have ended.
    pub(crate) fn keep(&mut self, what: impl Sized + 'static) {
        self.kept.push(Box::new(what));
    }

    /// Returns the process that was started last.
    pub(crate) fn last(&mut self) -> &mut Process {
        self.started.last_mut().expect("something was started")
    }

    /// Runs a scenario to its end.
    pub(crate) fn run(&self, scenario: &str) -> Provoked {
        self.run_by(&[], scenario, &[])
    }

    /// Runs a scenario with a command prefix and more flags.
    pub(crate) fn run_by(&self, prefix: &[&str], scenario: &str, flags: &[&str]) -> Provoked {
        self.start_run(prefix, scenario, flags).finish()
    }

    /// Starts a run, so that the test can act during it.
    pub(crate) fn start_run(&self, prefix: &[&str], scenario: &str, flags: &[&str]) -> Run {
        std::fs::write(self.path("scenario.yaml"), scenario).unwrap();
        let record = kept(self.cause);
        let mut all = vec!["run", "scenario.yaml", "--json", "-", "--exit-with-parent", "--record"];
        all.push(record.to_str().expect("a plain path"));
        all.extend(USUAL_FLAGS);
        all.extend(flags);
        let command = self.throng(prefix, &all);
        // An earlier run of the cause left its own.
        let _ = std::fs::remove_file(&record);
        Run { process: Process::of(self.spawn_load(command).expect("it starts")), record }
    }

    /// A file of this stage.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn throng(&self, prefix: &[&str], args: &[&str]) -> Command {
        let binary = [env!("CARGO_BIN_EXE_throng")];
        let mut words = prefix.iter().chain(&binary).chain(args);
        let mut command = Command::new(words.next().unwrap());
        command.args(words).current_dir(self.dir.path()).env("XDG_RUNTIME_DIR", self.dir.path());
        piped(&mut command);
        command
    }

    fn spawn_server(&self, mut command: Command) -> std::io::Result<Child> {
        match &self.link {
            Some(link) => link.spawn_server(command),
            None => command.spawn(),
        }
    }

    fn spawn_load(&self, mut command: Command) -> std::io::Result<Child> {
        match &self.link {
            Some(link) => link.spawn_generator(command),
            None => command.spawn(),
        }
    }
}

/// A guard that sets a flag when it is dropped.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A run in progress.
pub(crate) struct Run {
    process: Process,
    record: PathBuf,
}

impl Run {
    /// Returns the generator's process.
    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    /// Waits until the run has recorded an interval with at least `least` at a JSON pointer such as
    /// `/load/counters/connected`.
    pub(crate) fn until(&self, pointer: &str, least: u64) {
        let is_reached = || {
            let text = std::fs::read_to_string(&self.record).unwrap_or_default();
            let intervals =
                text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let mut values = intervals.filter_map(|interval| interval.pointer(pointer)?.as_u64());
            values.any(|value| value >= least)
        };
        until(pointer, is_reached);
    }

    /// Waits for the end of the run and returns its summary.
    pub(crate) fn finish(mut self) -> Provoked {
        let mut stdout = self.process.child.stdout.take().unwrap();
        let read = std::thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).map(|_| text)
        });
        self.process.wait();
        let text = read.join().unwrap().unwrap();
        Ok(serde_json::from_str(&text).unwrap_or_else(|error| {
            panic!("the run gave no summary: {error}: {text:?} {}", self.process.stderr())
        }))
    }
}

/// A process that is killed with its stage. Its standard input stays open until then, so a process
/// with `--exit-with-parent` ends even if the test is killed.
pub(crate) struct Process {
    child: Child,
    _stdin: Option<ChildStdin>,
}

impl Process {
    fn of(mut child: Child) -> Self {
        Self { _stdin: child.stdin.take(), child }
    }

    /// Stops the process with SIGSTOP; its connections stay.
    pub(crate) fn pause(&self) {
        kill_process(Pid::from_child(&self.child), Signal::STOP).expect("it runs");
    }

    /// Continues a stopped process.
    pub(crate) fn resume(&self) {
        kill_process(Pid::from_child(&self.child), Signal::CONT).expect("it runs");
    }

    /// Lowers the fd limit of the process, as an administrator may.
    pub(crate) fn limit_fds(&self, fds: u64) {
        let pid = Pid::from_child(&self.child);
        let limit = Rlimit { current: Some(fds), maximum: Some(fds) };
        prlimit(Some(pid), Resource::Nofile, limit).expect("it runs");
    }

    /// Kills the process.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn wait(&mut self) {
        until("its end", || self.child.try_wait().unwrap().is_some());
    }

    /// Kills the process and returns its standard error.
    fn stderr(&mut self) -> String {
        self.kill();
        let mut text = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut text);
        }
        text
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sysctls of the whole machine, set until this is dropped.
///
/// A separate process sets the sysctls and restores them when its standard input ends, which
/// happens however the test ends. It holds a lock meanwhile, so no two tests change sysctls at the
/// same time.
pub(crate) struct Machinewide {
    keeper: Child,
}

impl Machinewide {
    /// Sets each `(file below /proc/sys, value)`. The shell expands a value while no other cause
    /// runs.
    ///
    /// # Errors
    /// One of them cannot be set.
    pub(crate) fn set(sysctls: &[(&str, &str)]) -> Result<Self, String> {
        let file = |name: &str| format!("/proc/sys/{name}");
        let save =
            |(n, (name, _)): (usize, &(&str, &str))| format!("old{n}=$(cat {})\n", file(name));
        let set = |(name, value): &(&str, &str)| format!("echo \"{value}\" > {} &&\n", file(name));
        let restore =
            |(n, (name, _)): (usize, &(&str, &str))| format!("echo \"$old{n}\" > {}\n", file(name));
        let script = format!(
            "trap '' INT TERM HUP\n{}{{ {} echo set || echo refused; }}\ncat >/dev/null\n{}",
            sysctls.iter().enumerate().map(save).collect::<String>(),
            sysctls.iter().map(set).collect::<String>(),
            sysctls.iter().enumerate().map(restore).collect::<String>(),
        );
        let lock = LOCK;
        // The process of the test is in its original namespace; only its threads are in others.
        let home = format!("--net=/proc/{}/ns/net", std::process::id());
        let mut command = Command::new("setsid");
        command.args(["nsenter", &home, "flock"]).arg(lock).args(["sh", "-c", &script]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut keeper =
            command.spawn().map_err(|error| format!("setsid, nsenter and flock: {error}"))?;
        let mut said = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let kept = Self { keeper };
        if said.trim() == "set" { Ok(kept) } else { Err(format!("{sysctls:?} cannot be set")) }
    }
}

impl Drop for Machinewide {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

fn shell(lines: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-ec", lines]);
    piped(&mut command);
    command
}

fn piped(command: &mut Command) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
}

fn finished(lines: &str, child: std::io::Result<Child>) -> Result<(), String> {
    let output = child.and_then(Child::wait_with_output).map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("{lines}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}

/// Waits until the condition holds.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the number of established connections to this IPv4 port, in the calling thread's network
/// namespace.
pub(crate) fn established(port: u16) -> usize {
    let text = std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap_or_default();
    let here = format!(":{port:04X}");
    // The second field is the local address, the fourth the state: 01 is established.
    let is_one = |line: &&str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        fields.get(1).is_some_and(|local| local.ends_with(&here)) && fields.get(3) == Some(&"01")
    };
    text.lines().filter(is_one).count()
}

/// Returns the path of the run file of a cause.
fn kept(cause: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_CRATE_NAME"));
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(format!("{}.jsonl", cause.replace(' ', "-")))
}

/// Waits until no test changes sysctls of the machine, and prevents changes while the file is open.
pub(crate) fn hold_unchanged() -> Option<File> {
    // Only root creates the lock file, and only root changes the sysctls that it guards.
    let made = File::options().create(true).append(true).open(LOCK);
    let lock = made.or_else(|_| File::open(LOCK));
    lock.and_then(|lock| lock.lock_shared().map(|()| lock)).ok()
}

/// The lock of the test that sets a sysctl of the whole machine. It is not among the temporary
/// files, because each suite has its own folder for those, and every user may write to it.
const LOCK: &str = "/run/throng-global-sysctls.lock";

/// The usual flags: no calibration of the generator, and no preflight.
const USUAL_FLAGS: [&str; 2] = ["--no-calibrate", "--force"];

/// The timeout: far more than a run here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);
