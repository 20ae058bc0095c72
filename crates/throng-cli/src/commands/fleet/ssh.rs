//! Commands on other machines, over the system's ssh.

use std::fs::File;
use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::thread;

/// The command that reaches other machines.
#[derive(Clone, Debug)]
pub(super) struct Ssh {
    /// A line of shell, such as `ssh -p 2222`.
    pub(super) command: String,
}

impl Ssh {
    /// Runs a script with the shell of a machine, and returns what it prints.
    ///
    /// # Errors
    /// ssh or the script fails. The text says why.
    pub(super) fn run_script(&self, host: &str, script: &str) -> Result<String, String> {
        let mut child = self
            .command(host, "sh -s")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start ssh: {error}"))?;
        let stdin = child.stdin.take();
        let output = thread::scope(|scope| {
            // A machine that does not read the whole script says why.
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(script.as_bytes())));
            child.wait_with_output()
        });
        self.outcome(output.map_err(|error| error.to_string())?)
    }

    /// Runs a command on a machine with a file as its standard input, and returns what it prints.
    ///
    /// # Errors
    /// ssh or the command fails. The text says why.
    pub(super) fn run_with(&self, host: &str, line: &str, input: File) -> Result<String, String> {
        let output = self.command(host, line).stdin(input).output();
        self.outcome(output.map_err(|error| format!("cannot start ssh: {error}"))?)
    }

    fn command(&self, host: &str, line: &str) -> Command {
        // The shell splits the command into words, as the user would.
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{} \"$@\"", self.command)).arg("ssh");
        command.args(OPTIONS).args(["--", host, line]);
        command
    }

    fn outcome(&self, output: Output) -> Result<String, String> {
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty());
        Err(match last {
            Some(line) => line.to_owned(),
            None => format!("`{}` ended with {}", self.command, output.status),
        })
    }
}

/// No forwarding of the authentication agent, no terminal, no questions: many hosts are reached at
/// a time. The user's own options come first, and ssh takes the first value of each.
const OPTIONS: &[&str] = &[
    "-a",
    "-x",
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_options_come_first_and_the_host_is_no_option() {
        let ssh = Ssh { command: "printf '%s\\n' -p '22 22'".to_owned() };
        let printed = ssh.run_script("web1", "").unwrap();
        let words: Vec<_> = printed.lines().collect();
        assert_eq!(words[..3], ["-p", "22 22", "-a"]);
        assert_eq!(words[words.len() - 3..], ["--", "web1", "sh -s"]);
    }

    #[test]
    fn the_last_line_of_ssh_says_why_it_failed() {
        let fails =
            |command: &str| Ssh { command: command.to_owned() }.run_script("web1", "").unwrap_err();
        assert_eq!(fails("echo one >&2; echo two >&2; exit 255;"), "two");
        assert_eq!(fails("exit 3;"), "`exit 3;` ended with exit status: 3");
    }
}
