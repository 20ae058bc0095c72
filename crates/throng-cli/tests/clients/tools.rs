//! The tools that the tests need, and a runner with a time limit.

use std::io::{Read, Write, stderr};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::process::TestDir;

/// A tool that a test needs, or the reason why it is missing.
pub(crate) struct Tool {
    missing: Option<String>,
}

impl Tool {
    /// Looks for a file of the repository.
    pub(crate) fn file(path: &str, otherwise: &str) -> Self {
        let there = root().join(path).exists();
        Self { missing: (!there).then(|| format!("{otherwise}: run `make clients`")) }
    }

    /// Looks for a command that succeeds with `args`.
    pub(crate) fn command(name: &str, args: &[&str]) -> Self {
        let output = Command::new(name).args(args).stdin(Stdio::null()).output();
        let there = output.is_ok_and(|output| output.status.success());
        Self { missing: (!there).then(|| format!("`{name}` is not installed")) }
    }

    /// Looks for Node and its npm packages. Older versions cannot end a test file that has timers
    /// left.
    pub(crate) fn packages() -> Self {
        let modules = "crates/throng-cli/tests/clients/node/node_modules/ws/package.json";
        let fetched = Self::file(modules, "the npm packages are not installed");
        let node = Self::command("node", &["--test-force-exit", "--eval", ""]);
        let node =
            Self { missing: node.missing.map(|_| "Node 20.14 or later is not installed".into()) };
        node.and(fetched)
    }

    /// Combines two tools; both are needed.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { missing: self.missing.or(other.missing) }
    }

    /// Reports whether the tool is missing. Prints the reason past the capture of the test's
    /// output, so that a skipped test does not pass silently.
    pub(crate) fn skips(&self) -> bool {
        if let Some(reason) = &self.missing {
            let test = thread::current().name().unwrap_or_default().to_owned();
            let _ = writeln!(stderr(), "skipped: {test}: {reason}");
        }
        self.missing.is_some()
    }
}

/// Runs a file with Node's own test runner. The file starts its servers itself.
pub(crate) fn node_test(file: &str, needs: &Tool) {
    if needs.skips() {
        return;
    }
    let place = TestDir::new();
    let shots = root().join("target/clients");
    std::fs::create_dir_all(&shots).unwrap();
    let mut node = Command::new("node");
    node.args([
        "--test",
        "--test-force-exit",
        "--test-reporter=spec",
        "--test-timeout=900000",
        file,
    ])
    .current_dir(clients().join("node"))
    .env("THRONG", env!("CARGO_BIN_EXE_throng"))
    .env("THRONG_SHOTS", shots)
    .env("XDG_RUNTIME_DIR", place.path("."));
    let said = run_to_success(node);
    // A runner without tests succeeds, too.
    assert!(said.contains("✔"), "{said}");
}

/// Runs a command to its end and returns its output. Panics if the process fails or does not end,
/// and leaves no children.
#[track_caller]
pub(crate) fn run_to_success(mut command: Command) -> String {
    let mut child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let group = Pid::from_child(&child);
    let out = text(child.stdout.take().unwrap());
    let err = text(child.stderr.take().unwrap());
    let status = wait_for_exit(&mut child, PATIENCE);
    if status.is_none() {
        // A browser has its own process group; its parent ends it on request.
        let _ = kill_process_group(group, Signal::TERM);
        wait_for_exit(&mut child, Duration::from_secs(5));
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
    let said = format!("{}{}", out.join().unwrap(), err.join().unwrap());
    match status {
        Some(status) => assert!(status.success(), "{status}: {command:?}\n{said}"),
        None => panic!("it did not end in {PATIENCE:?}: {command:?}\n{said}"),
    }
    said
}

/// Returns the folder of these tests.
pub(crate) fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

/// Waits for the end of a process, at most for `patience`.
fn wait_for_exit(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let begun = Instant::now();
    loop {
        match child.try_wait().unwrap() {
            Some(status) => return Some(status),
            None if begun.elapsed() > patience => return None,
            None => thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Reads all output while the process runs, because a full pipe would stop it.
fn text(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

const PATIENCE: Duration = Duration::from_secs(300);
