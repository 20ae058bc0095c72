//! A driver whose system calls fail at random.

use std::net::SocketAddr;
use std::time::Duration;

use throng_base::{Instant, Prng};
use throng_driver::{
    ConnectSpec, CoreId, Driver, Errno, Interest, IoEvent, ListenSpec, Listeners, SocketClose,
    Sockets, Token,
};

use crate::Faults;
use crate::faults::happens;

/// Decorator of a driver, simulated or real. A call that fails does not reach the inner driver: its
/// bytes stay unread or unsent.
pub struct FaultyDriver<D> {
    inner: D,
    faults: Faults,
    prng: Prng,
}

impl<D> FaultyDriver<D> {
    /// Wraps `inner` with the system call faults of `faults`, drawn from `prng`.
    pub const fn new(inner: D, faults: Faults, prng: Prng) -> Self {
        Self { inner, faults, prng }
    }

    /// Fails with `with` by the chance that `chance` selects.
    fn inject(&mut self, with: Errno, chance: fn(&Faults) -> f64) -> Result<(), Errno> {
        if happens(&mut self.prng, chance(&self.faults)) { Err(with) } else { Ok(()) }
    }

    /// Draws the faults of calls that open a socket: either file table is full.
    fn open_faults(&mut self) -> Result<(), Errno> {
        self.inject(Errno::TABLE_FULL, |faults| faults.table_full)?;
        self.inject(Errno::SYSTEM_FULL, |faults| faults.system_full)
    }

    /// Draws the faults of calls that receive or send.
    fn transfer_faults(&mut self) -> Result<(), Errno> {
        self.inject(Errno::INTR, |faults| faults.interrupted)?;
        self.inject(Errno::NO_MEMORY, |faults| faults.no_memory)
    }
}

impl<D: Sockets> Sockets for FaultyDriver<D> {
    type Fd = D::Fd;

    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn wait(&mut self, deadline: Instant, events: &mut Vec<IoEvent>) {
        self.inner.wait(deadline, events);
    }

    fn connect(&mut self, spec: &ConnectSpec) -> Result<D::Fd, Errno> {
        self.open_faults()?;
        self.inject(Errno::ADDR_NOT_AVAILABLE, |faults| faults.no_port)?;
        self.inner.connect(spec)
    }

    fn error(&mut self, fd: &D::Fd) -> Result<(), Errno> {
        self.inner.error(fd)
    }

    fn local_addr(&self, fd: &D::Fd) -> Option<SocketAddr> {
        self.inner.local_addr(fd)
    }

    fn peer_addr(&self, fd: &D::Fd) -> Option<SocketAddr> {
        self.inner.peer_addr(fd)
    }

    fn register(&mut self, fd: &D::Fd, token: Token, interest: Interest) -> Result<(), Errno> {
        self.inject(Errno::NO_SPACE, |faults| faults.no_watch)?;
        self.inner.register(fd, token, interest)
    }

    fn reregister(&mut self, fd: &D::Fd, token: Token, interest: Interest) -> Result<(), Errno> {
        self.inner.reregister(fd, token, interest)
    }

    fn recv(&mut self, fd: &D::Fd, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.transfer_faults()?;
        self.inner.recv(fd, buffer)
    }

    fn recv_stamped(
        &mut self,
        fd: &D::Fd,
        buffer: &mut [u8],
    ) -> Result<(usize, Option<Instant>), Errno> {
        self.transfer_faults()?;
        self.inner.recv_stamped(fd, buffer)
    }

    fn handshake_rtt(&self, fd: &D::Fd) -> Option<Duration> {
        self.inner.handshake_rtt(fd)
    }

    fn unacknowledged_bytes(&self, fd: &D::Fd) -> Option<u64> {
        self.inner.unacknowledged_bytes(fd)
    }

    fn send(&mut self, fd: &D::Fd, bytes: &[u8]) -> Result<usize, Errno> {
        self.transfer_faults()?;
        self.inner.send(fd, bytes)
    }

    fn finish(&mut self, fd: &D::Fd) -> Result<(), Errno> {
        self.inner.finish(fd)
    }

    fn close(&mut self, fd: D::Fd, how: SocketClose) {
        self.inner.close(fd, how);
    }
}

impl<D: Listeners> Listeners for FaultyDriver<D> {
    fn listen(&mut self, spec: &ListenSpec) -> Result<D::Fd, Errno> {
        self.inner.listen(spec)
    }

    fn watch(&mut self, listener: &D::Fd, number: u32) -> Result<(), Errno> {
        self.inner.watch(listener, number)
    }

    fn unwatch(&mut self, listener: &D::Fd) -> Result<(), Errno> {
        self.inner.unwatch(listener)
    }

    fn accept(&mut self, listener: &D::Fd) -> Result<D::Fd, Errno> {
        self.open_faults()?;
        let fd = self.inner.accept(listener)?;
        match self.inject(Errno::CONN_ABORTED, |faults| faults.accept_aborted) {
            Ok(()) => Ok(fd),
            Err(errno) => {
                self.inner.close(fd, SocketClose::Reset);
                Err(errno)
            }
        }
    }

    fn hand_off(&mut self, fd: D::Fd, to: CoreId) {
        self.inner.hand_off(fd, to);
    }

    fn take_passed(&mut self) -> Option<D::Fd> {
        self.inner.take_passed()
    }

    fn share(&mut self, listener: &D::Fd, to: CoreId) -> Result<(), Errno> {
        self.inner.share(listener, to)
    }

    fn take_shared(&mut self) -> Option<D::Fd> {
        self.inner.take_shared()
    }

    fn pass_failures(&self) -> u64 {
        self.inner.pass_failures()
    }

    fn fd_room(&self) -> Option<usize> {
        self.inner.fd_room()
    }
}

impl<D: Driver> Driver for FaultyDriver<D> {
    type Message = D::Message;
    type Link = D::Link;

    fn link(&self) -> &D::Link {
        self.inner.link()
    }
}
