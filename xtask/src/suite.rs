//! The runner of all tests of the workspace: builds them, then runs each test binary by itself, the
//! doc tests, the linters and loom.
//!
//! A failure hides no other: every step runs, but for those that a failed build cannot have. The
//! end of the output lists the failures with their output. Each step has its own temporary folder
//! and a time limit. What each step and each build took stands in `target/tests/times.json`, and
//! decides the order of the next run: the longest first. `make test` builds this program and calls
//! it.

mod job;
mod outcome;
mod report;
mod selection;
mod table;
mod test_binaries;
mod times;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use job::{Job, JobTraits, WorkDirs};
use report::{ProgressLine, Report};
use selection::Selection;
use test_binaries::TestBinaries;
use times::Times;

/// The options of `xtask test`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run and build only these: a crate, a suite or a test: `throng-proto`, `walls`, `lint`
    #[arg(value_name = "NAME")]
    only: Vec<String>,
    /// Minutes after which a step is killed and counts as failed
    #[arg(long, value_name = "MINUTES", default_value_t = 20)]
    limit_minutes: u64,
    /// Folder for the output of each step
    #[arg(long, value_name = "DIR", default_value = "target/tests")]
    out: PathBuf,
    /// List the steps without running them
    #[arg(long)]
    list: bool,
}

/// Builds and runs the steps. The exit code is 0 if everything passed, and 1 if a step failed.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let began = Instant::now();
    let selection = Selection::of(&options.only)?;
    if options.list {
        selection.names().for_each(|name| println!("{name}"));
        return Ok(ExitCode::SUCCESS);
    }
    let limit = Duration::from_secs(60 * options.limit_minutes);
    let times = Times::read(&options.out);
    let mut report = run_all(selection.preparation(), &options.out, limit)?;
    if report.is_passed() {
        let mut built = TestBinaries::default();
        for build in selection.builds() {
            report.extend(run_all(vec![build], &options.out, limit)?);
            built.add(report.last_output());
        }
        if report.is_passed() {
            let mut jobs = built.jobs(&selection);
            jobs.extend(selection.tools());
            times.sort(&mut jobs);
            report.extend(run_all(jobs, &options.out, limit)?);
        }
    }
    print!("{}", report.text(began.elapsed()));
    Times::of(&report).write(&options.out)?;
    Ok(if report.is_passed() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Runs all jobs: first the shared ones in parallel, then the exclusive ones one at a time.
fn run_all(jobs: Vec<Job>, out: &Path, limit: Duration) -> Result<Report, String> {
    let workplace = WorkDirs::new(out)?;
    let progress = ProgressLine::new(jobs.len());
    let report = Mutex::new(Report::default());
    let (alone, together): (Vec<Job>, Vec<Job>) =
        jobs.into_iter().partition(|job| job.traits.is_exclusive);
    for (jobs, lanes) in [(together, PARALLEL_JOBS), (alone, 1)] {
        let queue = Queue::new(jobs);
        std::thread::scope(|scope| {
            for _ in 0..lanes {
                scope.spawn(|| {
                    while let Some(job) = queue.next() {
                        let traits = job.traits;
                        progress.begin(&job.name);
                        let result = job.run(&workplace, limit, &|| progress.tick());
                        queue.end(traits);
                        progress.end(&result);
                        report.lock().unwrap_or_else(PoisonError::into_inner).add(result);
                    }
                });
            }
        });
    }
    progress.clear();
    Ok(report.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The jobs that wait for a lane, in their order. Of those that need cargo's lock, one runs at a
/// time.
struct Queue {
    state: Mutex<QueueState>,
    lock_is_free: Condvar,
}

struct QueueState {
    jobs: Vec<Job>,
    is_locked: bool,
}

impl Queue {
    fn new(jobs: Vec<Job>) -> Self {
        let state = Mutex::new(QueueState { jobs, is_locked: false });
        Self { state, lock_is_free: Condvar::new() }
    }

    /// Returns the first job that can run, and waits if there is none yet.
    fn next(&self) -> Option<Job> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if state.jobs.is_empty() {
                return None;
            }
            let is_locked = state.is_locked;
            let can_run = |job: &Job| !(is_locked && job.traits.locks_target);
            if let Some(at) = state.jobs.iter().position(can_run) {
                let job = state.jobs.remove(at);
                state.is_locked |= job.traits.locks_target;
                return Some(job);
            }
            state = self.lock_is_free.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn end(&self, traits: JobTraits) {
        if traits.locks_target {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).is_locked = false;
            self.lock_is_free.notify_all();
        }
    }
}

/// The number of steps that run at the same time. Most of them wait for most of their time.
const PARALLEL_JOBS: usize = 2;

/// Creates the job for a target of the Makefile.
fn make(target: &str) -> Job {
    let mut command = Command::new("make");
    command.args(["--no-print-directory", target]);
    Job::new(target, command)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a job that runs a line of shell.
    fn shell(name: &str, line: &str) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        Job::new(name, command)
    }

    /// Returns a shell line with the output of Rust's test harness.
    fn harness(failed: &[&str], passed: usize) -> String {
        let names: String = failed.iter().map(|name| format!("    {name}\\n")).collect();
        format!(
            "printf 'failures:\\n\\nfailures:\\n{names}\\n\
             test result: FAILED. {passed} passed; {} failed; 0 ignored; 0 measured; \
             0 filtered out; finished in 0.01s\\n'; exit 101",
            failed.len()
        )
    }

    fn run_jobs(jobs: Vec<Job>, limit: Duration) -> (Report, String) {
        let out = std::env::temp_dir().join(format!("throng-suite-{}", std::process::id()));
        let out = out.join(jobs[0].name.replace(' ', "-"));
        let report = run_all(jobs, &out, limit).unwrap();
        let text = report.text(Duration::from_secs(1));
        std::fs::remove_dir_all(out).unwrap();
        (report, text)
    }

    #[test]
    fn a_failing_binary_hides_no_other_and_is_listed_at_the_end() {
        let jobs = vec![
            shell("first of three", &harness(&["a::b"], 4)),
            shell("second", "echo something was said; exit 3"),
            shell(
                "third",
                "printf 'test result: ok. 7 passed; 0 failed; 0 ignored; 0 measured;\\n'",
            ),
        ];
        let (report, text) = run_jobs(jobs, Duration::from_secs(60));
        assert!(!report.is_passed(), "{text}");
        for part in ["a::b", "something was said", "exit status: 3", "2 of 3 steps failed"] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
        assert!(text.contains("11 tests passed"), "the third one ran too: {text}");
        assert!(text.find("third") < text.find("a::b"), "failures come last: {text}");
    }

    #[test]
    fn steps_that_pass_are_summed_up_without_their_output() {
        let passes = "echo noise; printf 'test result: ok. 7 passed; 0 failed; 0 ignored;\\n'";
        let (report, text) = run_jobs(vec![shell("all of it", passes)], Duration::from_secs(60));
        assert!(report.is_passed(), "{text}");
        assert!(text.contains("7 tests passed in 1 step,") && !text.contains("noise"), "{text}");
    }

    #[test]
    fn a_step_that_does_not_end_is_killed_with_its_children() {
        let line = "sh -c 'sleep 1000 & echo it is $!; wait'";
        let (report, text) = run_jobs(vec![shell("hangs", line)], Duration::from_secs(1));
        assert!(!report.is_passed() && text.contains("killed after 1 s"), "{text}");
        let (_, pid) = text.split_once("it is ").unwrap();
        let pid = pid.split_whitespace().next().unwrap();
        let is_gone = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            // A zombie is dead, too.
            stat.map_or(true, |stat| stat.contains(") Z "))
        };
        let began = Instant::now();
        while !is_gone() {
            assert!(began.elapsed() < Duration::from_secs(60), "process {pid} still runs");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn each_step_has_a_temporary_folder_of_its_own_which_goes_with_it() {
        let line = "touch \"$TMPDIR/left\"; ls \"$TMPDIR\"; echo in $TMPDIR; exit 1";
        let (_, text) =
            run_jobs(vec![shell("one", line), shell("two", line)], Duration::from_secs(60));
        let folders: Vec<_> =
            text.lines().filter_map(|line| line.trim().strip_prefix("in ")).collect();
        assert_eq!(folders.len(), 2, "{text}");
        assert_ne!(folders[0], folders[1]);
        assert!(folders.iter().all(|folder| !Path::new(folder).exists()), "{folders:?}");
    }

    #[test]
    fn skipped_tests_are_listed_with_their_reason() {
        let line = "printf '%s\\n' 'successes:' '' '---- walls::half_open stdout ----' \
                    'skipped: nft is not installed' '' '' \
                    'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured;'";
        let (report, text) = run_jobs(vec![shell("walls", line)], Duration::from_secs(60));
        assert!(report.is_passed());
        assert!(text.contains("walls::half_open: nft is not installed"), "{text}");
    }
}
