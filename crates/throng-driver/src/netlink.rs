//! Netlink queries: TCP sockets (`sock_diag`), and the networks of this machine.
//!
//! Only `sock_diag` reports how full an accept queue is, and which connections are in SYN-RECV. A
//! query for LISTEN alone reads the listeners' table (0.2 ms). A query for any other state walks
//! every bucket of the connections' table and every socket in it (41 ms at 400,000 sockets, 340 ms
//! at two million), so callers must limit such queries.

mod addresses;
mod wire;

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

/// Listening socket and its accept queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerState {
    /// Address at which the socket listens.
    pub addr: SocketAddr,
    /// Established connections that are not accepted yet.
    pub accept_queue: u32,
    /// Limit of the queue: the argument of `listen`, or the machine's largest backlog if that is
    /// less. The kernel refuses connections when the queue is *longer* than this, so `backlog + 1`
    /// can wait.
    pub backlog: u32,
    /// Inode of the socket, as in the links of `/proc/PID/fd`.
    pub inode: u32,
    /// User who created the socket.
    pub uid: u32,
    /// SYNs and final ACKs of handshakes that this listener dropped since it was opened, for any
    /// reason. `None` before Linux 4.7.
    pub drops: Option<u32>,
    /// True for a listener of IPv6 that takes no IPv4 connections. `None` for one of IPv4, and
    /// before Linux 4.2.
    pub v6_only: Option<bool>,
}

/// Address family of a query; the kernel keeps separate tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// `AF_INET`.
    V4,
    /// `AF_INET6`. It includes dual-stack listeners and their IPv4 connections.
    V6,
}

/// Set of TCP states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct States(u32);

impl States {
    /// Established connections.
    pub const ESTABLISHED: Self = Self(1 << 1);
    /// Half-open: the SYN has arrived, and the ACK that completes the connection has not.
    pub const SYN_RECV: Self = Self(1 << 3);
    /// Closed by this side first, and kept for a minute.
    pub const TIME_WAIT: Self = Self(1 << 6);
    /// Closed by the peer, and not yet by this side.
    pub const CLOSE_WAIT: Self = Self(1 << 8);
    /// Listeners.
    pub const LISTEN: Self = Self(1 << 10);
    /// Established connections, and those that only the peer has closed.
    pub const READABLE: Self = Self(Self::ESTABLISHED.0 | Self::CLOSE_WAIT.0);
    /// All states except LISTEN.
    pub const CONNECTIONS: Self = Self(0xfff & !Self::LISTEN.0);
}

/// Error of a netlink query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiagError {
    /// No netlink socket: a seccomp filter (EPERM, EACCES), no such protocol here (EAFNOSUPPORT,
    /// EPROTONOSUPPORT), or no fd left (EMFILE, ENFILE).
    #[error("netlink socket: {0}")]
    Open(Errno),
    /// The query could not be sent.
    #[error("netlink send: {0}")]
    Send(Errno),
    /// The answer could not be read. EAGAIN means that none arrived within [`ANSWER_TIMEOUT`].
    #[error("netlink receive: {0}")]
    Receive(Errno),
    /// The kernel answered with an error. ENOENT means that it has no `inet_diag`.
    #[error("sock_diag refused: {0}")]
    Refused(Errno),
    /// The answer is malformed.
    #[error("sock_diag answer: {0}")]
    Malformed(DiagFormatError),
}

impl DiagError {
    /// Returns the error for the number `errno` of an answer. An emulated kernel may send any
    /// number.
    fn refused(errno: i32) -> Self {
        match errno {
            1..=ERRNO_MAX => Self::Refused(Errno::from_raw_os_error(errno)),
            _ => Self::Malformed(DiagFormatError::Errno(errno)),
        }
    }
}

/// Largest error number (`MAX_ERRNO`).
const ERRNO_MAX: i32 = 4_095;

/// Netlink socket for `sock_diag`, in the network namespace of the thread that opened it.
///
/// The socket stays open between queries, so that queries work even if the fd table is full. After
/// an error it is opened anew, because the kernel refuses a query while an earlier answer is not
/// read completely.
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

    /// Returns every listener of `family` in this network namespace.
    pub fn listeners(&mut self, family: Family) -> Result<Vec<ListenerState>, DiagError> {
        let mut found = Vec::new();
        self.query(family, States::LISTEN, &[], |diag| {
            found.push(ListenerState {
                addr: diag.local,
                accept_queue: diag.receive_queue,
                backlog: diag.send_queue,
                inode: diag.inode,
                uid: diag.uid,
                drops: diag.drops,
                v6_only: diag.v6_only,
            });
        })?;
        Ok(found)
    }

    /// Returns how many sockets of `family` are in one of `states`, have one of `ports` as their
    /// local port (an empty list means any port), and a local address that `accepts` takes. The
    /// kernel looks at the ports, so sockets of others cost the walk but no copy, unless the ports
    /// are scattered over hundreds of ranges.
    pub fn count(
        &mut self,
        family: Family,
        states: States,
        ports: &[u16],
        accepts: impl Fn(SocketAddr) -> bool,
    ) -> Result<u64, DiagError> {
        let mut count = 0;
        let ranges = wire::ranges(ports);
        if ranges.len() <= wire::RANGES_MAX {
            self.query(family, states, &ranges, |diag| count += u64::from(accepts(diag.local)))?;
        } else {
            let is_in = |port| ranges.iter().any(|(first, last)| (*first..=*last).contains(&port));
            let has_port: Vec<bool> = (0..=u16::MAX).map(is_in).collect();
            self.query(family, states, &[], |diag| {
                let is_mine = has_port[usize::from(diag.local.port())] && accepts(diag.local);
                count += u64::from(is_mine);
            })?;
        }
        Ok(count)
    }

    /// Returns up to `sockets_max` sockets of `family` that are in one of `states` and have `port`
    /// as their local port. It costs as much as [`Self::count`].
    pub fn sockets(
        &mut self,
        family: Family,
        states: States,
        port: u16,
        sockets_max: usize,
    ) -> Result<Vec<Diag>, DiagError> {
        let mut found = Vec::new();
        self.query(family, states, &[(port, port)], |diag| {
            if found.len() < sockets_max {
                found.push(*diag);
            }
        })?;
        Ok(found)
    }

    /// Gives each socket of `family` that is in one of `states` and has one of `ports` as its local
    /// port; an empty list means any port. It costs as much as [`Self::count`], and ports that are
    /// scattered over hundreds of ranges are refused.
    pub fn each(
        &mut self,
        family: Family,
        states: States,
        ports: &[u16],
        each: impl FnMut(&Diag),
    ) -> Result<(), DiagError> {
        let ranges = wire::ranges(ports);
        if ranges.len() > wire::RANGES_MAX {
            return Err(DiagError::Refused(Errno::TOOBIG));
        }
        self.query(family, states, &ranges, each)
    }

    fn query(
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

/// Longest wait for an answer. The kernel makes an answer inside `send` and `recv`, so only a
/// faulty emulation of netlink lets a caller wait.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Most bytes that the kernel writes at a time, whatever the size of the buffer.
const ANSWER_BYTES_MAX: usize = 32 * 1024;
