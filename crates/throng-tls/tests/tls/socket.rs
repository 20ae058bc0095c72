//! An end of ours with its socket.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::end::{End, Ours};

/// Time after which a step of a test has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// End of ours with its socket.
pub(crate) struct Socket {
    pub end: Ours,
    stream: TcpStream,
}

impl Socket {
    pub(crate) fn new(end: Ours, stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        Self { end, stream }
    }

    pub(crate) fn flush(&mut self) {
        self.stream.write_all(&self.end.take_sent()).unwrap();
    }

    /// Receives and answers until the condition holds.
    pub(crate) fn until(&mut self, what: &str, mut is_so: impl FnMut(&Ours) -> bool) {
        let begun = Instant::now();
        let mut buffer = [0; 4_096];
        loop {
            self.flush();
            if is_so(&self.end) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "not in time: {what}; {:?}", self.end.failure());
            match self.stream.read(&mut buffer) {
                Ok(0) => assert!(
                    is_so(&self.end),
                    "the end came before: {what}; {:?}",
                    self.end.failure()
                ),
                Ok(length) => self.end.receive(&buffer[..length]),
                Err(error) => assert!(
                    [std::io::ErrorKind::WouldBlock, std::io::ErrorKind::TimedOut]
                        .contains(&error.kind()),
                    "{what}: {error}"
                ),
            }
        }
    }

    /// Waits for this text of the peer.
    pub(crate) fn expect(&mut self, text: &str) {
        self.until(text, |end| String::from_utf8_lossy(&end.plain).contains(text));
        self.end.plain.clear();
    }

    pub(crate) fn write(&mut self, text: &str) {
        self.end.write(text.as_bytes());
        self.flush();
    }
}
