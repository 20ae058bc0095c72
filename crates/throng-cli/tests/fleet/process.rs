//! Processes under test.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A running process, whose output goes to files. It is killed when it is dropped. Its standard
/// input stays open until then, so one with `--exit-with-parent` ends even if the test is killed.
pub(crate) struct Process {
    child: Child,
    _stdin: Option<ChildStdin>,
    out: PathBuf,
    err: PathBuf,
}

impl Process {
    /// Starts a command. Its output goes to files in `folder` with this name.
    pub(crate) fn start(mut command: Command, folder: &Path, name: &str) -> Self {
        let [out, err] = ["out", "err"].map(|end| folder.join(format!("{name}.{end}")));
        let file = |path: &Path| File::create(path).expect("a file for the output");
        command.stdin(Stdio::piped()).stdout(file(&out)).stderr(file(&err));
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { _stdin: child.stdin.take(), child, out, err }
    }

    /// Returns what it has written so far to standard output.
    pub(crate) fn stdout(&self) -> String {
        std::fs::read_to_string(&self.out).unwrap_or_default()
    }

    /// Returns what it has written so far to standard error.
    pub(crate) fn stderr(&self) -> String {
        std::fs::read_to_string(&self.err).unwrap_or_default()
    }

    /// Waits until it has written this to standard output.
    #[track_caller]
    pub(crate) fn until_it_says(&mut self, part: &str) {
        until(part, || {
            let ended = self.has_ended();
            let text = self.stdout();
            assert!(!ended || text.contains(part), "it ended: {text} {}", self.stderr());
            text.contains(part)
        });
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_some()
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn finish(&mut self) -> ExitStatus {
        let mut status = None;
        until("its end", || {
            status = self.child.try_wait().expect("a child");
            status.is_some()
        });
        status.expect("it has ended")
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.child.wait().expect("its end");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the first line of a child's standard output.
pub(crate) fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    let out = child.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut line).expect("its output");
    line.trim().to_owned()
}

/// Waits until the condition holds.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The time-out: far more than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);
