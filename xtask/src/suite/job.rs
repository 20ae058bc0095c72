//! One step of the suite: a process with a time limit, a temporary folder of its own, and a file for what it says.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::outcome::Outcome;

/// A step that is to be run.
pub(super) struct Job {
    pub(super) name: String,
    command: Command,
    /// Whether nothing else is to run meanwhile.
    pub(super) is_alone: bool,
}

/// A step that ran.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) name: String,
    pub(super) took: Duration,
    /// Why it counts as failed.
    pub(super) failure: Option<String>,
    pub(super) outcome: Outcome,
    /// Its output, and where that is kept.
    pub(super) said: String,
    pub(super) log: PathBuf,
}

impl Ran {
    pub(super) fn is_passed(&self) -> bool {
        self.failure.is_none()
    }
}

/// Where steps work: a folder for their output, and one for their temporary files.
pub(super) struct Workplace {
    out: PathBuf,
    temporary: PathBuf,
    /// Steps that have begun.
    begun: AtomicUsize,
}

impl Workplace {
    pub(super) fn new(out: &Path) -> Result<Self, String> {
        fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
        // Paths of sockets may have 107 bytes, so it is not below `target`.
        let temporary = std::env::temp_dir().join(format!("throng-tests-{}", std::process::id()));
        let temporary = free(&temporary)?;
        Ok(Self { out: out.to_path_buf(), temporary, begun: AtomicUsize::new(0) })
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.temporary);
    }
}

impl Job {
    pub(super) fn new(name: impl Into<String>, command: Command) -> Self {
        Self { name: name.into(), command, is_alone: false }
    }

    /// The same with the machine to itself.
    pub(super) fn alone(self) -> Self {
        Self { is_alone: true, ..self }
    }

    /// Runs it to its end and calls `tick` now and then. One that cannot be run has failed.
    pub(super) fn run(mut self, workplace: &Workplace, limit: Duration, tick: &dyn Fn()) -> Ran {
        let log = workplace.out.join(format!("{}.log", self.name.replace(['/', ' '], "-")));
        let began = Instant::now();
        let ended = self.run_into(&log, workplace, limit, tick);
        let said = fs::read(&log).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).into_owned();
        let failure = match ended {
            Err(why) => Some(why),
            Ok(None) => Some(format!("it was killed after {} s", limit.as_secs())),
            Ok(Some(status)) if status.success() => None,
            Ok(Some(status)) => Some(status.to_string()),
        };
        let took = began.elapsed();
        Ran { name: self.name, took, failure, outcome: Outcome::parse(&said), said, log }
    }

    /// Its status; none when it was killed.
    fn run_into(
        &mut self,
        log: &Path,
        workplace: &Workplace,
        limit: Duration,
        tick: &dyn Fn(),
    ) -> Result<Option<ExitStatus>, String> {
        let number = workplace.begun.fetch_add(1, Ordering::Relaxed);
        let folder = free(&workplace.temporary.join(number.to_string()))?;
        let failed = |error: std::io::Error| format!("{}: {error}", log.display());
        let output = File::create(log).map_err(failed)?;
        let errors = output.try_clone().map_err(failed)?;
        self.command.stdin(Stdio::null()).stdout(output).stderr(errors).env("TMPDIR", &folder);
        let mut child =
            self.command.spawn().map_err(|error| format!("it cannot be started: {error}"))?;
        let status = wait(&mut child, limit, tick);
        let _ = fs::remove_dir_all(&folder);
        Ok(status)
    }
}

/// Waits for the end; none when it took too long and was killed.
fn wait(child: &mut Child, limit: Duration, tick: &dyn Fn()) -> Option<ExitStatus> {
    let began = Instant::now();
    let mut ticked = began;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if began.elapsed() > limit {
            kill_with_children(child.id());
            let _ = child.wait();
            return None;
        }
        if ticked.elapsed() >= TICK {
            ticked = Instant::now();
            tick();
        }
        std::thread::sleep(POLL);
    }
}

/// Kills a process and all that it has started and that they have started.
fn kill_with_children(pid: u32) {
    let children: Vec<u32> = children(pid);
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        let _ = kill_process(pid, Signal::KILL);
    }
    children.into_iter().for_each(kill_with_children);
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

/// Makes a folder that did not exist: the path with a number behind it. Other users may walk through it, as some tests
/// become one.
fn free(path: &Path) -> Result<PathBuf, String> {
    for number in 0..NAMES_MAX {
        let candidate = PathBuf::from(format!("{}-{number}", path.display()));
        match DirBuilder::new().mode(0o755).create(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(format!("{}: {error}", candidate.display())),
        }
    }
    Err(format!("{}: {NAMES_MAX} folders of that name exist", path.display()))
}

const NAMES_MAX: u32 = 1_000;
const POLL: Duration = Duration::from_millis(10);
const TICK: Duration = Duration::from_millis(500);
