//! Socket calls: open, bind, set options, send, receive, close.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrAny, SocketFlags, SocketType, ipproto,
    socket_with, sockopt,
};

use crate::arrival;
use crate::{ConnectSpec, Errno, ListenSpec, SocketClose, SocketOptions, SourceAddress};

/// Returns the local address of a socket.
pub fn local_addr(fd: impl AsFd) -> Option<SocketAddr> {
    rustix::net::getsockname(fd).ok().and_then(|addr| addr.try_into().ok())
}

/// Returns the peer's address of a socket.
pub fn peer_addr(fd: impl AsFd) -> Option<SocketAddr> {
    rustix::net::getpeername(fd).ok().flatten().and_then(|addr: SocketAddrAny| addr.try_into().ok())
}

/// Returns the network that an address counts for where each has a share: a host owns all of an
/// IPv6 /64.
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64)).into(),
        v4 => v4,
    }
}

pub(crate) fn listen(spec: &ListenSpec) -> Result<OwnedFd, Errno> {
    let fd = open(&spec.addr)?;
    sockopt::set_socket_reuseaddr(&fd, true)?;
    if spec.reuseport {
        sockopt::set_socket_reuseport(&fd, true)?;
    }
    if spec.addr.is_ipv6() {
        sockopt::set_ipv6_v6only(&fd, true)?;
    }
    // Accepted sockets inherit the options, so an accept needs no further call.
    set_options(fd.as_fd(), &spec.options)?;
    rustix::net::bind(&fd, &spec.addr)?;
    rustix::net::listen(&fd, i32::try_from(spec.backlog).unwrap_or(i32::MAX))?;
    Ok(fd)
}

pub(crate) fn accept(listener: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    rustix::net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)
        .map_err(Errno::from)
}

pub(crate) fn connect(spec: &ConnectSpec) -> Result<OwnedFd, Errno> {
    let fd = open(&spec.target)?;
    set_options(fd.as_fd(), &spec.options)?;
    match spec.source {
        SourceAddress::Any => {}
        SourceAddress::IpOnly(address) => {
            bind_address_no_port(fd.as_fd())?;
            rustix::net::bind(&fd, &SocketAddr::new(address, 0))?;
        }
        SourceAddress::Explicit(address) => {
            // Allows a port in TIME-WAIT; connect decides whether that is safe for this pair of
            // addresses.
            sockopt::set_socket_reuseaddr(&fd, true)?;
            rustix::net::bind(&fd, &address)?;
        }
    }
    match rustix::net::connect(&fd, &spec.target) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(fd),
        Err(errno) => Err(errno.into()),
    }
}

pub(crate) fn error(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    sockopt::socket_error(fd)?.map_err(Errno::from)
}

pub(crate) fn recv(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    rustix::net::recv(fd, buffer, RecvFlags::empty())
        .map(|(received, _)| received)
        .map_err(Errno::from)
}

pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    rustix::net::send(fd, bytes, SendFlags::NOSIGNAL).map_err(Errno::from)
}

/// Returns how many bytes are in the send queue of a socket: not sent, or not acknowledged.
pub(crate) fn unacknowledged_bytes(fd: BorrowedFd<'_>) -> Option<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the request (SIOCOUTQ is the same number) writes an int, which lives during the call.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if done == 0 { u64::try_from(bytes).ok() } else { None }
}

pub(crate) fn finish(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::net::shutdown(fd, rustix::net::Shutdown::Write).map_err(Errno::from)
}

pub(crate) fn close(fd: OwnedFd, how: SocketClose) {
    if how == SocketClose::Reset {
        // A linger time of zero turns the close into RST. If the call fails, the connection ends
        // with FIN.
        let _ = sockopt::set_socket_linger(&fd, Some(Duration::ZERO));
    }
    drop(fd);
}

fn open(addr: &SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if addr.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP)).map_err(Errno::from)
}

fn set_options(fd: BorrowedFd<'_>, options: &SocketOptions) -> Result<(), Errno> {
    if options.nodelay {
        sockopt::set_tcp_nodelay(fd, true)?;
    }
    if let Some(bytes) = options.sndbuf_bytes {
        sockopt::set_socket_send_buffer_size(fd, bytes as usize)?;
    }
    if let Some(bytes) = options.rcvbuf_bytes {
        sockopt::set_socket_recv_buffer_size(fd, bytes as usize)?;
    }
    if options.arrival_stamps {
        arrival::request_stamps(fd);
    }
    Ok(())
}

/// Lets `connect` choose the port, so that connections to several targets share a port.
fn bind_address_no_port(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    let on: libc::c_int = 1;
    // SAFETY: the option takes an int of this size, which lives during the call.
    let done = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            std::ptr::from_ref(&on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if done == 0 { Ok(()) } else { Err(last_errno()) }
}

pub(crate) fn last_errno() -> Errno {
    Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
}
