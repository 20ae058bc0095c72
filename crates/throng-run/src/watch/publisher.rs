//! Sends the lines of a watch to every connected reader, and never reads from one.

use std::io::{self, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use throng_driver::network_of;
use throng_measure::watch::{WATCH_LINE_BYTES_MAX, WatchHeader, WatchLine};

/// The most readers at one time. A further reader replaces one of the address that has the most, so
/// that no address keeps the others out. A further reader of that same address is closed at once.
pub const READERS_MAX: usize = 16;

/// A listener and its readers, on separate threads.
#[derive(Debug)]
pub struct Publisher {
    addr: SocketAddr,
    readers: Arc<Mutex<Readers>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Publisher {
    /// Listens on `addr`, in the network namespace of the calling thread. Accepts no reader before
    /// [`BoundPublisher::start`].
    ///
    /// # Errors
    /// The address is in use, or is not an address of this machine.
    pub fn bind(addr: SocketAddr) -> io::Result<BoundPublisher> {
        let listener = TcpListener::bind(addr)?;
        // A thread in a blocking accept could not stop.
        listener.set_nonblocking(true)?;
        Ok(BoundPublisher { listener })
    }

    /// Returns the listener's address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Sends a line to every reader. Closes readers that are too slow; they may reconnect.
    pub fn publish(&self, line: &WatchLine) {
        let text: Arc<str> = self::json_line(line).into();
        if text.len() <= WATCH_LINE_BYTES_MAX {
            let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
            readers.0.retain(|reader| reader.lines.try_send(Arc::clone(&text)).is_ok());
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A publisher that listens but accepts no reader yet.
#[derive(Debug)]
pub struct BoundPublisher {
    listener: TcpListener,
}

impl BoundPublisher {
    /// Starts to accept readers, and sends each the first line of the stream.
    ///
    /// # Errors
    /// The thread cannot start.
    pub fn start(self, header: &WatchHeader) -> io::Result<Publisher> {
        let addr = self.listener.local_addr()?;
        let readers = Arc::<Mutex<Readers>>::default();
        let stop = Arc::new(AtomicBool::new(false));
        let accept_loop = AcceptLoop {
            listener: self.listener,
            header: json_line(header).into(),
            readers: Arc::clone(&readers),
            stop: Arc::clone(&stop),
        };
        let thread = std::thread::Builder::new().name("watch-accept".into());
        let thread = Some(thread.spawn(move || accept_loop.run())?);
        Ok(Publisher { addr, readers, stop, thread })
    }
}

/// The state of the accepting thread.
struct AcceptLoop {
    listener: TcpListener,
    header: Arc<str>,
    readers: Arc<Mutex<Readers>>,
    stop: Arc<AtomicBool>,
}

impl AcceptLoop {
    fn run(self) {
        while !self.stop.load(Ordering::Relaxed) {
            match self.listener.accept() {
                Ok((socket, from)) => self.add_reader(socket, network_of(from.ip())),
                // No reader waits, or it left before the accept, or no fd is free: try again later.
                Err(_) => std::thread::sleep(ACCEPT_INTERVAL),
            }
        }
    }

    fn add_reader(&self, socket: TcpStream, from: IpAddr) {
        let (lines, waiting) = mpsc::sync_channel::<Arc<str>>(LINES_MAX);
        let _ = lines.send(Arc::clone(&self.header));
        // Without a second fd the publisher could not close the reader.
        let Ok(handle) = socket.try_clone() else { return };
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if !readers.make_room(from) {
            return;
        }
        let thread = std::thread::Builder::new().name("watch-reader".into());
        if thread.spawn(move || write_lines(socket, &waiting)).is_ok() {
            readers.0.push(Reader { lines, socket: handle, from });
        }
    }
}

/// A reader's connection, which has a writing thread.
#[derive(Debug)]
struct Reader {
    lines: SyncSender<Arc<str>>,
    socket: TcpStream,
    from: IpAddr,
}

/// The connected readers, the oldest first.
#[derive(Debug, Default)]
struct Readers(Vec<Reader>);

impl Readers {
    /// Makes room for a reader of `from`, if necessary by closing the oldest reader of the address
    /// that has the most. Returns false when `from` has as many itself.
    fn make_room(&mut self, from: IpAddr) -> bool {
        if self.0.len() < READERS_MAX {
            return true;
        }
        let count = |from| self.0.iter().filter(|reader| reader.from == from).count();
        let most = self.0.iter().map(|reader| count(reader.from)).max().unwrap_or(0);
        let oldest = self.0.iter().position(|reader| count(reader.from) == most);
        match oldest {
            Some(oldest) if count(from) < most => {
                let reader = self.0.remove(oldest);
                let _ = reader.socket.shutdown(Shutdown::Both);
                true
            }
            _ => false,
        }
    }
}

/// Writes lines until the reader disconnects or the watch ends.
fn write_lines(mut socket: TcpStream, lines: &Receiver<Arc<str>>) {
    let begun = socket.set_nonblocking(false).and(socket.set_write_timeout(Some(WRITE_TIMEOUT)));
    if begun.is_ok() {
        for line in lines {
            if socket.write_all(line.as_bytes()).is_err() {
                return;
            }
        }
    }
}

fn json_line(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("plain data becomes JSON") + "\n"
}

/// The time between two attempts to accept a reader.
const ACCEPT_INTERVAL: Duration = Duration::from_millis(50);
/// The time after which a reader that reads nothing is closed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// The most lines that wait for a reader.
const LINES_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::time::Instant;

    use super::*;

    fn publisher() -> Publisher {
        let header = WatchHeader { schema: "throng.watch/1".into(), ..Default::default() };
        Publisher::bind("127.0.0.1:0".parse().unwrap()).unwrap().start(&header).unwrap()
    }

    fn reader(publisher: &Publisher) -> BufReader<TcpStream> {
        let socket = TcpStream::connect(publisher.addr()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        BufReader::new(socket)
    }

    fn next(reader: &mut BufReader<TcpStream>) -> String {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line
    }

    #[test]
    fn every_reader_gets_the_header_and_then_each_line() {
        let publisher = publisher();
        let mut readers = [reader(&publisher), reader(&publisher)];
        for reader in &mut readers {
            assert!(WatchHeader::parse(next(reader).trim_end()).is_ok());
        }
        for at_ms in [1, 2] {
            publisher.publish(&WatchLine { at_ms, ..Default::default() });
        }
        for reader in &mut readers {
            for at_ms in [1, 2] {
                let line: WatchLine = serde_json::from_str(&next(reader)).unwrap();
                assert_eq!(line.at_ms, at_ms);
            }
        }
        drop(publisher);
        assert_eq!(next(&mut readers[0]), "", "the stream ends with the watch");
    }

    /// Connects a reader from another address of loopback.
    fn reader_from(last: u8, publisher: &Publisher) -> BufReader<TcpStream> {
        use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
        let from = SocketAddr::from(([127, 0, 0, last], 0));
        let fd = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&fd, &from).unwrap();
        connect(&fd, &publisher.addr()).unwrap();
        let socket = TcpStream::from(fd);
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        BufReader::new(socket)
    }

    #[test]
    fn no_address_keeps_the_others_out() {
        let publisher = publisher();
        let mut greedy: Vec<_> = (0..READERS_MAX).map(|_| reader(&publisher)).collect();
        for reader in &mut greedy {
            next(reader);
        }
        let mut generator = reader_from(2, &publisher);
        assert!(WatchHeader::parse(next(&mut generator).trim_end()).is_ok());
        assert_eq!(next(&mut greedy[0]), "", "the oldest reader of the greedy address is closed");
        // Its next attempts fail as well.
        for _ in 0..3 {
            assert_eq!(next(&mut reader(&publisher)), "");
        }
        publisher.publish(&WatchLine { at_ms: 7, ..Default::default() });
        assert!(next(&mut generator).contains("\"at_ms\":7"));
        assert!(next(&mut greedy[1]).contains("\"at_ms\":7"));
    }

    #[test]
    fn a_host_is_known_by_its_network() {
        let same = |one: &str, other: &str| {
            network_of(one.parse().unwrap()) == network_of(other.parse().unwrap())
        };
        assert!(same("2001:db8::1", "2001:db8::ffff:1") && !same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(same("10.0.0.1", "::ffff:10.0.0.1") && !same("10.0.0.1", "10.0.0.2"));
    }

    #[test]
    fn one_reader_too_many_is_closed_and_a_slow_one_delays_no_other() {
        let publisher = publisher();
        let mut readers: Vec<_> = (0..READERS_MAX).map(|_| reader(&publisher)).collect();
        for reader in &mut readers {
            next(reader);
        }
        let mut refused = String::new();
        let _ = reader(&publisher).read_to_string(&mut refused);
        assert_eq!(refused, "");

        // Far more than the kernel's buffers and the queue hold.
        let unseen = vec!["x".repeat(500_000)];
        let big = WatchLine { unseen, ..Default::default() };
        let began = Instant::now();
        for _ in 0..100 {
            publisher.publish(&big);
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        let left = publisher.readers.lock().unwrap().0.len();
        assert_eq!(left, 0, "all of them were too slow");
    }
}
