//! Ways to a watch: over TCP, and what another way must do.

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use throng_measure::watch::{WATCH_LINE_BYTES_MAX, WatchHeader, WatchLine};

/// A way to a watch.
pub trait WatchSource: Send {
    /// Returns what the user knows it by: an address, a name.
    fn name(&self) -> String;

    /// Connects, and returns the first line and those that follow.
    ///
    /// # Errors
    /// The reason why no watch answers, in a sentence.
    fn connect(&mut self) -> Result<(WatchHeader, Box<dyn WatchLines>), String>;
}

/// The lines of a watch.
pub trait WatchLines: Send {
    /// Waits for the next line, for half a second at most.
    ///
    /// # Errors
    /// The reason why the lines have ended, in a sentence.
    fn next(&mut self) -> Result<NextLine, String>;
}

/// What has come from a watch.
#[derive(Clone, Debug, PartialEq)]
pub enum NextLine {
    /// A line.
    Line(Box<WatchLine>),
    /// A line of another schema: it comes from a newer version, and is skipped.
    Unknown,
    /// Nothing yet.
    Nothing,
}

/// A watch at an address.
pub(super) struct TcpWatch(pub(super) String);

impl WatchSource for TcpWatch {
    fn name(&self) -> String {
        self.0.clone()
    }

    fn connect(&mut self) -> Result<(WatchHeader, Box<dyn WatchLines>), String> {
        let (header, lines) = connect(&self.0)?;
        Ok((header, Box::new(TcpLines { lines, partial: Vec::new() })))
    }
}

/// The lines of a connection. `partial` keeps the bytes of an incomplete line.
struct TcpLines {
    lines: Lines,
    partial: Vec<u8>,
}

impl WatchLines for TcpLines {
    fn next(&mut self) -> Result<NextLine, String> {
        let Some(text) = read_line(&mut self.lines, &mut self.partial)? else {
            return Ok(NextLine::Nothing);
        };
        Ok(serde_json::from_str(&text).map_or(NextLine::Unknown, NextLine::Line))
    }
}

/// Connects and reads the first line.
fn connect(address: &str) -> Result<(WatchHeader, Lines), String> {
    let addresses = address.to_socket_addrs().map_err(|error| error.to_string())?;
    let mut reason = "the name has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(socket) => return read_header(socket),
            Err(error) => reason = error.to_string(),
        }
    }
    Err(reason)
}

fn read_header(socket: TcpStream) -> Result<(WatchHeader, Lines), String> {
    socket.set_read_timeout(Some(READ_TIMEOUT)).map_err(|error| error.to_string())?;
    let mut lines = BufReader::new(socket);
    let mut partial = Vec::new();
    let began = Instant::now();
    while began.elapsed() < CONNECT_TIMEOUT {
        if let Some(line) = read_line(&mut lines, &mut partial)? {
            return Ok((WatchHeader::parse(&line)?, lines));
        }
    }
    Err(format!("no line for {CONNECT_TIMEOUT:?}"))
}

/// Returns the next line without its end; none while the line is not complete. `partial` keeps the
/// bytes of an incomplete line.
fn read_line(lines: &mut impl BufRead, partial: &mut Vec<u8>) -> Result<Option<String>, String> {
    let room = WATCH_LINE_BYTES_MAX - partial.len();
    match lines.take(room as u64).read_until(b'\n', partial) {
        Ok(_) if partial.last() == Some(&b'\n') => {
            partial.pop();
            let line = String::from_utf8(std::mem::take(partial));
            line.map(Some).map_err(|_| "a line is not UTF-8".to_owned())
        }
        Ok(_) if partial.len() == WATCH_LINE_BYTES_MAX => {
            Err(format!("a line is longer than {WATCH_LINE_BYTES_MAX} bytes"))
        }
        Ok(_) => Err("the watch has ended".to_owned()),
        Err(error) => match error.kind() {
            std::io::ErrorKind::WouldBlock
            | std::io::ErrorKind::TimedOut
            | std::io::ErrorKind::Interrupted => Ok(None),
            _ => Err(error.to_string()),
        },
    }
}

type Lines = BufReader<TcpStream>;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The longest read, after which a reader may do something else.
const READ_TIMEOUT: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Connects to a peer that writes `bytes` and closes.
    fn connect_to(bytes: &'static [u8]) -> Result<(WatchHeader, Lines), String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let peer = std::thread::spawn(move || {
            let _ = listener.accept().unwrap().0.write_all(bytes);
        });
        let result = connect(&address);
        peer.join().unwrap();
        result
    }

    #[test]
    fn a_peer_that_is_no_watch_is_refused_in_a_sentence() {
        assert!(connect_to(b"SSH-2.0-x\r\n").unwrap_err().contains("first line"));
        assert!(connect_to(b"").unwrap_err().contains("ended"));
        assert!(connect_to(b"\xff\xfe\n").unwrap_err().contains("not UTF-8"));
        assert!(
            connect_to(b"{\"schema\":\"throng.watch/9\"}\n")
                .unwrap_err()
                .contains("throng.watch/9")
        );
        assert!(connect_to(b"{\"schema\":\"throng.watch/1\",\"ports\":[80]}\n").is_ok());
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert!(connect(&closed.to_string()).is_err());
    }

    /// Bytes that arrive in pieces, with a time-out between two of them.
    struct Pieces(Vec<Vec<u8>>);

    impl Read for Pieces {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            match self.0.first_mut() {
                None => Ok(0),
                Some(piece) if piece.is_empty() => {
                    self.0.remove(0);
                    Err(std::io::ErrorKind::WouldBlock.into())
                }
                Some(piece) => {
                    let n = piece.len().min(into.len());
                    into[..n].copy_from_slice(&piece[..n]);
                    piece.drain(..n);
                    Ok(n)
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::with_cases(512)
        })]

        /// The lines do not depend on how the bytes arrive, and no bytes make the reader panic.
        #[test]
        fn lines_are_the_same_in_whatever_pieces_they_come(
            pieces in vec(
                vec(prop_oneof![Just(b'\n'), Just(b'{'), Just(b'"'), any::<u8>()], 0..9),
                0..9,
            ),
        ) {
            let whole = pieces.concat();
            let mut lines = BufReader::with_capacity(4, Pieces(pieces));
            let (mut read, mut partial) = (Vec::new(), Vec::new());
            let ended = loop {
                match read_line(&mut lines, &mut partial) {
                    Ok(Some(line)) => {
                        let _ = WatchHeader::parse(&line);
                        let _ = serde_json::from_str::<WatchLine>(&line);
                        read.push(line);
                    }
                    Ok(None) => {}
                    Err(reason) => break reason,
                }
            };
            let mut expected = Vec::new();
            let mut rest = &whole[..];
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let Ok(line) = str::from_utf8(&rest[..end]) else { break };
                expected.push(line.to_owned());
                rest = &rest[end + 1..];
            }
            prop_assert_eq!(read, expected);
            prop_assert_eq!(ended.contains("not UTF-8"), rest.contains(&b'\n'));
        }
    }

    #[test]
    fn a_line_without_an_end_does_not_fill_the_memory() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let peer = std::thread::spawn(move || {
            let mut socket = listener.accept().unwrap().0;
            let piece = vec![b'x'; 1 << 16];
            // The write fails once the reader has closed the connection.
            (0..1_000).all(|_| socket.write_all(&piece).is_ok())
        });
        assert!(connect(&address).unwrap_err().contains("longer than"));
        assert!(!peer.join().unwrap(), "all of 64 MB was read");
    }
}
