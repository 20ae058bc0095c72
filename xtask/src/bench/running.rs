//! A child process that does not outlive the harness's interest in it.

use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A running child. It is asked to end when dropped, whatever happens in between, and killed if it does not.
pub(super) struct Running {
    child: Child,
}

impl Running {
    /// Starts a command whose output goes to `output` and whose complaints go nowhere.
    pub(super) fn start(mut command: Command, output: Stdio) -> Result<Self, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("cannot start {name}: {e}"))?;
        Ok(Self { child })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it prints, when it was started with [`Stdio::piped`].
    pub(super) fn output(&mut self) -> Option<std::process::ChildStdout> {
        self.child.stdout.take()
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// SIGTERM, and SIGKILL some seconds later.
    pub(super) fn end(&mut self) {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let deadline = Instant::now() + STOP_MAX;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(POLL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end();
        }
    }
}

const STOP_MAX: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_will_not_end_is_killed() {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' TERM; while :; do sleep 0.1; done"]);
        let mut running = Running::start(command, Stdio::null()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(running.ended(), None);
        running.end();
        assert!(running.ended().is_some_and(|status| !status.success()));
    }
}
