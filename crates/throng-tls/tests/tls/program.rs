//! Programs of peers.

use std::io::{Read, Write, stderr};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::socket::PATIENCE;

/// Reports whether a program is here and ends well with these arguments. If not, says so past the
/// capture of the test's output: the test is skipped by name.
pub(crate) fn is_here(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let is_here = output.is_ok_and(|output| output.status.success());
    if !is_here {
        let test = std::thread::current().name().unwrap_or_default().to_owned();
        let command = [&[program], arguments].concat().join(" ");
        let _ = writeln!(stderr(), "skipped: {test}: `{command}` does not run here");
    }
    is_here
}

/// Running program of a peer. It is killed when this is dropped.
pub(crate) struct Program {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<Vec<u8>>,
    pub text: String,
}

impl Program {
    /// Starts a program in a folder.
    pub(crate) fn start(program: &str, arguments: &[&str], folder: &Path) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, output) = channel();
        let pipes: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for mut pipe in pipes {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let mut buffer = [0; 4_096];
                while let Ok(length @ 1..) = pipe.read(&mut buffer) {
                    if sender.send(buffer[..length].to_vec()).is_err() {
                        return;
                    }
                }
            });
        }
        let input = child.stdin.take();
        Self { child, input, output, text: String::new() }
    }

    /// Writes a line. A line of one letter may be a command.
    pub(crate) fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).and_then(|()| input.flush()).unwrap();
    }

    /// Waits for this text of the program.
    pub(crate) fn expect(&mut self, text: &str) {
        let begun = Instant::now();
        while !self.text.contains(text) {
            assert!(begun.elapsed() < PATIENCE, "`{text}` is not in:\n{}", self.text);
            self.read();
        }
    }

    /// Waits for a line of the program, and takes it.
    pub(crate) fn line(&mut self) -> String {
        self.expect("\n");
        let rest = self.text.split_off(self.text.find('\n').unwrap() + 1);
        std::mem::replace(&mut self.text, rest).trim_end().to_owned()
    }

    /// Returns what a program that failed prints.
    pub(crate) fn rest(&mut self) -> &str {
        while let Ok(bytes) = self.output.recv_timeout(Duration::from_secs(1)) {
            self.text.push_str(&String::from_utf8_lossy(&bytes));
        }
        &self.text
    }

    /// Reads what the program has printed, or waits a moment for it.
    pub(crate) fn read(&mut self) {
        if let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(20)) {
            self.text.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
