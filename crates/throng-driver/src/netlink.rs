//! What the kernel says over netlink: about TCP sockets (`sock_diag`), and about the machine's own networks.
//!
//! It is the one place that tells how full an accept queue is, and the one that tells connections
//! in SYN-RECV apart. A question about LISTEN alone reads the listeners' table (0.2 ms); any other
//! state walks every bucket of the connections' table and every socket in it (41 ms at 400,000
//! sockets, 340 ms at two million), so whoever asks for one must ration it.

mod addresses;
mod wire;

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send,
    socket_with,
};

use wire::PortRange;

pub use addresses::{Subnet, parse_addresses, subnets};
pub use wire::{Diag, DiagFormatError, DiagMessage, DiagMessages, parse_diag};

/// A listening socket and its accept queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerState {
    /// Where it listens.
    pub addr: SocketAddr,
    /// Established connections that nobody has accepted yet.
    pub accept_queue: u32,
    /// How many may wait: what `listen` asked for, or `net.core.somaxconn` where that is less. The
    /// kernel refuses when the queue is *longer* than this, so `backlog + 1` can wait.
    pub backlog: u32,
    /// The socket's inode, as in the links of `/proc/PID/fd`.
    pub inode: u32,
    /// Who made it.
    pub uid: u32,
}

/// Which sockets a question is about; the kernel keeps the two apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// `AF_INET`.
    V4,
    /// `AF_INET6`; a dual-stack listener is one of these, and so are its IPv4 connections.
    V6,
}

/// A set of TCP states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct States(u32);

impl States {
    /// Connections that work.
    pub const ESTABLISHED: Self = Self(1 << 1);
    /// Half-open: a SYN has come, and the ACK that would complete the connection has not.
    pub const SYN_RECV: Self = Self(1 << 3);
    /// Closed by this end first, and kept for a minute.
    pub const TIME_WAIT: Self = Self(1 << 6);
    /// Closed by the peer, not yet by this end.
    pub const CLOSE_WAIT: Self = Self(1 << 8);
    /// Listeners.
    pub const LISTEN: Self = Self(1 << 10);
    /// Everything but listeners.
    pub const CONNECTIONS: Self = Self(0xfff & !Self::LISTEN.0);
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiagError {
    /// No netlink socket: a seccomp filter (EPERM, EACCES), no such protocol here (EAFNOSUPPORT,
    /// EPROTONOSUPPORT), or no fd left (EMFILE, ENFILE).
    Open(Errno),
    /// The question could not be sent.
    Send(Errno),
    /// The answer could not be read; EAGAIN means that none came within [`ANSWER_TIMEOUT`].
    Receive(Errno),
    /// The kernel answered with an error; ENOENT means that it has no `inet_diag`.
    Refused(Errno),
    /// The answer makes no sense.
    Malformed(DiagFormatError),
}

impl fmt::Display for DiagError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(errno) => write!(f, "netlink socket: {errno}"),
            Self::Send(errno) => write!(f, "netlink send: {errno}"),
            Self::Receive(errno) => write!(f, "netlink receive: {errno}"),
            Self::Refused(errno) => write!(f, "sock_diag refused: {errno}"),
            Self::Malformed(why) => write!(f, "sock_diag answer: {why}"),
        }
    }
}

impl std::error::Error for DiagError {}

impl DiagError {
    /// What the kernel says by an error of this number; an emulation of it may send any.
    fn refused(errno: i32) -> Self {
        match errno {
            1..=ERRNO_MAX => Self::Refused(Errno::from_raw_os_error(errno)),
            _ => Self::Malformed(DiagFormatError::Errno(errno)),
        }
    }
}

/// The largest number of an error (`MAX_ERRNO`).
const ERRNO_MAX: i32 = 4_095;

/// A netlink socket that asks `sock_diag`, in the network namespace of the thread that opened it.
///
/// The socket is kept between questions, so that a full fd table does not blind whoever wants to
/// know why the accept queue grows. After an error it is opened anew, since an answer that was not
/// read to its end would make the kernel refuse the next question.
#[derive(Debug)]
pub struct DiagSocket {
    fd: Option<OwnedFd>,
    buffer: Vec<u8>,
    sequence: u32,
}

impl DiagSocket {
    /// Opens the socket.
    pub fn open() -> Result<Self, DiagError> {
        Ok(Self {
            fd: Some(connect(Some(netlink::SOCK_DIAG))?),
            buffer: vec![0; ANSWER_BYTES_MAX],
            sequence: 0,
        })
    }

    /// Every listener of `family` in this network namespace.
    pub fn listeners(&mut self, family: Family) -> Result<Vec<ListenerState>, DiagError> {
        let mut found = Vec::new();
        self.ask(family, States::LISTEN, &[], |diag| {
            found.push(ListenerState {
                addr: diag.local,
                accept_queue: diag.receive_queue,
                backlog: diag.send_queue,
                inode: diag.inode,
                uid: diag.uid,
            });
        })?;
        Ok(found)
    }

    /// How many sockets of `family` are in one of `states` and have one of `ports` as their local
    /// port; no ports means any port. The filter runs in the kernel, so what does not match costs
    /// the walk but no copy, unless the ports are scattered over hundreds of ranges.
    pub fn count(
        &mut self,
        family: Family,
        states: States,
        ports: &[u16],
    ) -> Result<u64, DiagError> {
        let mut count = 0;
        let ranges = wire::ranges(ports);
        if ranges.len() <= wire::RANGES_MAX {
            self.ask(family, states, &ranges, |_| count += 1)?;
        } else {
            let is_in = |port| ranges.iter().any(|(first, last)| (*first..=*last).contains(&port));
            let is_meant: Vec<bool> = (0..=u16::MAX).map(is_in).collect();
            self.ask(family, states, &[], |diag| {
                count += u64::from(is_meant[usize::from(diag.local.port())]);
            })?;
        }
        Ok(count)
    }

    /// Up to `most` sockets of `family` that are in one of `states` and have `port` as their local
    /// port. It costs what [`Self::count`] does.
    pub fn sockets(
        &mut self,
        family: Family,
        states: States,
        port: u16,
        most: usize,
    ) -> Result<Vec<Diag>, DiagError> {
        let mut found = Vec::new();
        self.ask(family, states, &[(port, port)], |diag| {
            if found.len() < most {
                found.push(*diag);
            }
        })?;
        Ok(found)
    }

    fn ask(
        &mut self,
        family: Family,
        states: States,
        ports: &[PortRange],
        each: impl FnMut(&Diag),
    ) -> Result<(), DiagError> {
        let fd = match self.fd.take() {
            Some(fd) => fd,
            None => connect(Some(netlink::SOCK_DIAG))?,
        };
        self.sequence = self.sequence.wrapping_add(1);
        let request = wire::request(family, states, ports, self.sequence);
        send(&fd, &request, SendFlags::empty()).map_err(DiagError::Send)?;
        self.read_answer(&fd, each)?;
        self.fd = Some(fd);
        Ok(())
    }

    fn read_answer(&mut self, fd: &OwnedFd, mut each: impl FnMut(&Diag)) -> Result<(), DiagError> {
        loop {
            let (_, length) = match recv(fd, &mut self.buffer[..], RecvFlags::TRUNC) {
                Err(Errno::INTR) => continue,
                answer => answer.map_err(DiagError::Receive)?,
            };
            let Some(datagram) = self.buffer.get(..length) else {
                return Err(DiagError::Malformed(DiagFormatError::Truncated));
            };
            if datagram.is_empty() {
                return Err(DiagError::Malformed(DiagFormatError::Empty));
            }
            for message in parse_diag(datagram, self.sequence) {
                match message.map_err(DiagError::Malformed)? {
                    DiagMessage::Socket(diag) => each(&diag),
                    DiagMessage::Done => return Ok(()),
                    DiagMessage::Failed(errno) => return Err(DiagError::refused(errno)),
                    DiagMessage::Other => {}
                }
            }
        }
    }
}

fn connect(protocol: Option<Protocol>) -> Result<OwnedFd, DiagError> {
    let fd = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, protocol)
        .map_err(DiagError::Open)?;
    set_socket_timeout(&fd, Timeout::Recv, Some(ANSWER_TIMEOUT)).map_err(DiagError::Open)?;
    Ok(fd)
}

/// How long to wait for an answer that does not come. The kernel works an answer out inside `send`
/// and `recv`, so only one that emulates netlink badly makes anybody wait.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// The kernel fills at most 32 KiB at a time, whatever the buffer.
const ANSWER_BYTES_MAX: usize = 32 * 1024;
