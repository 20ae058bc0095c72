//! The driver of one simulated core.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use throng_base::{Instant, Key};
use throng_driver::{
    ConnectSpec, CoreId, Driver, Errno, Interest, IoEvent, ListenSpec, Listeners, SocketClose,
    Sockets, Token,
};

use crate::cores::SimLink;
use crate::socket::Socket;
use crate::trace::Note;
use crate::world::{Action, State, World};

/// Driver of one core of a simulated world. Its cores send messages of type `M`.
pub struct SimDriver<M> {
    link: SimLink<M>,
    /// Number of this core among all cores of the world.
    slot: usize,
    world: World,
}

/// Socket of a simulated world. A drop closes it in order, and is counted: see
/// [`Sim::dropped_sockets`](crate::Sim::dropped_sockets).
pub struct SimFd {
    socket: Key,
    table: usize,
    world: World,
}

impl<M> SimDriver<M> {
    pub(crate) fn new(link: SimLink<M>) -> Self {
        let (slot, world) = (link.slot(), Rc::clone(&link.world));
        Self { link, slot, world }
    }

    fn fd(&self, socket: Key, table: usize) -> SimFd {
        SimFd { socket, table, world: Rc::clone(&self.world) }
    }

    /// Opens an fd in this core's table, if there is room, for the socket that `open` returns.
    fn open(&self, open: impl FnOnce(&mut State) -> Result<Key, Errno>) -> Result<SimFd, Errno> {
        let world = &mut *self.world.borrow_mut();
        let table = world.slots[self.slot].table;
        if world.tables[table].open >= world.tables[table].max {
            return Err(Errno::TABLE_FULL);
        }
        if world.files >= world.faults.files_max {
            return Err(Errno::SYSTEM_FULL);
        }
        let socket = open(world)?;
        world.tables[table].open += 1;
        world.files += 1;
        Ok(self.fd(socket, table))
    }

    /// Adds a socket from another core to this core's table. The reserve of fds has room for it.
    fn install(&self, socket: Key) -> SimFd {
        let world = &mut *self.world.borrow_mut();
        let table = world.slots[self.slot].table;
        world.tables[table].open += 1;
        world.files += 1;
        self.fd(socket, table)
    }
}

impl<M> Sockets for SimDriver<M> {
    type Fd = SimFd;

    fn now(&self) -> Instant {
        self.world.borrow().now
    }

    /// Collects events without waiting: the scheduler runs a core's turn when there are events for
    /// it.
    fn wait(&mut self, _deadline: Instant, events: &mut Vec<IoEvent>) {
        self.world.borrow_mut().wait(self.slot, events);
    }

    fn connect(&mut self, spec: &ConnectSpec) -> Result<SimFd, Errno> {
        self.open(|world| world.connect(spec))
    }

    fn error(&mut self, fd: &SimFd) -> Result<(), Errno> {
        let mut world = self.world.borrow_mut();
        let stream = world.stream_mut(fd.socket).ok_or(Errno::BAD_FD)?;
        stream.error.take().map_or(Ok(()), Err)
    }

    fn local_addr(&self, fd: &SimFd) -> Option<SocketAddr> {
        match self.world.borrow().sockets.get(fd.socket)? {
            Socket::Listener(listener) => Some(listener.addr),
            Socket::Stream(stream) => Some(stream.local),
        }
    }

    fn peer_addr(&self, fd: &SimFd) -> Option<SocketAddr> {
        self.world.borrow().stream(fd.socket).map(|stream| stream.remote)
    }

    fn register(&mut self, fd: &SimFd, token: Token, interest: Interest) -> Result<(), Errno> {
        let world = &mut *self.world.borrow_mut();
        let stream = world.stream_mut(fd.socket).ok_or(Errno::BAD_FD)?;
        assert_eq!(stream.slot, None, "a socket is registered once");
        stream.slot = Some(self.slot);
        world.watch(self.slot, fd.socket, token, interest, false);
        Ok(())
    }

    fn reregister(&mut self, fd: &SimFd, token: Token, interest: Interest) -> Result<(), Errno> {
        let world = &mut *self.world.borrow_mut();
        let stream = world.stream(fd.socket).ok_or(Errno::BAD_FD)?;
        assert_eq!(stream.slot, Some(self.slot), "only a registered socket can be changed");
        world.watch(self.slot, fd.socket, token, interest, false);
        Ok(())
    }

    fn recv(&mut self, fd: &SimFd, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.world.borrow_mut().recv(fd.socket, buffer).map(|(received, _)| received)
    }

    fn recv_stamped(
        &mut self,
        fd: &SimFd,
        buffer: &mut [u8],
    ) -> Result<(usize, Option<Instant>), Errno> {
        let world = &mut *self.world.borrow_mut();
        let (received, arrived) = world.recv(fd.socket, buffer)?;
        let is_stamped = world.stream(fd.socket).is_some_and(|stream| stream.is_stamped);
        let is_lost = is_stamped && world.happens(world.faults.no_stamp);
        Ok((received, (is_stamped && !is_lost && received > 0).then_some(arrived)))
    }

    fn handshake_rtt(&self, fd: &SimFd) -> Option<Duration> {
        self.world.borrow().stream(fd.socket).and_then(|stream| stream.handshake_rtt)
    }

    fn send(&mut self, fd: &SimFd, bytes: &[u8]) -> Result<usize, Errno> {
        self.world.borrow_mut().send(fd.socket, bytes)
    }

    fn finish(&mut self, fd: &SimFd) -> Result<(), Errno> {
        self.world.borrow_mut().finish(fd.socket)
    }

    fn close(&mut self, mut fd: SimFd, how: SocketClose) {
        fd.close(how);
    }
}

impl<M> Listeners for SimDriver<M> {
    fn listen(&mut self, spec: &ListenSpec) -> Result<SimFd, Errno> {
        self.open(|world| world.listen(spec))
    }

    fn watch(&mut self, listener: &SimFd, number: u32) -> Result<(), Errno> {
        let world = &mut *self.world.borrow_mut();
        if world.slots[self.slot].is_watching(listener.socket) {
            return Err(Errno(17)); // EEXIST
        }
        let token = Token::listener(number);
        world.watch(self.slot, listener.socket, token, Interest::Read, true);
        Ok(())
    }

    fn unwatch(&mut self, listener: &SimFd) -> Result<(), Errno> {
        let watched = self.world.borrow_mut().slots[self.slot].unwatch(listener.socket);
        if watched { Ok(()) } else { Err(Errno(2)) } // ENOENT
    }

    fn accept(&mut self, listener: &SimFd) -> Result<SimFd, Errno> {
        let fd = self.open(|world| world.accept(listener.socket))?;
        self.world.borrow_mut().note(Note::Accept { slot: self.slot, socket: fd.socket });
        Ok(fd)
    }

    fn hand_off(&mut self, mut fd: SimFd, to: CoreId) {
        let to = self.link.process.slots[to];
        let (socket, world) = fd.release();
        let world = &mut *world.borrow_mut();
        if let Some(stream) = world.stream(socket) {
            assert_eq!(stream.slot, None, "a passed socket must not be registered");
        }
        world.slots[self.slot].handoffs.push((socket, to));
    }

    fn take_passed(&mut self) -> Option<SimFd> {
        let socket = self.world.borrow_mut().slots[self.slot].passed.pop_front()?;
        Some(self.install(socket))
    }

    fn share(&mut self, listener: &SimFd, to: CoreId) -> Result<(), Errno> {
        let world = &mut *self.world.borrow_mut();
        world.listener(listener.socket).ok_or(Errno::INVALID)?.refs += 1;
        let (at, slot) = (world.message_arrival(), self.link.process.slots[to]);
        world.schedule(at, Action::Shared { slot, listener: listener.socket });
        Ok(())
    }

    fn take_shared(&mut self) -> Option<SimFd> {
        let socket = self.world.borrow_mut().slots[self.slot].shared.pop_front()?;
        Some(self.install(socket))
    }

    fn pass_failures(&self) -> u64 {
        self.world.borrow().slots[self.slot].pass_failures
    }

    fn fd_room(&self) -> Option<usize> {
        let world = self.world.borrow();
        let table = &world.tables[world.slots[self.slot].table];
        let usable = table.max.saturating_sub(self.link.process.fds_reserved);
        self.link.process.private_fds.then(|| usable.saturating_sub(table.open))
    }
}

impl<M> Driver for SimDriver<M> {
    type Message = M;
    type Link = SimLink<M>;

    fn link(&self) -> &SimLink<M> {
        &self.link
    }
}

impl SimFd {
    /// Removes the socket from its table. The drop then does nothing.
    fn release(&mut self) -> (Key, World) {
        let socket = std::mem::replace(&mut self.socket, NO_SOCKET);
        let mut world = self.world.borrow_mut();
        world.tables[self.table].open -= 1;
        world.files -= 1;
        (socket, Rc::clone(&self.world))
    }

    fn close(&mut self, how: SocketClose) {
        let (socket, world) = self.release();
        world.borrow_mut().close(socket, self.table, how);
    }
}

impl Drop for SimFd {
    fn drop(&mut self) {
        if self.socket != NO_SOCKET {
            self.world.borrow_mut().dropped += 1;
            self.close(SocketClose::Finish);
        }
    }
}

impl State {
    /// Closes the reference of the cores of `table`.
    fn close(&mut self, socket: Key, table: usize, how: SocketClose) {
        for slot in self.slots.iter_mut().filter(|slot| slot.table == table) {
            slot.unwatch(socket);
        }
        if let Some(listener) = self.listener(socket) {
            listener.refs -= 1;
            if listener.refs == 0 {
                self.close_listener(socket);
            }
        } else {
            self.close_stream(socket, how);
        }
    }

    /// Sends the sockets that this core passes to other cores.
    pub(crate) fn send_passed(&mut self, slot: usize) {
        for (socket, to) in std::mem::take(&mut self.slots[slot].handoffs) {
            if self.happens(self.faults.pass_loss) {
                self.slots[slot].pass_failures += 1;
                // The wait returns at once, so that the core can count the failure.
                self.schedule(self.now, Action::Wake { slot });
                self.note(Note::PassLost { socket });
                self.close(socket, self.slots[slot].table, SocketClose::Finish);
                continue;
            }
            self.note(Note::Passed { socket, to });
            let at = self.message_arrival();
            self.schedule(at, Action::Passed { slot: to, socket });
        }
    }
}

const NO_SOCKET: Key = Key::new(u32::MAX, u32::MAX);
