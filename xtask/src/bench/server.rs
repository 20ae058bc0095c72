//! A server under test: start, readiness, stop.

use super::child_process::ChildProcess;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A running server. It stops when it is dropped.
pub(super) struct PeerServer {
    process: ChildProcess,
}

impl PeerServer {
    /// Starts `command` and waits until it accepts on `port` of 127.0.0.1.
    pub(super) fn start(command: Command, port: u16) -> Result<Self, String> {
        Self::start_and_wait(command, port, Stdio::null())
    }

    /// Starts `command` like [`Self::start`], and returns the server's output, too.
    pub(super) fn start_with_output(
        command: Command,
        port: u16,
    ) -> Result<(Self, ChildStdout), String> {
        let mut server = Self::start_and_wait(command, port, Stdio::piped())?;
        let output = server.process.output().ok_or("the server has no output")?;
        Ok((server, output))
    }

    fn start_and_wait(command: Command, port: u16, output: Stdio) -> Result<Self, String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpStream::connect(address).is_ok() {
            return Err(format!("something else listens on {address}"));
        }
        let name = command.get_program().to_string_lossy().into_owned();
        let mut running = ChildProcess::start(command, output)?;
        let deadline = Instant::now() + START_MAX;
        while TcpStream::connect(address).is_err() {
            if let Some(status) = running.exit_status() {
                return Err(format!("{name} ended before it listened: {status}"));
            }
            if Instant::now() > deadline {
                return Err(format!("{name} does not listen on {address} after {START_MAX:?}"));
            }
            std::thread::sleep(POLL);
        }
        Ok(Self { process: running })
    }

    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Terminates the server. It is an error if it has ended by itself, because then it was not
    /// measured.
    pub(super) fn stop(mut self) -> Result<(), String> {
        if let Some(status) = self.process.exit_status() {
            return Err(format!("the server ended under the load: {status}"));
        }
        self.process.terminate();
        Ok(())
    }
}

const START_MAX: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_ends_at_once_is_an_error() {
        let error = PeerServer::start(Command::new("false"), 1).err().unwrap();
        assert!(error.contains("ended before it listened"), "{error}");
    }
}
