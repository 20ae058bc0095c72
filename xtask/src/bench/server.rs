//! A server under test: started, awaited, stopped.

use rustix::process::{Pid, Signal, kill_process};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running server. It is stopped when dropped, whatever happens in between.
pub(super) struct Server {
    child: Child,
}

impl Server {
    /// Starts `command` and waits until it accepts on `port` of 127.0.0.1.
    pub(super) fn start(mut command: Command, port: u16) -> Result<Self, String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpStream::connect(address).is_ok() {
            return Err(format!("something else listens on {address}"));
        }
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("cannot start {name}: {e}"))?;
        let mut server = Self { child };
        let deadline = Instant::now() + START_MAX;
        while TcpStream::connect(address).is_err() {
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(format!("{name} ended before it listened: {status}"));
            }
            if Instant::now() > deadline {
                return Err(format!("{name} does not listen on {address} after {START_MAX:?}"));
            }
            std::thread::sleep(POLL);
        }
        Ok(server)
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end. A server that had ended by itself was not measured: that is an error.
    pub(super) fn stop(mut self) -> Result<(), String> {
        match self.child.try_wait() {
            Ok(Some(status)) => Err(format!("the server ended under the load: {status}")),
            _ => {
                self.end();
                Ok(())
            }
        }
    }

    fn end(&mut self) {
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

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end();
        }
    }
}

const START_MAX: Duration = Duration::from_secs(10);
const STOP_MAX: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_ends_at_once_is_an_error() {
        let error = Server::start(Command::new("false"), 1).err().unwrap();
        assert!(error.contains("ended before it listened"), "{error}");
    }
}
