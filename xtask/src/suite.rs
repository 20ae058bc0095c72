//! Runs every test of the workspace: each test binary by itself, then the doc tests, the linters and loom.
//!
//! A failure hides nothing: every step runs, and the failures are listed at the end with what they said. Each step has
//! a temporary folder of its own and a time limit, and its time is told. `make test` builds and calls this.

mod built;
mod job;
mod outcome;
mod report;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use job::{Job, Workplace};
use report::{Line, Report};

/// What to run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only the steps whose name contains one of these: `throng-cli`, `walls`, `doc tests`
    #[arg(value_name = "PART")]
    parts: Vec<String>,
    /// Minutes that one step may take before it is killed and counts as failed
    #[arg(long, value_name = "MINUTES", default_value_t = 10)]
    limit_minutes: u64,
    /// Where the output of each step is kept
    #[arg(long, value_name = "DIR", default_value = "target/tests")]
    out: PathBuf,
    /// List the steps and run none
    #[arg(long)]
    list: bool,
}

/// Exit codes: 0 when everything passed, 1 when something failed.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let began = Instant::now();
    let built = built::Built::ask()?;
    let mut jobs: Vec<Job> = built.jobs();
    jobs.extend([doc_tests(), make("lint"), make("loom")]);
    if !options.parts.is_empty() {
        jobs.retain(|job| options.parts.iter().any(|part| job.name.contains(part.as_str())));
    }
    if options.list {
        jobs.iter().for_each(|job| println!("{}", job.name));
        return Ok(ExitCode::SUCCESS);
    }
    if jobs.is_empty() {
        return Err(format!("no step's name contains {}", options.parts.join(" or ")));
    }
    let limit = Duration::from_secs(60 * options.limit_minutes);
    let report = run_all(jobs, &options.out, limit)?;
    print!("{}", report.text(began.elapsed()));
    Ok(if report.is_passed() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Runs the jobs, whatever becomes of each: some at a time, then those that want the machine to themselves.
fn run_all(jobs: Vec<Job>, out: &Path, limit: Duration) -> Result<Report, String> {
    let workplace = Workplace::new(out)?;
    let line = Line::new(jobs.len());
    let report = Mutex::new(Report::default());
    let (alone, together): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(|job| job.is_alone);
    for (jobs, lanes) in [(together, LANES), (alone, 1)] {
        let queue = Mutex::new(VecDeque::from(jobs));
        std::thread::scope(|scope| {
            for _ in 0..lanes {
                scope.spawn(|| {
                    while let Some(job) = next(&queue) {
                        line.begin(&job.name);
                        let ran = job.run(&workplace, limit, &|| line.tick());
                        line.end(&ran);
                        report.lock().unwrap_or_else(PoisonError::into_inner).add(ran);
                    }
                });
            }
        });
    }
    line.clear();
    Ok(report.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn next(queue: &Mutex<VecDeque<Job>>) -> Option<Job> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

/// How many steps run at a time: most of them wait for most of their time.
const LANES: usize = 2;

fn doc_tests() -> Job {
    let mut command = Command::new(cargo());
    command.args(["test", "--doc", "--locked", "--workspace", "--no-fail-fast"]);
    Job::new("doc tests", command)
}

/// A target of the Makefile.
fn make(target: &str) -> Job {
    let mut command = Command::new("make");
    command.args(["--no-print-directory", target]);
    Job::new(format!("make {target}"), command)
}

/// The cargo that built this program, or the one of the path.
fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job that is a line of shell.
    fn shell(name: &str, line: &str) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        Job::new(name, command)
    }

    /// What the test harness of Rust prints.
    fn harness(failed: &[&str], passed: usize) -> String {
        let names: String = failed.iter().map(|name| format!("    {name}\\n")).collect();
        format!(
            "printf 'failures:\\n\\nfailures:\\n{names}\\ntest result: FAILED. {passed} passed; {} failed; \
             0 ignored; 0 measured; 0 filtered out; finished in 0.01s\\n'; exit 101",
            failed.len()
        )
    }

    fn ran(jobs: Vec<Job>, limit: Duration) -> (Report, String) {
        let out = std::env::temp_dir().join(format!("throng-suite-{}", std::process::id()));
        let out = out.join(jobs[0].name.replace(' ', "-"));
        let report = run_all(jobs, &out, limit).unwrap();
        let text = report.text(Duration::from_secs(1));
        std::fs::remove_dir_all(out).unwrap();
        (report, text)
    }

    #[test]
    fn a_failing_binary_hides_no_other_and_is_told_at_the_end() {
        let jobs = vec![
            shell("first of three", &harness(&["a::b"], 4)),
            shell("second", "echo something was said; exit 3"),
            shell(
                "third",
                "printf 'test result: ok. 7 passed; 0 failed; 0 ignored; 0 measured;\\n'",
            ),
        ];
        let (report, text) = ran(jobs, Duration::from_secs(60));
        assert!(!report.is_passed(), "{text}");
        for part in ["a::b", "something was said", "exit status: 3", "2 of 3 steps failed"] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
        assert!(text.contains("11 tests passed"), "the third one ran too: {text}");
        assert!(text.find("others, each") < text.find("a::b"), "failures come last: {text}");
    }

    #[test]
    fn what_passes_is_summed_up_and_quiet() {
        let passes = "echo noise; printf 'test result: ok. 7 passed; 0 failed; 0 ignored;\\n'";
        let (report, text) = ran(vec![shell("all of it", passes)], Duration::from_secs(60));
        assert!(report.is_passed(), "{text}");
        assert!(text.contains("7 tests passed in 1 step,") && !text.contains("noise"), "{text}");
    }

    #[test]
    fn a_step_that_does_not_end_is_killed_with_its_children() {
        let line = "sh -c 'sleep 1000 & echo it is $!; wait'";
        let (report, text) = ran(vec![shell("hangs", line)], Duration::from_secs(1));
        assert!(!report.is_passed() && text.contains("was killed after 1 s"), "{text}");
        let (_, pid) = text.split_once("it is ").unwrap();
        let pid = pid.split_whitespace().next().unwrap();
        let is_gone = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            // One that nobody has waited for is dead all the same.
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
        let (_, text) = ran(vec![shell("one", line), shell("two", line)], Duration::from_secs(60));
        let folders: Vec<_> =
            text.lines().filter_map(|line| line.trim().strip_prefix("in ")).collect();
        assert_eq!(folders.len(), 2, "{text}");
        assert_ne!(folders[0], folders[1]);
        assert!(folders.iter().all(|folder| !Path::new(folder).exists()), "{folders:?}");
    }

    #[test]
    fn what_was_skipped_is_told_with_its_reason() {
        let line = "printf '%s\\n' 'successes:' '' '---- walls::half_open stdout ----' \
                    'skipped: nft is not installed' '' '' \
                    'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured;'";
        let (report, text) = ran(vec![shell("walls", line)], Duration::from_secs(60));
        assert!(report.is_passed());
        assert!(text.contains("walls::half_open: nft is not installed"), "{text}");
    }
}
