//! A child process that ends when the harness drops it.

use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A running child process. When it is dropped it receives SIGTERM, and SIGKILL if it does not end.
pub(super) struct ChildProcess {
    child: Child,
}

impl ChildProcess {
    /// Starts a command. Its standard output goes to `output`, its standard error nowhere.
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

    /// Returns its standard output, if it was started with [`Stdio::piped`].
    pub(super) fn output(&mut self) -> Option<std::process::ChildStdout> {
        self.child.stdout.take()
    }

    /// Returns its exit status, if it has ended.
    pub(super) fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Sends SIGTERM, and SIGKILL some seconds later.
    pub(super) fn terminate(&mut self) {
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

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.terminate();
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
        let mut running = ChildProcess::start(command, Stdio::null()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(running.exit_status(), None);
        running.terminate();
        assert!(running.exit_status().is_some_and(|status| !status.success()));
    }
}
