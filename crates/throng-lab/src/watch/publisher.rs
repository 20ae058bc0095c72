//! Hands the lines of a watch to whoever connects. Nothing that a reader sends is read.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use throng_report::watch::{WATCH_LINE_BYTES_MAX, WatchHeader, WatchLine};

/// Readers at a time; one more is closed at once.
pub const READERS_MAX: usize = 16;

/// A listener and its readers, on threads of their own.
#[derive(Debug)]
pub struct Publisher {
    addr: SocketAddr,
    readers: Arc<Mutex<Vec<SyncSender<Arc<str>>>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Publisher {
    /// Listens on `addr`, in the network namespace of the calling thread. Nobody is welcomed before [`Bound::start`].
    ///
    /// # Errors
    /// The address is not free, or not this machine's.
    pub fn bind(addr: SocketAddr) -> io::Result<Bound> {
        let listener = TcpListener::bind(addr)?;
        // A listener that waits could not be told to end.
        listener.set_nonblocking(true)?;
        Ok(Bound { listener })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Sends a line to every reader. One that is too slow is closed, and may come again.
    pub fn publish(&self, line: &WatchLine) {
        let text: Arc<str> = self::line(line).into();
        if text.len() <= WATCH_LINE_BYTES_MAX {
            let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
            readers.retain(|reader| reader.try_send(Arc::clone(&text)).is_ok());
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

/// A publisher that has an address and nothing to say yet.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
}

impl Bound {
    /// Welcomes readers with the first line of the stream.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn start(self, header: &WatchHeader) -> io::Result<Publisher> {
        let addr = self.listener.local_addr()?;
        let readers = Arc::<Mutex<Vec<_>>>::default();
        let stop = Arc::new(AtomicBool::new(false));
        let accepting = Accepting {
            listener: self.listener,
            header: line(header).into(),
            readers: Arc::clone(&readers),
            stop: Arc::clone(&stop),
        };
        let thread = std::thread::Builder::new().name("watch-accept".into());
        let thread = Some(thread.spawn(move || accepting.run())?);
        Ok(Publisher { addr, readers, stop, thread })
    }
}

/// What the accepting thread owns.
struct Accepting {
    listener: TcpListener,
    header: Arc<str>,
    readers: Arc<Mutex<Vec<SyncSender<Arc<str>>>>>,
    stop: Arc<AtomicBool>,
}

impl Accepting {
    fn run(self) {
        while !self.stop.load(Ordering::Relaxed) {
            match self.listener.accept() {
                Ok((socket, _)) => self.welcome(socket),
                // None waits, or one was gone before it was accepted, or there is no fd: there may be one later.
                Err(_) => std::thread::sleep(LOOK_EVERY),
            }
        }
    }

    fn welcome(&self, socket: TcpStream) {
        let (lines, waiting) = mpsc::sync_channel::<Arc<str>>(LINES_MAX);
        let _ = lines.send(Arc::clone(&self.header));
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() >= READERS_MAX {
            return;
        }
        let thread = std::thread::Builder::new().name("watch-reader".into());
        if thread.spawn(move || write_all(socket, &waiting)).is_ok() {
            readers.push(lines);
        }
    }
}

/// Writes what comes until the reader is gone, or the watch.
fn write_all(mut socket: TcpStream, lines: &Receiver<Arc<str>>) {
    let begun = socket.set_nonblocking(false).and(socket.set_write_timeout(Some(WRITE_TIMEOUT)));
    if begun.is_ok() {
        for line in lines {
            if socket.write_all(line.as_bytes()).is_err() {
                return;
            }
        }
    }
}

fn line(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("plain data becomes JSON") + "\n"
}

/// How soon a reader is welcomed.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A reader that takes nothing for so long is closed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// Lines that wait for a reader.
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

    #[test]
    fn one_reader_too_many_is_closed_and_one_that_does_not_read_holds_up_nobody() {
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
        let left = publisher.readers.lock().unwrap().len();
        assert_eq!(left, 0, "all of them were too slow");
    }
}
