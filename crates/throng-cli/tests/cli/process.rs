//! Processes under test. Each test has its own folder, for its files and its control sockets, so
//! that parallel tests do not see each other.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// The working folder of a test.
pub(crate) struct TestDir {
    dir: TempDir,
}

impl TestDir {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a scenario and returns its name.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        name.to_owned()
    }

    /// Parses a file of JSON.
    #[track_caller]
    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.path(name)).unwrap()).unwrap()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
        command.args(args);
        // Only the tests that request a calibration run one.
        let is_plain_run = args.first() == Some(&"run") && !args.contains(&"--calibrate");
        if is_plain_run && !args.contains(&"--help") {
            command.arg("--no-calibrate");
        }
        command
            .current_dir(self.dir.path())
            .env("XDG_RUNTIME_DIR", self.dir.path())
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        command
    }

    /// Runs `throng` to its end.
    pub(crate) fn throng(&self, args: &[&str]) -> Finished {
        Finished::from(self.command(args).output().unwrap())
    }

    /// Runs a line of shell, in which `throng` is the program under test.
    pub(crate) fn shell(&self, line: &str) -> Finished {
        let line = line.replace("throng ", &format!("{} ", env!("CARGO_BIN_EXE_throng")));
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(self.dir.path());
        Finished::from(shell.env("XDG_RUNTIME_DIR", self.dir.path()).output().unwrap())
    }

    /// Starts `throng` in the background.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Running::new(self.command(args))
    }

    /// Starts another command in the background.
    pub(crate) fn spawn(&self, mut command: Command) -> Running {
        command.env("XDG_RUNTIME_DIR", self.dir.path());
        Running::new(command)
    }

    /// Starts a server in Python, which says its port in its first line. Returns `None` if there is
    /// no Python here.
    pub(crate) fn python(&self, script: &str) -> Option<(Running, String)> {
        if Command::new("python3").arg("--version").output().is_err() {
            println!("skipped: there is no python3");
            return None;
        }
        let mut python = Command::new("python3");
        python.args(["-c", script]);
        let mut server = self.spawn(python);
        let port = server.line().trim().to_owned();
        Some((server, port))
    }

    /// Starts `throng serve` with `args` on a free port.
    pub(crate) fn serve(&self, args: &[&str]) -> Serving {
        let mut all = vec!["serve"];
        all.extend(args);
        all.extend(["--listen", "127.0.0.1:0", "--json"]);
        let mut process = self.start(&all);
        let hello: Value = serde_json::from_str(&process.line()).unwrap();
        assert_eq!(hello["event"], "listening", "{hello}");
        Serving { addr: hello["addr"].as_str().unwrap().to_owned(), hello, process }
    }

    /// Returns the output of `throng ctl count` for a process.
    pub(crate) fn count(&self, pid: u32) -> Value {
        self.throng(&["ctl", "count", "--json", "--pid", &pid.to_string()]).json()
    }
}

/// A server under test.
pub(crate) struct Serving {
    pub(crate) addr: String,
    pub(crate) hello: Value,
    pub(crate) process: Running,
}

impl Serving {
    /// Returns a scenario against the server; `load` and `user` are YAML.
    pub(crate) fn scenario(&self, load: &str, user: &str) -> String {
        format!("target: tcp://{}\nload: {load}\nuser: {user}\n", self.addr)
    }
}

/// A process that ran to its end.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Finished {
    /// Asserts on the exit code.
    #[track_caller]
    pub(crate) fn exits_with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Asserts that the run missed a threshold, or is invalid because the machine was busy.
    #[track_caller]
    pub(crate) fn misses_threshold(self) -> Self {
        assert!(matches!(self.code, Some(1 | 3)), "{self:#?}");
        self
    }

    /// Asserts that standard output contains all of `parts`.
    #[track_caller]
    pub(crate) fn stdout_contains(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.stdout.contains(part), "{part:?} is not in {}", self.stdout);
        }
        self
    }

    /// Asserts that standard error contains all of `parts`.
    #[track_caller]
    pub(crate) fn stderr_contains(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is not in {}", self.stderr);
        }
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// A running process. It is killed when it is dropped.
pub(crate) struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stdin: Option<ChildStdin>,
}

impl Running {
    /// Starts a command with pipes for its standard streams.
    pub(crate) fn new(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stdin = child.stdin.take();
        Self { child, stdout, stdin }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the next line of its output.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    /// Reads lines until one contains `part`.
    #[track_caller]
    pub(crate) fn line_with(&mut self, part: &str) -> String {
        loop {
            let line = self.line();
            assert!(!line.is_empty(), "it ended before it printed {part:?}");
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Writes a line to its standard input.
    pub(crate) fn write_line(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    /// Closes its standard input.
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for its end and returns its output.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Finished {
        let status = self.wait();
        let mut finished =
            Finished { code: status.code(), stdout: String::new(), stderr: String::new() };
        self.stdout.read_to_string(&mut finished.stdout).unwrap();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut finished.stderr).unwrap();
        finished
    }

    #[track_caller]
    fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Polls until the condition holds.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Reads a run file; an incomplete last line is skipped.
pub(crate) fn run_file(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The timeout: far more than anything here takes, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(300);
