//! A child process that ends with the lab.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use throng_driver::folder::create_file;

use super::TestBedError;

/// A child process. Its standard input is a pipe from the lab; its output goes to a file.
#[derive(Debug)]
pub(super) struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
    status: Option<ExitStatus>,
}

impl Process {
    pub(super) fn start(
        name: &'static str,
        mut command: Command,
        log: PathBuf,
        spawn: impl FnOnce(Command) -> io::Result<Child>,
    ) -> Result<Self, TestBedError> {
        let file = create_file(&log).and_then(|file| Ok((file.try_clone()?, file)));
        let (out, err) = file.map_err(|error| TestBedError::File(log.clone(), error))?;
        command.stdin(Stdio::piped()).stdout(out).stderr(err).process_group(0);
        let child = spawn(command).map_err(|error| TestBedError::Process {
            name,
            message: format!("could not be started: {error}"),
        })?;
        Ok(Self { name, child, log, status: None })
    }

    pub(super) fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.is_some()
    }

    /// Returns an error if the process has ended, although it should run.
    pub(super) fn early_exit(&mut self) -> Option<TestBedError> {
        self.has_ended().then(|| self.error("ended early"))
    }

    /// Checks that the process has run: the exit codes 0, 1, 3 and 4 are results of a run.
    pub(super) fn check_ran(&mut self) -> Result<(), TestBedError> {
        match self.status.and_then(|status| status.code()) {
            Some(0 | 1 | 3 | 4) => Ok(()),
            Some(code) => Err(self.error(&format!("failed with exit code {code}"))),
            None => Err(self.error("was killed")),
        }
    }

    /// Returns an error with `failure` and the last lines of the process's output.
    pub(super) fn error(&self, failure: &str) -> TestBedError {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n  ");
        let message = if last.is_empty() {
            failure.to_owned()
        } else {
            format!("{failure}; its last output:\n  {last}")
        };
        TestBedError::Process { name: self.name, message }
    }

    /// Closes the process's standard input, waits, and kills it after [`STOP_TIMEOUT`].
    pub(super) fn stop(&mut self) {
        drop(self.child.stdin.take());
        let began = Instant::now();
        while !self.has_ended() {
            if began.elapsed() > STOP_TIMEOUT {
                return self.kill();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills the process at once.
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        self.status = self.child.wait().ok();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

const LINES_SHOWN: usize = 12;
/// The time that a process has to end after its standard input has closed.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a process, and returns it with the folder of its output.
    fn start(program: &str, args: &[&str]) -> (Process, tempfile::TempDir) {
        let mut command = Command::new(program);
        command.args(args);
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("process.log");
        let process = Process::start("server", command, log, |mut command| command.spawn());
        (process.unwrap(), dir)
    }

    fn wait(process: &mut Process) {
        let began = Instant::now();
        while !process.has_ended() && began.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_process_that_reads_its_input_ends_with_it() {
        let (mut process, _dir) = start("cat", &[]);
        assert!(!process.has_ended());
        let began = Instant::now();
        process.stop();
        assert!(began.elapsed() < STOP_TIMEOUT, "it was killed");
        assert!(process.check_ran().is_ok());
    }

    #[test]
    fn a_process_that_fails_is_quoted() {
        let (mut process, _dir) = start("sh", &["-c", "echo no such file >&2; exit 2"]);
        wait(&mut process);
        let error = process.check_ran().unwrap_err().to_string();
        assert_eq!(error, "the server failed with exit code 2; its last output:\n  no such file");
    }
}
