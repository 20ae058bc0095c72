//! One step of the suite: a process with a time limit, its own temporary folder, and a file for its
//! output.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use wait4::{ResUse, Wait4};

use super::outcome::Outcome;

/// A step before it runs.
pub(super) struct Job {
    pub(super) name: String,
    command: Command,
    pub(super) traits: JobTraits,
    /// Runs only some tests of a binary: to find none is a failure.
    pub(super) is_filtered: bool,
}

/// What the order of the steps depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct JobTraits {
    /// Runs without any other step at the same time.
    pub(super) is_exclusive: bool,
    /// Uses cargo's lock on the target folder: two such steps run one after the other.
    pub(super) locks_target: bool,
}

/// The result of a step.
#[derive(Debug)]
pub(super) struct JobResult {
    pub(super) name: String,
    pub(super) elapsed: Duration,
    /// Only some tests of the binary ran.
    pub(super) is_filtered: bool,
    /// The CPU time of the step and of the processes that it waited for.
    pub(super) cpu: Duration,
    /// The most memory of one process of the step.
    pub(super) memory_mib_max: u64,
    /// The reason why the step failed.
    pub(super) failure: Option<String>,
    pub(super) outcome: Outcome,
    /// The output of the step, and the file that keeps it.
    pub(super) output: String,
    pub(super) log: PathBuf,
}

impl JobResult {
    pub(super) fn is_passed(&self) -> bool {
        self.failure.is_none()
    }
}

/// The folders of the steps: one for their output, and one for their temporary files.
pub(super) struct WorkDirs {
    out: PathBuf,
    temporary: PathBuf,
    /// The number of steps that have started.
    started: AtomicUsize,
}

impl WorkDirs {
    pub(super) fn new(out: &Path) -> Result<Self, String> {
        fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
        // The path of a socket has at most 107 bytes, so the folder is not below `target`.
        let temporary = std::env::temp_dir().join(format!("throng-tests-{}", std::process::id()));
        let temporary = create_unique_folder(&temporary)?;
        Ok(Self { out: out.to_path_buf(), temporary, started: AtomicUsize::new(0) })
    }
}

impl Drop for WorkDirs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.temporary);
    }
}

impl Job {
    pub(super) fn new(name: impl Into<String>, command: Command) -> Self {
        Self { name: name.into(), command, traits: JobTraits::default(), is_filtered: false }
    }

    pub(super) fn with(self, traits: JobTraits) -> Self {
        Self { traits, ..self }
    }

    /// Runs the job to its end and calls `tick` from time to time. A job that cannot start has
    /// failed.
    pub(super) fn run(
        mut self,
        workplace: &WorkDirs,
        limit: Duration,
        tick: &dyn Fn(),
    ) -> JobResult {
        let log = workplace.out.join(format!("{}.log", self.name.replace(['/', ' '], "-")));
        let began = Instant::now();
        let end = self.run_into(&log, workplace, limit, tick);
        let said = fs::read(&log).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).into_owned();
        let (failure, used) = match end {
            Err(why) => (Some(why), None),
            Ok(end) if end.is_killed => {
                (Some(format!("killed after {} s", limit.as_secs())), Some(end.used))
            }
            Ok(end) if end.used.status.success() => (None, Some(end.used)),
            Ok(end) => (Some(end.used.status.to_string()), Some(end.used)),
        };
        let outcome = Outcome::parse(&said);
        let is_empty = outcome.passed + outcome.failed + outcome.ignored == 0;
        let failure = failure
            .or_else(|| (self.is_filtered && is_empty).then(|| "no test has that name".to_owned()));
        let cpu = used.as_ref().map(|used| used.rusage.utime + used.rusage.stime);
        JobResult {
            name: self.name,
            elapsed: began.elapsed(),
            is_filtered: self.is_filtered,
            cpu: cpu.unwrap_or_default(),
            memory_mib_max: used.map_or(0, |used| used.rusage.maxrss / (1 << 20)),
            failure,
            outcome,
            output: said,
            log,
        }
    }

    /// Runs the command with its output in `log`.
    fn run_into(
        &mut self,
        log: &Path,
        workplace: &WorkDirs,
        limit: Duration,
        tick: &dyn Fn(),
    ) -> Result<End, String> {
        let number = workplace.started.fetch_add(1, Ordering::Relaxed);
        let folder = create_unique_folder(&workplace.temporary.join(number.to_string()))?;
        let failed = |error: std::io::Error| format!("{}: {error}", log.display());
        let output = File::create(log).map_err(failed)?;
        let errors = output.try_clone().map_err(failed)?;
        self.command.stdin(Stdio::null()).stdout(output).stderr(errors).env("TMPDIR", &folder);
        let child = self.command.spawn().map_err(|error| format!("cannot start: {error}"))?;
        let end = wait(child, limit, tick).map_err(failed);
        let _ = fs::remove_dir_all(&folder);
        end
    }
}

/// The end of a process.
struct End {
    used: ResUse,
    /// The process exceeded its limit.
    is_killed: bool,
}

/// Waits for the end of a process, and kills it if it exceeds the limit.
fn wait(mut child: Child, limit: Duration, tick: &dyn Fn()) -> std::io::Result<End> {
    let (began, pid) = (Instant::now(), child.id());
    let (sender, ended) = channel();
    thread::spawn(move || _ = sender.send(child.wait4()));
    let mut is_killed = false;
    loop {
        match ended.recv_timeout(TICK) {
            Ok(used) => return Ok(End { used: used?, is_killed }),
            Err(RecvTimeoutError::Disconnected) => unreachable!("the thread sends before it ends"),
            Err(RecvTimeoutError::Timeout) => tick(),
        }
        if began.elapsed() > limit && !is_killed {
            kill_with_children(pid);
            is_killed = true;
        }
    }
}

/// Kills a process and all its descendants.
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

/// Creates a new folder: the path with a number appended. Other users may enter it, because some
/// tests switch to another user.
fn create_unique_folder(path: &Path) -> Result<PathBuf, String> {
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
const TICK: Duration = Duration::from_millis(500);
