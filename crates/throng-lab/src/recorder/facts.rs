//! The server's facts as a watch on its host streams them: over TCP (`throng doctor --watch
//! --listen`), or by another way (a [`WatchSource`]).
//!
//! A thread of its own reads the stream, and reconnects after the stream has ended. The clocks of
//! the two hosts need not agree: an interval takes the line that has arrived.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use throng_driver::netns;
use throng_report::watch::{WATCH_LINE_BYTES_MAX, WatchHeader, WatchLine};
use throng_report::{EndpointFacts, RunEventKind};

use super::lock::lock;
use super::probes::KernelReading;

/// A stream of facts about the server.
#[derive(Debug)]
pub struct FactsStream {
    address: String,
    header: WatchHeader,
    relation: HostRelation,
    inbox: Arc<Mutex<Inbox>>,
    /// The unreadable sources of the last line.
    unseen: Vec<String>,
    /// The server's process id, where the server is on this machine.
    server_pid: Option<u32>,
}

/// The relation of the watched host to this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostRelation {
    /// Another machine.
    OtherMachine,
    /// This machine, but another network namespace.
    SameMachine,
    /// This machine and this network namespace.
    SameNamespace,
}

/// The lines and events that the reading thread leaves for the recorder.
#[derive(Debug, Default)]
struct Inbox {
    lines: VecDeque<WatchLine>,
    events: Vec<RunEventKind>,
    /// The reason why the stream is lost, while it is.
    lost: Option<String>,
}

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

type Lines = BufReader<TcpStream>;

impl FactsStream {
    /// Connects to `address` (`HOST:PORT`) and reads the first line.
    ///
    /// # Errors
    /// A sentence: the address does not answer, or no watch answers there.
    pub fn connect(address: &str) -> Result<Self, String> {
        Self::of(TcpWatch(address.to_owned()))
    }

    /// Connects to a watch by another way, and reads the first line.
    ///
    /// # Errors
    /// A sentence: no watch answers.
    pub fn of(mut source: impl WatchSource + 'static) -> Result<Self, String> {
        let (header, lines) = source.connect()?;
        let inbox = Arc::<Mutex<Inbox>>::default();
        let address = source.name();
        let reader = Reader {
            address: address.clone(),
            source: Box::new(source),
            silence_max: silence_max(&header),
            inbox: Arc::downgrade(&inbox),
        };
        let thread = std::thread::Builder::new().name("server-facts".into());
        thread.spawn(move || reader.run(lines)).map_err(|error| error.to_string())?;
        let kin = HostRelation::of(&header);
        Ok(Self { address, header, relation: kin, inbox, unseen: Vec::new(), server_pid: None })
    }

    /// Reports whether the watched host is this machine.
    pub fn is_same_machine(&self) -> bool {
        self.relation != HostRelation::OtherMachine
    }

    /// Returns the ports of the watched server; none means all.
    pub fn ports(&self) -> &[u16] {
        &self.header.ports
    }

    /// Returns the limits of the server's end, if the watch knew them.
    pub fn endpoint_facts(&self) -> Option<&EndpointFacts> {
        self.header.facts.as_ref()
    }

    /// Returns the server's process id of the last line, where the server is on this machine.
    pub(super) fn server_pid(&self) -> Option<u32> {
        self.server_pid
    }

    /// Adds the next line and the events to an interval's reading.
    pub(super) fn fill(&mut self, reading: &mut KernelReading, unseen: &mut Vec<String>) {
        let mut inbox = lock(&self.inbox);
        reading.events.append(&mut inbox.events);
        let lost = inbox.lost.clone();
        let line = inbox.take();
        drop(inbox);
        if let Some(line) = line {
            self.unseen = line.unseen;
            let is_here = self.relation != HostRelation::OtherMachine;
            self.server_pid = line.process.map(|process| process.pid).filter(|_| is_here);
            reading.server = line.server;
            match self.relation {
                // One kernel: the generator's sample has all its counters but the process's.
                HostRelation::SameNamespace => {
                    let mut of_process = line.kernel;
                    of_process.retain(&["process.server."]);
                    reading.counters.extend(of_process);
                }
                HostRelation::SameMachine => reading.server_counters = line.kernel,
                HostRelation::OtherMachine => {
                    reading.server_counters = line.kernel;
                    reading.server_machine = line.machine;
                    reading.server_programs = line.programs;
                }
            }
        }
        match lost {
            Some(reason) => unseen.push(format!("the server's side: {}: {reason}", self.address)),
            None => {
                let sentence = |source: &String| format!("the server's side: {source}");
                unseen.extend(self.unseen.iter().map(sentence));
            }
        }
    }
}

impl HostRelation {
    fn of(header: &WatchHeader) -> Self {
        if header.boot_id.is_none() || header.boot_id != boot_id() {
            return Self::OtherMachine;
        }
        if header.net_namespace.is_some() && header.net_namespace == net_namespace() {
            Self::SameNamespace
        } else {
            Self::SameMachine
        }
    }
}

/// Returns the id of the running kernel, which changes at each boot.
pub fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// Returns the name of the calling thread's network namespace.
pub fn net_namespace() -> Option<String> {
    Some(netns::current().ok()?.to_string_lossy().into_owned())
}

impl Inbox {
    /// Takes the line for the next interval. One more line may wait for the interval after that, so
    /// lines may arrive shortly before or shortly after an interval's end. If a watch is faster
    /// than the run, the newest line counts.
    fn take(&mut self) -> Option<WatchLine> {
        if self.lines.len() > 2 {
            self.lines.drain(..self.lines.len() - 1);
        }
        self.lines.pop_front()
    }

    fn add(&mut self, line: WatchLine) {
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }
}

/// The state of the reading thread.
struct Reader {
    address: String,
    source: Box<dyn WatchSource>,
    /// The time without a line after which the stream is lost.
    silence_max: Duration,
    /// The thread ends when the stream is dropped.
    inbox: Weak<Mutex<Inbox>>,
}

impl Reader {
    fn run(mut self, mut lines: Box<dyn WatchLines>) {
        loop {
            let Some(reason) = self.read(&mut *lines) else { return };
            if !self.update_inbox(|inbox, address| {
                inbox.lost = Some(reason.clone());
                inbox.events.push(RunEventKind::FactsLost { address, reason });
            }) {
                return;
            }
            lines = loop {
                std::thread::sleep(RECONNECT_DELAY);
                match self.source.connect() {
                    Ok((header, lines)) => {
                        self.silence_max = silence_max(&header);
                        break lines;
                    }
                    Err(_) if self.inbox.strong_count() > 0 => {}
                    Err(_) => return,
                }
            };
            if !self.update_inbox(|inbox, address| {
                inbox.lost = None;
                inbox.events.push(RunEventKind::FactsBack { address });
            }) {
                return;
            }
        }
    }

    /// Reads until the stream ends. Returns the reason; none when the [`FactsStream`] is dropped.
    fn read(&self, lines: &mut dyn WatchLines) -> Option<String> {
        let mut received = Instant::now();
        loop {
            match lines.next() {
                Ok(NextLine::Line(line)) => {
                    received = Instant::now();
                    if !self.update_inbox(|inbox, _| inbox.add(*line)) {
                        return None;
                    }
                }
                Ok(NextLine::Unknown) => received = Instant::now(),
                Ok(NextLine::Nothing) if self.inbox.strong_count() == 0 => return None,
                Ok(NextLine::Nothing) if received.elapsed() < self.silence_max => {}
                Ok(NextLine::Nothing) => {
                    return Some(format!("no line for {:.0?}", self.silence_max));
                }
                Err(reason) => return Some(reason),
            }
        }
    }

    /// Calls `update` with the inbox. Returns false when the [`FactsStream`] is dropped.
    fn update_inbox(&self, update: impl FnOnce(&mut Inbox, String)) -> bool {
        let Some(inbox) = self.inbox.upgrade() else { return false };
        update(&mut lock(&inbox), self.address.clone());
        true
    }
}

/// A watch at an address.
struct TcpWatch(String);

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

/// Returns the time in which three lines are due, at least three seconds.
fn silence_max(header: &WatchHeader) -> Duration {
    Duration::from_millis(header.interval_ms.saturating_mul(3)).clamp(SILENCE_LEAST, SILENCE_MOST)
}

const SILENCE_LEAST: Duration = Duration::from_secs(3);
const SILENCE_MOST: Duration = Duration::from_secs(600);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The longest read, after which the thread checks that the stream is still in use.
const READ_TIMEOUT: Duration = Duration::from_millis(500);
/// The time between two attempts to reconnect.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// The most lines that wait for the recorder.
const LINES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn at(at_ms: u64) -> WatchLine {
        WatchLine { at_ms, ..Default::default() }
    }

    #[test]
    fn an_interval_takes_a_line_and_leaves_one_for_the_next() {
        let mut inbox = Inbox::default();
        let mut take = |lines: &[u64]| {
            lines.iter().for_each(|at_ms| inbox.add(at(*at_ms)));
            inbox.take().map(|line| line.at_ms)
        };
        assert_eq!(take(&[1]), Some(1));
        assert_eq!(take(&[]), None, "the second line is a little late");
        assert_eq!(take(&[2, 3]), Some(2));
        assert_eq!(take(&[]), Some(3), "late again, and an older line waited");
        assert_eq!(take(&[4, 5, 6, 7]), Some(7), "a watch that is faster than the run");
        assert_eq!(take(&(10..40).collect::<Vec<_>>()), Some(39));
    }

    #[test]
    fn a_machine_is_known_by_its_kernels_id_and_its_namespace() {
        let of = |boot_id, net_namespace| {
            HostRelation::of(&WatchHeader { boot_id, net_namespace, ..Default::default() })
        };
        assert_eq!(of(boot_id(), net_namespace()), HostRelation::SameNamespace);
        assert_eq!(of(boot_id(), Some("net:[1]".into())), HostRelation::SameMachine);
        assert_eq!(of(Some("another".into()), net_namespace()), HostRelation::OtherMachine);
        assert_eq!(of(None, net_namespace()), HostRelation::OtherMachine);
    }

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
