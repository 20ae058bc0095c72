//! The smallest driver: connections in memory, whose peer is a function. It has clients alone, so
//! it has no listeners.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use throng_base::Instant;
use throng_driver::{
    Clock, ConnectSpec, CoreRoom, Driver, DriverCapacity, DriverFactory, Errno, Interest, IoEvent,
    Ready, SocketClose, Sockets, ThreadLink, Token,
};

/// Answer to what a connection has sent; `None` if the peer finishes.
pub(crate) type Peer = fn(&[u8]) -> Option<Vec<u8>>;

/// Factory of drivers whose connections all lead to this peer.
#[derive(Clone, Copy)]
pub(crate) struct Memory(pub(crate) Peer);

impl DriverFactory for Memory {
    type Driver<M: Send + 'static> = MemoryDriver<M>;

    fn capacity(&self) -> DriverCapacity {
        DriverCapacity {
            room: CoreRoom::Each(CONNECTIONS_EACH),
            ports: None,
            connection_bytes: Some(size_of::<Pipe>() as u64),
            limits: &[],
        }
    }

    fn make<M: Send + 'static>(&self, link: ThreadLink<M>) -> Result<MemoryDriver<M>, Errno> {
        let (pipes, events) = (HashMap::new(), VecDeque::new());
        Ok(MemoryDriver { link, peer: self.0, pipes, connects: 0, events })
    }
}

/// Driver of one core.
pub(crate) struct MemoryDriver<M> {
    link: ThreadLink<M>,
    peer: Peer,
    pipes: HashMap<u64, Pipe>,
    connects: u64,
    /// Events that no wait has returned.
    events: VecDeque<IoEvent>,
}

/// What the peer has sent on a connection.
#[derive(Default)]
struct Pipe {
    token: Option<Token>,
    bytes: VecDeque<u8>,
    finished: bool,
}

impl<M> MemoryDriver<M> {
    fn pipe(&mut self, fd: u64) -> Result<&mut Pipe, Errno> {
        self.pipes.get_mut(&fd).ok_or(Errno::BAD_FD)
    }

    /// Reports the readiness of a registered connection.
    fn report(&mut self, fd: u64) -> Result<(), Errno> {
        let Pipe { token, bytes, finished } = self.pipe(fd)?;
        let finished = *finished;
        let readable = finished || !bytes.is_empty();
        let ready = Ready { readable, writable: true, finished, error: false };
        let event = token.map(|token| IoEvent { token, ready });
        self.events.extend(event);
        Ok(())
    }

    /// Waits until another thread wakes this core, or for `timeout`.
    fn wait_for_wake(&mut self, timeout: Option<Duration>) {
        let fd = self.link.wake_fd();
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        // An interruption by a signal is a short wait.
        let _ = poll(&mut [PollFd::new(&fd, PollFlags::IN)], timeout.as_ref());
        if rustix::io::read(fd, &mut [0; 8]).is_ok() {
            self.events.push_back(IoEvent { token: Token::WAKE, ready: Ready::default() });
        }
    }
}

impl<M> Sockets for MemoryDriver<M> {
    type Fd = u64;

    fn now(&self) -> Instant {
        Clock.now()
    }

    fn wait(&mut self, deadline: Instant, events: &mut Vec<IoEvent>) {
        let timeout = match deadline {
            _ if !self.events.is_empty() => Some(Duration::ZERO),
            Instant::FAR => None,
            deadline => Some(deadline.since(self.now())),
        };
        self.wait_for_wake(timeout);
        let count = self.events.len().min(BATCH_MAX);
        events.extend(self.events.drain(..count));
    }

    fn connect(&mut self, _: &ConnectSpec) -> Result<u64, Errno> {
        if self.pipes.len() as u64 >= CONNECTIONS_EACH {
            return Err(Errno::NO_MEMORY);
        }
        self.connects += 1;
        self.pipes.insert(self.connects, Pipe::default());
        Ok(self.connects)
    }

    fn error(&mut self, _: &u64) -> Result<(), Errno> {
        Ok(())
    }

    fn local_addr(&self, _: &u64) -> Option<SocketAddr> {
        None
    }

    fn peer_addr(&self, _: &u64) -> Option<SocketAddr> {
        None
    }

    fn register(&mut self, fd: &u64, token: Token, _: Interest) -> Result<(), Errno> {
        self.pipe(*fd)?.token = Some(token);
        self.report(*fd)
    }

    fn reregister(&mut self, fd: &u64, token: Token, interest: Interest) -> Result<(), Errno> {
        self.register(fd, token, interest)
    }

    fn recv(&mut self, fd: &u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let pipe = self.pipe(*fd)?;
        if pipe.bytes.is_empty() && !pipe.finished {
            return Err(Errno::AGAIN);
        }
        Ok(std::io::Read::read(&mut pipe.bytes, buffer).expect("memory can be read"))
    }

    fn send(&mut self, fd: &u64, bytes: &[u8]) -> Result<usize, Errno> {
        let answer = (self.peer)(bytes);
        let pipe = self.pipe(*fd)?;
        pipe.finished |= answer.is_none();
        pipe.bytes.extend(answer.unwrap_or_default());
        self.report(*fd)?;
        Ok(bytes.len())
    }

    fn finish(&mut self, fd: &u64) -> Result<(), Errno> {
        self.pipe(*fd)?.finished = true;
        self.report(*fd)
    }

    fn close(&mut self, fd: u64, _: SocketClose) {
        self.pipes.remove(&fd);
    }
}

impl<M> Driver for MemoryDriver<M> {
    type Message = M;
    type Link = ThreadLink<M>;

    fn link(&self) -> &ThreadLink<M> {
        &self.link
    }
}

/// Connections that each core holds.
pub(crate) const CONNECTIONS_EACH: u64 = 100;
/// Most events that a wait returns.
const BATCH_MAX: usize = 256;
