//! The driver for Linux: epoll, edge-triggered for connections, level-triggered for listeners.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll;
use throng_base::Instant;

use crate::arrival::{self, ArrivalClock};
use crate::core_set::CoreSetState;
use crate::driver::{
    ConnectSpec, CoreId, CoreLink, Driver, Interest, IoEvent, ListenSpec, Listeners, Ready,
    SocketClose, Sockets, Token,
};
use crate::handoff::{self, BATCH, FdHandoff};
use crate::wait::{WaitTimeout, Waiter};
use crate::{Clock, Errno, ThreadLink, socket};

/// Socket. Its number is valid only in the fd table of the core that opened it, so it cannot leave
/// the thread.
#[derive(Debug)]
pub struct Fd {
    fd: OwnedFd,
    not_send: PhantomData<*const ()>,
}

impl Fd {
    fn new(fd: OwnedFd) -> Self {
        Self { fd, not_send: PhantomData }
    }
}

impl AsFd for Fd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Driver of one core on Linux.
pub struct EpollDriver<M> {
    link: ThreadLink<M>,
    set: OwnedFd,
    waiter: Waiter,
    buffer: Box<[MaybeUninit<libc::epoll_event>]>,
    handoff: FdHandoff,
    /// Sockets that this core has open, except those that `handoff` counts.
    open: usize,
    clock: Clock,
    arrivals: ArrivalClock,
}

impl<M> EpollDriver<M> {
    /// Creates the driver of a core. Must run on the core's own thread.
    pub(crate) fn new(link: ThreadLink<M>) -> Result<Self, Errno> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let waiter = Waiter::new(set.as_fd(), Token::WAKE.bits())?;
        let wake = epoll::EventFlags::IN | epoll::EventFlags::ET;
        add(set.as_fd(), link.wake_fd(), Token::WAKE, wake)?;
        let channel = &link.shared.slots[link.core()].channel;
        add(set.as_fd(), &channel.read_end, Token::PASSED, epoll::EventFlags::IN)?;
        let buffer = (0..BATCH_MAX).map(|_| MaybeUninit::uninit()).collect();
        let handoff = FdHandoff::new(link.cores(), link.shared.fds_max.is_none());
        let arrivals = ArrivalClock::default();
        Ok(Self { link, set, waiter, buffer, handoff, open: 0, clock: Clock, arrivals })
    }

    /// Counts an open socket.
    fn opened(&mut self, fd: OwnedFd) -> Fd {
        self.open += 1;
        Fd::new(fd)
    }
}

impl<M> Sockets for EpollDriver<M> {
    type Fd = Fd;

    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn wait(&mut self, deadline: Instant, events: &mut Vec<IoEvent>) {
        let failures = self.handoff.failures;
        self.handoff.flush(&self.link.shared.slots);
        let deadline = if self.handoff.failures > failures {
            // The core must learn of the failure now.
            Instant::ZERO
        } else if self.handoff.has_outgoing() {
            deadline.min(self.now() + FLUSH_AGAIN)
        } else {
            deadline
        };
        let timeout = if deadline == Instant::FAR {
            WaitTimeout::Unlimited
        } else {
            match deadline.since(self.now()) {
                span if span.is_zero() => WaitTimeout::Zero,
                span => WaitTimeout::For(span),
            }
        };
        // The only possible error is an interruption by a signal; the loop then waits again.
        let count = self.waiter.wait(self.set.as_fd(), &mut self.buffer, timeout).unwrap_or(0);
        self.arrivals.expire();
        for event in &self.buffer[..count] {
            // SAFETY: the kernel has written the first `count` events.
            let libc::epoll_event { events: bits, u64: token } = unsafe { event.assume_init() };
            events.push(IoEvent { token: Token::from_bits(token), ready: ready(bits) });
        }
    }

    fn connect(&mut self, spec: &ConnectSpec) -> Result<Fd, Errno> {
        if spec.options.arrival_stamps {
            self.arrivals.keep_stamps_on();
        }
        socket::connect(spec).map(|fd| self.opened(fd))
    }

    fn error(&mut self, fd: &Fd) -> Result<(), Errno> {
        socket::error(fd.as_fd())
    }

    fn local_addr(&self, fd: &Fd) -> Option<SocketAddr> {
        socket::local_addr(fd)
    }

    fn peer_addr(&self, fd: &Fd) -> Option<SocketAddr> {
        socket::peer_addr(fd)
    }

    fn register(&mut self, fd: &Fd, token: Token, interest: Interest) -> Result<(), Errno> {
        add(self.set.as_fd(), &fd.fd, token, flags(interest))
    }

    fn reregister(&mut self, fd: &Fd, token: Token, interest: Interest) -> Result<(), Errno> {
        epoll::modify(&self.set, fd, epoll::EventData::new_u64(token.bits()), flags(interest))
            .map_err(Errno::from)
    }

    fn recv(&mut self, fd: &Fd, buffer: &mut [u8]) -> Result<usize, Errno> {
        socket::recv(fd.as_fd(), buffer)
    }

    fn recv_stamped(
        &mut self,
        fd: &Fd,
        buffer: &mut [u8],
    ) -> Result<(usize, Option<Instant>), Errno> {
        let (received, stamp) = arrival::recv(fd.as_fd(), buffer)?;
        Ok((received, stamp.and_then(|stamp| self.arrivals.moment_of(stamp))))
    }

    fn handshake_rtt(&self, fd: &Fd) -> Option<Duration> {
        arrival::handshake_rtt(fd.as_fd())
    }

    fn unacknowledged_bytes(&self, fd: &Fd) -> Option<u64> {
        socket::unacknowledged_bytes(fd.as_fd())
    }

    fn send(&mut self, fd: &Fd, bytes: &[u8]) -> Result<usize, Errno> {
        socket::send(fd.as_fd(), bytes)
    }

    fn finish(&mut self, fd: &Fd) -> Result<(), Errno> {
        socket::finish(fd.as_fd())
    }

    fn close(&mut self, fd: Fd, how: SocketClose) {
        self.open -= 1;
        socket::close(fd.fd, how);
    }
}

impl<M> Listeners for EpollDriver<M> {
    fn listen(&mut self, spec: &ListenSpec) -> Result<Fd, Errno> {
        socket::listen(spec).map(|fd| self.opened(fd))
    }

    fn watch(&mut self, listener: &Fd, number: u32) -> Result<(), Errno> {
        // Exclusive, so that a connection wakes only one of the cores that watch the listener.
        let flags = epoll::EventFlags::IN | epoll::EventFlags::EXCLUSIVE;
        add(self.set.as_fd(), &listener.fd, Token::listener(number), flags)
    }

    fn unwatch(&mut self, listener: &Fd) -> Result<(), Errno> {
        epoll::delete(&self.set, listener).map_err(Errno::from)
    }

    fn accept(&mut self, listener: &Fd) -> Result<Fd, Errno> {
        socket::accept(listener.as_fd()).map(|fd| self.opened(fd))
    }

    fn hand_off(&mut self, fd: Fd, to: CoreId) {
        // From now on `handoff` counts the socket.
        self.open -= 1;
        self.handoff.enqueue(fd.fd, to);
    }

    fn take_passed(&mut self) -> Option<Fd> {
        if let Some(fd) = self.handoff.pop() {
            return Some(self.opened(fd));
        }
        // Sockets in transit may use the reserve. A core without room passes them on, and takes no
        // more before these have left.
        let taken = self.open + self.handoff.fds_held();
        let CoreSetState { slots, fds_max, .. } = &*self.link.shared;
        let room = fds_max.map_or(usize::MAX, |max| (max + BATCH).saturating_sub(taken));
        self.handoff.receive(&slots[self.link.core()], room);
        self.handoff.pop().map(|fd| self.opened(fd))
    }

    fn share(&mut self, listener: &Fd, to: CoreId) -> Result<(), Errno> {
        handoff::share(listener.as_fd(), &self.link.shared.slots[to].channel)
    }

    fn take_shared(&mut self) -> Option<Fd> {
        self.handoff.pop_listener().map(|fd| self.opened(fd))
    }

    fn pass_failures(&self) -> u64 {
        self.handoff.failures
    }

    fn fd_room(&self) -> Option<usize> {
        let max = self.link.shared.fds_max?;
        Some(max.saturating_sub(self.open + self.handoff.fds_held()))
    }
}

impl<M> Driver for EpollDriver<M> {
    type Message = M;
    type Link = ThreadLink<M>;

    fn link(&self) -> &ThreadLink<M> {
        &self.link
    }
}

/// Time until the next attempt to pass sockets that another core's full channel did not take.
const FLUSH_AGAIN: Duration = Duration::from_millis(1);
/// Most events that a wait returns.
const BATCH_MAX: usize = 256;

fn add(
    set: BorrowedFd<'_>,
    fd: impl AsFd,
    token: Token,
    flags: epoll::EventFlags,
) -> Result<(), Errno> {
    epoll::add(set, fd, epoll::EventData::new_u64(token.bits()), flags).map_err(Errno::from)
}

const fn flags(interest: Interest) -> epoll::EventFlags {
    let read = epoll::EventFlags::IN.union(epoll::EventFlags::RDHUP).union(epoll::EventFlags::ET);
    match interest {
        Interest::Read => read,
        Interest::ReadWrite => read.union(epoll::EventFlags::OUT),
    }
}

const fn ready(bits: u32) -> Ready {
    const fn has(bits: u32, mask: i32) -> bool {
        bits & mask as u32 != 0
    }
    Ready {
        readable: has(bits, libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP),
        writable: has(bits, libc::EPOLLOUT),
        finished: has(bits, libc::EPOLLRDHUP | libc::EPOLLHUP),
        error: has(bits, libc::EPOLLERR | libc::EPOLLHUP),
    }
}
