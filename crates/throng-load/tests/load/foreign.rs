//! HTTP servers that are not ours: Python's and Node's, each a process of its own.

use std::io::{BufRead, BufReader, Write, stderr};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

/// A server that runs until its figures are asked for.
pub(crate) struct ForeignServer {
    child: Child,
    said: BufReader<ChildStdout>,
    pub(crate) port: u16,
}

impl ForeignServer {
    /// Starts a script of `servers/`. Without its interpreter the test is skipped, and says so.
    pub(crate) fn start(interpreter: &str, script: &str, args: &[&str]) -> Option<Self> {
        let path = format!("{}/tests/load/servers/{script}", env!("CARGO_MANIFEST_DIR"));
        let mut command = Command::new(interpreter);
        command.arg(path).args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut child) = command.spawn() else {
            let test = std::thread::current().name().unwrap_or_default().to_owned();
            let _ = writeln!(stderr(), "skipped: {test}: `{interpreter}` is not installed");
            return None;
        };
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let port = line.trim().parse().unwrap_or_else(|_| panic!("{interpreter} said {line:?}"));
        Some(Self { child, said, port })
    }

    /// Ends the server. Returns what it has seen.
    pub(crate) fn seen(mut self) -> Value {
        drop(self.child.stdin.take());
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("it said {line:?}"))
    }
}

impl Drop for ForeignServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
