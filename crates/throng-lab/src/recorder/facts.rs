//! The server's facts as a watch on its host streams them (`throng doctor --watch --listen`).
//!
//! A thread of its own reads the stream, and asks for it again once it has ended. Clocks need not agree: an interval
//! takes the line that has come.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use throng_driver::netns;
use throng_report::RunEventKind;
use throng_report::watch::{WATCH_LINE_BYTES_MAX, WatchHeader, WatchLine};

use super::{KernelReading, lock};

/// A stream of facts that is being read.
#[derive(Debug)]
pub struct FactsStream {
    address: String,
    header: WatchHeader,
    kin: Kin,
    inbox: Arc<Mutex<Inbox>>,
    /// What the last line said about what it cannot see.
    unseen: Vec<String>,
    /// The server's process, where it is on this machine.
    server_pid: Option<u32>,
}

/// How the machine that is watched is related to this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kin {
    /// It is another machine.
    Strangers,
    /// It is this one, seen from another network namespace.
    SameMachine,
    /// It is this very namespace.
    SameNamespace,
}

/// What the reading thread leaves for the recorder.
#[derive(Debug, Default)]
struct Inbox {
    lines: VecDeque<WatchLine>,
    events: Vec<RunEventKind>,
    /// Why nothing comes, while nothing comes.
    lost: Option<String>,
}

type Lines = BufReader<TcpStream>;

impl FactsStream {
    /// Connects to `address` (`HOST:PORT`) and reads the first line.
    ///
    /// # Errors
    /// A sentence: nobody answers there, or not with a watch.
    pub fn connect(address: &str) -> Result<Self, String> {
        let (header, lines) = open(address)?;
        let inbox = Arc::<Mutex<Inbox>>::default();
        let reader = Reader {
            address: address.to_owned(),
            patience: patience(&header),
            inbox: Arc::downgrade(&inbox),
        };
        let thread = std::thread::Builder::new().name("server-facts".into());
        thread.spawn(move || reader.run(lines)).map_err(|error| error.to_string())?;
        let kin = Kin::of(&header);
        let address = address.to_owned();
        Ok(Self { address, header, kin, inbox, unseen: Vec::new(), server_pid: None })
    }

    /// Whether the machine that is watched is this one.
    pub fn is_of_this_machine(&self) -> bool {
        self.kin != Kin::Strangers
    }

    /// Ports of the server that is watched; none for all.
    pub fn ports(&self) -> &[u16] {
        &self.header.ports
    }

    /// The server's process by the last line, where it is on this machine.
    pub(super) fn server_pid(&self) -> Option<u32> {
        self.server_pid
    }

    /// Puts what has come into an interval's sample.
    pub(super) fn fill(&mut self, sample: &mut KernelReading, unseen: &mut Vec<String>) {
        let mut inbox = lock(&self.inbox);
        sample.events.append(&mut inbox.events);
        let lost = inbox.lost.clone();
        let line = inbox.take();
        drop(inbox);
        if let Some(line) = line {
            self.unseen = line.unseen;
            let is_here = self.kin != Kin::Strangers;
            self.server_pid = line.process.map(|process| process.pid).filter(|_| is_here);
            sample.server = line.server;
            match self.kin {
                // One kernel: what it counts is in the generator's sample, all but the process.
                Kin::SameNamespace => {
                    let process = |(name, _): &(String, i64)| name.starts_with("process.server.");
                    sample.counters.extend(line.kernel.into_iter().filter(process));
                }
                Kin::SameMachine => sample.server_counters = line.kernel,
                Kin::Strangers => {
                    sample.server_counters = line.kernel;
                    sample.server_machine = line.machine;
                    sample.server_programs = line.programs;
                }
            }
        }
        match lost {
            Some(reason) => unseen.push(format!("the server's side: {}: {reason}", self.address)),
            None => {
                unseen.extend(self.unseen.iter().map(|what| format!("the server's side: {what}")));
            }
        }
    }
}

impl Kin {
    fn of(header: &WatchHeader) -> Self {
        if header.boot_id.is_none() || header.boot_id != boot_id() {
            return Self::Strangers;
        }
        match header.net_namespace.is_some() && header.net_namespace == net_namespace() {
            true => Self::SameNamespace,
            false => Self::SameMachine,
        }
    }
}

/// The running kernel's own id.
pub(crate) fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// The network namespace of the calling thread.
pub(crate) fn net_namespace() -> Option<String> {
    Some(netns::current().ok()?.to_string_lossy().into_owned())
}

impl Inbox {
    /// The line for the next interval. One line waits for the interval after that: so it does not matter whether the
    /// lines come shortly before the intervals' ends or shortly after. Of a watch that is faster than the run, the newest.
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

/// The thread's own.
struct Reader {
    address: String,
    /// How long the stream may be silent.
    patience: Duration,
    /// The thread ends when the stream is dropped.
    inbox: Weak<Mutex<Inbox>>,
}

impl Reader {
    fn run(mut self, mut lines: Lines) {
        loop {
            let Some(reason) = self.read(&mut lines) else { return };
            if !self.tell(|inbox, address| {
                inbox.lost = Some(reason.clone());
                inbox.events.push(RunEventKind::FactsLost { address, reason });
            }) {
                return;
            }
            lines = loop {
                std::thread::sleep(AGAIN_AFTER);
                match open(&self.address) {
                    Ok((header, lines)) => {
                        self.patience = patience(&header);
                        break lines;
                    }
                    Err(_) if self.inbox.strong_count() > 0 => {}
                    Err(_) => return,
                }
            };
            if !self.tell(|inbox, address| {
                inbox.lost = None;
                inbox.events.push(RunEventKind::FactsBack { address });
            }) {
                return;
            }
        }
    }

    /// Reads until the stream ends, and says why it did; none when nobody wants it any more.
    fn read(&self, lines: &mut Lines) -> Option<String> {
        let mut heard = Instant::now();
        let mut partial = Vec::new();
        loop {
            match read_line(lines, &mut partial) {
                Ok(Some(text)) => {
                    heard = Instant::now();
                    // What is no line of this schema is a line of a newer one.
                    if let Ok(line) = serde_json::from_str::<WatchLine>(&text)
                        && !self.tell(|inbox, _| inbox.add(line))
                    {
                        return None;
                    }
                }
                Ok(None) if self.inbox.strong_count() == 0 => return None,
                Ok(None) if heard.elapsed() < self.patience => {}
                Ok(None) => return Some(format!("nothing came for {:.0?}", self.patience)),
                Err(reason) => return Some(reason),
            }
        }
    }

    /// Whether there is anybody to tell.
    fn tell(&self, what: impl FnOnce(&mut Inbox, String)) -> bool {
        let Some(inbox) = self.inbox.upgrade() else { return false };
        what(&mut lock(&inbox), self.address.clone());
        true
    }
}

/// Connects and reads the first line.
fn open(address: &str) -> Result<(WatchHeader, Lines), String> {
    let found = address.to_socket_addrs().map_err(|error| error.to_string())?;
    let mut refused = "it has no address".to_owned();
    for address in found {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(socket) => return begin(socket),
            Err(error) => refused = error.to_string(),
        }
    }
    Err(refused)
}

fn begin(socket: TcpStream) -> Result<(WatchHeader, Lines), String> {
    socket.set_read_timeout(Some(LOOK_EVERY)).map_err(|error| error.to_string())?;
    let mut lines = BufReader::new(socket);
    let mut partial = Vec::new();
    let began = Instant::now();
    while began.elapsed() < CONNECT_TIMEOUT {
        if let Some(line) = read_line(&mut lines, &mut partial)? {
            return Ok((WatchHeader::parse(&line)?, lines));
        }
    }
    Err(format!("nothing came for {CONNECT_TIMEOUT:?}"))
}

/// The next line, without its end; none while it has not come whole. `partial` keeps what there is of it.
fn read_line(lines: &mut impl BufRead, partial: &mut Vec<u8>) -> Result<Option<String>, String> {
    let room = WATCH_LINE_BYTES_MAX - partial.len();
    match lines.take(room as u64).read_until(b'\n', partial) {
        Ok(_) if partial.last() == Some(&b'\n') => {
            partial.pop();
            let line = String::from_utf8(std::mem::take(partial));
            line.map(Some).map_err(|_| "a line of it is no text".to_owned())
        }
        Ok(_) if partial.len() == WATCH_LINE_BYTES_MAX => {
            Err(format!("a line of it is longer than {WATCH_LINE_BYTES_MAX} bytes"))
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

/// Three lines that should have come, and at least three seconds.
fn patience(header: &WatchHeader) -> Duration {
    Duration::from_millis(header.interval_ms.saturating_mul(3)).clamp(PATIENCE_LEAST, PATIENCE_MOST)
}

const PATIENCE_LEAST: Duration = Duration::from_secs(3);
const PATIENCE_MOST: Duration = Duration::from_secs(600);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How soon the thread notices that nobody reads any more.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The rest between two attempts to have a lost stream back.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Lines that wait for a recorder that does not come.
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
        assert_eq!(take(&[]), None, "the second one comes a little late");
        assert_eq!(take(&[2, 3]), Some(2));
        assert_eq!(take(&[]), Some(3), "late again, and it does not show");
        assert_eq!(take(&[4, 5, 6, 7]), Some(7), "a watch that is faster than the run");
        assert_eq!(take(&(10..40).collect::<Vec<_>>()), Some(39));
    }

    #[test]
    fn a_machine_is_known_by_its_kernels_id_and_its_namespace() {
        let of = |boot_id, net_namespace| {
            Kin::of(&WatchHeader { boot_id, net_namespace, ..Default::default() })
        };
        assert_eq!(of(boot_id(), net_namespace()), Kin::SameNamespace);
        assert_eq!(of(boot_id(), Some("net:[1]".into())), Kin::SameMachine);
        assert_eq!(of(Some("another".into()), net_namespace()), Kin::Strangers);
        assert_eq!(of(None, net_namespace()), Kin::Strangers);
    }

    /// What becomes of a stream whose other end writes `bytes` and closes.
    fn opened(bytes: &'static [u8]) -> Result<(WatchHeader, Lines), String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let peer = std::thread::spawn(move || {
            let _ = listener.accept().unwrap().0.write_all(bytes);
        });
        let opened = open(&address);
        peer.join().unwrap();
        opened
    }

    #[test]
    fn whoever_is_no_watch_is_refused_in_a_sentence() {
        assert!(opened(b"SSH-2.0-x\r\n").unwrap_err().contains("first line"));
        assert!(opened(b"").unwrap_err().contains("ended"));
        assert!(opened(b"\xff\xfe\n").unwrap_err().contains("no text"));
        assert!(
            opened(b"{\"schema\":\"throng.watch/9\"}\n").unwrap_err().contains("throng.watch/9")
        );
        assert!(opened(b"{\"schema\":\"throng.watch/1\",\"ports\":[80]}\n").is_ok());
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert!(open(&closed.to_string()).is_err());
    }

    /// Bytes that come in pieces, with nothing between two of them.
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
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

        /// What is read does not depend on how the bytes arrive, and no bytes make it panic.
        #[test]
        fn lines_are_the_same_in_whatever_pieces_they_come(
            pieces in vec(vec(prop_oneof![Just(b'\n'), Just(b'{'), Just(b'"'), any::<u8>()], 0..9), 0..9),
        ) {
            let whole = pieces.concat();
            let mut lines = BufReader::with_capacity(4, Pieces(pieces));
            let (mut read, mut partial) = (Vec::new(), Vec::new());
            let ended = loop {
                match read_line(&mut lines, &mut partial) {
                    Ok(Some(line)) => {
                        let _ = (WatchHeader::parse(&line), serde_json::from_str::<WatchLine>(&line));
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
            prop_assert_eq!(ended.contains("no text"), rest.contains(&b'\n'));
        }
    }

    #[test]
    fn a_line_without_an_end_does_not_fill_the_memory() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let peer = std::thread::spawn(move || {
            let mut socket = listener.accept().unwrap().0;
            let piece = vec![b'x'; 1 << 16];
            // It fails once the reader has had enough.
            (0..1_000).all(|_| socket.write_all(&piece).is_ok())
        });
        assert!(open(&address).unwrap_err().contains("longer than"));
        assert!(!peer.join().unwrap(), "all of 64 MB was read");
    }
}
