//! Where a wall is provoked: network namespaces that are gone afterwards, the server, and the run against it.

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
use throng_lab::isolate::{Isolation, SERVER_ADDRESS};

use super::Provoked;

/// The ends of a run, and what was started for it; all of it ends with the stage.
pub(crate) struct Stage {
    dir: TempDir,
    wall: &'static str,
    /// Dropped in this order: processes first, then what they were in.
    started: Vec<Process>,
    kept: Vec<Box<dyn Any>>,
    link: Option<Isolation>,
    /// Held so that no other wall makes small meanwhile what the whole machine shares.
    unchanged: Option<File>,
}

impl Stage {
    /// Both ends in one new network namespace, into which the calling thread moves.
    pub(crate) fn here() -> Result<Self, String> {
        netns::unshare().map_err(|errno| format!("a network namespace needs root: {errno}"))?;
        let stage = Self::new(None);
        stage.at_server("ip link set lo up")?;
        Ok(stage)
    }

    /// Each end in a namespace of its own, with a veth pair between them, `veth-server` and `veth-load`.
    pub(crate) fn linked() -> Result<Self, String> {
        let link = Isolation::new(1_000).map_err(|error| error.to_string())?;
        Ok(Self::new(Some(link)))
    }

    fn new(link: Option<Isolation>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let unchanged = hold_unchanged();
        Self { dir, wall: "", started: Vec::new(), kept: Vec::new(), link, unchanged }
    }

    /// Names the wall, after which run files are called.
    pub(crate) fn is_of(&mut self, wall: &'static str) {
        self.wall = wall;
    }

    /// Runs lines of shell in the server's namespace.
    ///
    /// # Errors
    /// They failed: what they said.
    pub(crate) fn at_server(&self, lines: &str) -> Result<(), String> {
        finished(lines, self.spawn_server(shell(lines)))
    }

    /// The same in the generator's namespace.
    pub(crate) fn at_load(&self, lines: &str) -> Result<(), String> {
        finished(lines, self.spawn_load(shell(lines)))
    }

    /// Sets sysctls of the whole machine, `(file below /proc/sys, value)`, until what is returned is dropped. No other wall
    /// runs meanwhile.
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

    /// Starts `throng serve` with `args`, and gives the address at which it listens.
    pub(crate) fn serve(&mut self, args: &[&str]) -> SocketAddr {
        self.serve_by(&[], args)
    }

    /// The same behind a command that starts it, `taskset -c 1`.
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
            .unwrap_or_else(|error| panic!("{error}: {line:?} {}", server.complaints()));
        self.started.push(server);
        hello["addr"].as_str().expect("an address").parse().expect("of the usual form")
    }

    /// Starts lines of shell at the generator's end that go on beside it.
    pub(crate) fn beside_load(&mut self, lines: &str) {
        let process = Process::of(self.spawn_load(shell(lines)).expect("a shell"));
        self.started.push(process);
    }

    /// Starts another run, of which nothing is recorded.
    pub(crate) fn another_run(&mut self, scenario: &str) {
        std::fs::write(self.path("another.yaml"), scenario).unwrap();
        let mut all = vec!["run", "another.yaml", "--no-record", "--exit-with-parent"];
        all.extend(USUAL_FLAGS);
        let process = Process::of(self.spawn_load(self.throng(&[], &all)).expect("it starts"));
        self.started.push(process);
    }

    /// Runs `job` on a thread of its own in the generator's namespace.
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

    /// A flag that is set when the stage is over, for threads that go on until then.
    pub(crate) fn stop_at_its_end(&mut self) -> Arc<AtomicBool> {
        let stop = Arc::new(AtomicBool::new(false));
        self.keep(Stop(Arc::clone(&stop)));
        stop
    }

    /// Keeps something until the processes have ended.
    pub(crate) fn keep(&mut self, what: impl Sized + 'static) {
        self.kept.push(Box::new(what));
    }

    /// The process that was started last.
    pub(crate) fn last(&mut self) -> &mut Process {
        self.started.last_mut().expect("something was started")
    }

    /// Runs a scenario to its end.
    pub(crate) fn run(&self, scenario: &str) -> Provoked {
        self.run_by(&[], scenario, &[])
    }

    /// The same behind a command that starts it, with more flags.
    pub(crate) fn run_by(&self, prefix: &[&str], scenario: &str, flags: &[&str]) -> Provoked {
        self.start_run(prefix, scenario, flags).finish()
    }

    /// Begins a run, during which something is to happen.
    pub(crate) fn start_run(&self, prefix: &[&str], scenario: &str, flags: &[&str]) -> Run {
        std::fs::write(self.path("scenario.yaml"), scenario).unwrap();
        let record = kept(self.wall);
        let mut all = vec!["run", "scenario.yaml", "--json", "-", "--exit-with-parent", "--record"];
        all.push(record.to_str().expect("a plain path"));
        all.extend(USUAL_FLAGS);
        all.extend(flags);
        let command = self.throng(prefix, &all);
        // An earlier run of the wall left its own.
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

/// Sets a flag when it is dropped.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A run that goes on.
pub(crate) struct Run {
    process: Process,
    record: PathBuf,
}

impl Run {
    /// The generator's process.
    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    /// Waits until it has recorded an interval with at least `least` at a JSON pointer such as
    /// `/load/counters/connected`.
    pub(crate) fn until(&self, pointer: &str, least: u64) {
        let has_come = || {
            let text = std::fs::read_to_string(&self.record).unwrap_or_default();
            let intervals =
                text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let mut values = intervals.filter_map(|interval| interval.pointer(pointer)?.as_u64());
            values.any(|value| value >= least)
        };
        until(pointer, has_come);
    }

    /// Waits for its end and gives its summary.
    pub(crate) fn finish(mut self) -> Provoked {
        let mut stdout = self.process.child.stdout.take().unwrap();
        let read = std::thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).map(|_| text)
        });
        self.process.wait();
        let text = read.join().unwrap().unwrap();
        Ok(serde_json::from_str(&text).unwrap_or_else(|error| {
            panic!("the run gave no summary: {error}: {text:?} {}", self.process.complaints())
        }))
    }
}

/// A process that is killed with its stage. Its standard input is kept open until then: what runs with
/// `--exit-with-parent` ends even when the test is killed.
pub(crate) struct Process {
    child: Child,
    _stdin: Option<ChildStdin>,
}

impl Process {
    fn of(mut child: Child) -> Self {
        Self { _stdin: child.stdin.take(), child }
    }

    /// Leaves it where it is: it does nothing, and its connections stay.
    pub(crate) fn pause(&self) {
        kill_process(Pid::from_child(&self.child), Signal::STOP).expect("it runs");
    }

    /// The end of a pause.
    pub(crate) fn go_on(&self) {
        kill_process(Pid::from_child(&self.child), Signal::CONT).expect("it runs");
    }

    /// Lowers the fds that it may have, as an administrator may.
    pub(crate) fn limit_fds(&self, fds: u64) {
        let pid = Pid::from_child(&self.child);
        let limit = Rlimit { current: Some(fds), maximum: Some(fds) };
        prlimit(Some(pid), Resource::Nofile, limit).expect("it runs");
    }

    /// Ends it without a word.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn wait(&mut self) {
        until("its end", || self.child.try_wait().unwrap().is_some());
    }

    /// What it wrote to standard error, after its end.
    fn complaints(&mut self) -> String {
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
/// A process of its own sets them and puts them back when its standard input ends, which the kernel sees to however the
/// test ended. It holds a lock meanwhile, so that no two tests do such a thing at a time.
pub(crate) struct Machinewide {
    keeper: Child,
}

impl Machinewide {
    /// Sets each `(file below /proc/sys, value)`.
    ///
    /// # Errors
    /// One of them cannot be set.
    pub(crate) fn set(sysctls: &[(&str, &str)]) -> Result<Self, String> {
        let file = |name: &str| format!("/proc/sys/{name}");
        let save =
            |(n, (name, _)): (usize, &(&str, &str))| format!("old{n}=$(cat {})\n", file(name));
        let set = |(name, value): &(&str, &str)| format!("echo '{value}' > {} &&\n", file(name));
        let restore =
            |(n, (name, _)): (usize, &(&str, &str))| format!("echo \"$old{n}\" > {}\n", file(name));
        let script = format!(
            "trap '' INT TERM HUP\n{}{{ {} echo set || echo refused; }}\ncat >/dev/null\n{}",
            sysctls.iter().enumerate().map(save).collect::<String>(),
            sysctls.iter().map(set).collect::<String>(),
            sysctls.iter().enumerate().map(restore).collect::<String>(),
        );
        let lock = LOCK;
        // The test's process is where it began; only its threads are in other namespaces.
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
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{lines}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// Waits until it is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Connections that are established to this port of IPv4, in the calling thread's network namespace.
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

/// Where the run file of a wall stays.
fn kept(wall: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("walls");
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(format!("{}.jsonl", wall.replace(' ', "-")))
}

/// Waits until nobody changes the whole machine, and lets nobody do so for as long as the file is open.
pub(crate) fn hold_unchanged() -> Option<File> {
    // Only root makes it, and only root changes what it guards.
    let made = File::options().create(true).append(true).open(LOCK);
    let lock = made.or_else(|_| File::open(LOCK));
    lock.and_then(|lock| lock.lock_shared().map(|()| lock)).ok()
}

/// Held by the test that sets a sysctl of the whole machine. It is not among the temporary files: each suite has
/// a folder of its own for those, and every user may write to it.
const LOCK: &str = "/run/throng-global-sysctls.lock";

/// Walls are run into with open eyes, and without measuring the generator first.
const USUAL_FLAGS: [&str; 2] = ["--no-calibrate", "--force"];

/// Far more than a run here takes, for machines that are busy.
const PATIENCE: Duration = Duration::from_secs(120);
