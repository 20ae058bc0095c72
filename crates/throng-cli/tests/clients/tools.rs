//! What is installed and what is not, and programs that must end well within their time.

use std::io::{Read, Write, stderr};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::process::Place;

/// Something that a test needs: there, or not there for a reason.
pub(crate) struct Tool {
    missing: Option<String>,
}

impl Tool {
    /// A file of the repository.
    pub(crate) fn file(path: &str, otherwise: &str) -> Self {
        let there = root().join(path).exists();
        Self { missing: (!there).then(|| format!("{otherwise}: run `make clients`")) }
    }

    /// A command that ends well when asked with `args`.
    pub(crate) fn command(name: &str, args: &[&str]) -> Self {
        let output = Command::new(name).args(args).stdin(Stdio::null()).output();
        let there = output.is_ok_and(|output| output.status.success());
        Self { missing: (!there).then(|| format!("`{name}` is not installed")) }
    }

    /// Node and what npm fetches for it. Older ones cannot end a test file that has timers left.
    pub(crate) fn packages() -> Self {
        let modules = "crates/throng-cli/tests/clients/node/node_modules/ws/package.json";
        let fetched = Self::file(modules, "the packages of Node are not fetched");
        let node = Self::command("node", &["--test-force-exit", "--eval", ""]);
        let node = Self { missing: node.missing.map(|_| "Node 20.14 or later is not here".into()) };
        node.and(fetched)
    }

    /// Both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { missing: self.missing.or(other.missing) }
    }

    /// Says so if it is missing, past the capture of a test's output: a test that does nothing must not pass in silence.
    pub(crate) fn skips(&self) -> bool {
        if let Some(reason) = &self.missing {
            let test = thread::current().name().unwrap_or_default().to_owned();
            let _ = writeln!(stderr(), "skipped: {test}: {reason}");
        }
        self.missing.is_some()
    }
}

/// Runs a file of Node's own test runner, which starts its servers itself.
pub(crate) fn node_test(file: &str, needs: &Tool) {
    if needs.skips() {
        return;
    }
    let place = Place::new();
    let shots = root().join("target/clients");
    std::fs::create_dir_all(&shots).unwrap();
    let mut node = Command::new("node");
    node.args([
        "--test",
        "--test-force-exit",
        "--test-reporter=spec",
        "--test-timeout=150000",
        file,
    ])
    .current_dir(clients().join("node"))
    .env("THRONG", env!("CARGO_BIN_EXE_throng"))
    .env("THRONG_SHOTS", shots)
    .env("XDG_RUNTIME_DIR", place.path("."));
    let said = ends_well(node);
    // A runner that finds nothing to run is content, too.
    assert!(said.contains("✔"), "{said}");
}

/// Runs it to its end and returns its output. A process that fails, or does not end, is a failure, and leaves no children.
#[track_caller]
pub(crate) fn ends_well(mut command: Command) -> String {
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
    let status = ended(&mut child, PATIENCE);
    if status.is_none() {
        // A browser is in a group of its own; who started it ends it when asked.
        let _ = kill_process_group(group, Signal::TERM);
        ended(&mut child, Duration::from_secs(5));
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

/// Where these tests are.
pub(crate) fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

/// Of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

/// Waits for its end, but not longer than `patience`.
fn ended(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let begun = Instant::now();
    loop {
        match child.try_wait().unwrap() {
            Some(status) => return Some(status),
            None if begun.elapsed() > patience => return None,
            None => thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Everything that comes, read while it runs: a full pipe would stop it.
fn text(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

const PATIENCE: Duration = Duration::from_secs(160);
