//! A driver for tests of the acceptor: its accept queue is a list of results, and it writes down
//! what the acceptor does.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;

use throng_base::Instant;
use throng_driver::{
    ConnectSpec, CoreId, CoreLink, Driver, Errno, Interest, IoEvent, ListenSpec, Listeners,
    MailboxFull, MessagePriority, Permits, SocketClose, Sockets, Token,
};

use crate::core_message::{CoreMessage, CoreMessageKind, RegistryMessage};

/// Sockets are numbers; the listener is [`LISTENER`].
pub(super) struct FakeDriver {
    pub(super) core: CoreId,
    pub(super) cores: usize,
    pub(super) fd_room: Option<usize>,
    pub(super) permits: Permits,
    /// Results of the next accepts; then the queue is empty.
    pub(super) accepts: VecDeque<Result<u32, Errno>>,
    pub(super) is_watched: bool,
    /// Error of the next watch.
    pub(super) watch_error: Option<Errno>,
    pub(super) closed: Vec<(u32, SocketClose)>,
    pub(super) woken: RefCell<Vec<CoreId>>,
    pub(super) to_registry: RefCell<Vec<RegistryMessage>>,
    pub(super) placements: RefCell<Vec<(CoreId, CoreId)>>,
    pub(super) pass_failures: u64,
}

pub(super) const LISTENER: u32 = 1_000;

impl FakeDriver {
    pub(super) fn new(permits: usize) -> Self {
        Self {
            core: 0,
            cores: 1,
            fd_room: None,
            permits: Permits::new(permits),
            accepts: VecDeque::new(),
            is_watched: false,
            watch_error: None,
            closed: Vec::new(),
            woken: RefCell::default(),
            to_registry: RefCell::default(),
            placements: RefCell::default(),
            pass_failures: 0,
        }
    }
}

impl Sockets for FakeDriver {
    type Fd = u32;

    fn now(&self) -> Instant {
        unreachable!()
    }

    fn wait(&mut self, _: Instant, _: &mut Vec<IoEvent>) {
        unreachable!()
    }

    fn connect(&mut self, _: &ConnectSpec) -> Result<u32, Errno> {
        unreachable!()
    }

    fn error(&mut self, _: &u32) -> Result<(), Errno> {
        unreachable!()
    }

    fn local_addr(&self, _: &u32) -> Option<SocketAddr> {
        None
    }

    fn peer_addr(&self, _: &u32) -> Option<SocketAddr> {
        unreachable!()
    }

    fn register(&mut self, _: &u32, _: Token, _: Interest) -> Result<(), Errno> {
        unreachable!()
    }

    fn reregister(&mut self, _: &u32, _: Token, _: Interest) -> Result<(), Errno> {
        unreachable!()
    }

    fn recv(&mut self, _: &u32, _: &mut [u8]) -> Result<usize, Errno> {
        unreachable!()
    }

    fn send(&mut self, _: &u32, _: &[u8]) -> Result<usize, Errno> {
        unreachable!()
    }

    fn finish(&mut self, _: &u32) -> Result<(), Errno> {
        unreachable!()
    }

    fn close(&mut self, fd: u32, how: SocketClose) {
        self.closed.push((fd, how));
    }
}

impl Listeners for FakeDriver {
    fn listen(&mut self, _: &ListenSpec) -> Result<u32, Errno> {
        Ok(LISTENER)
    }

    fn watch(&mut self, _: &u32, _: u32) -> Result<(), Errno> {
        assert!(!self.is_watched, "watched twice");
        if let Some(errno) = self.watch_error.take() {
            return Err(errno);
        }
        self.is_watched = true;
        Ok(())
    }

    fn unwatch(&mut self, _: &u32) -> Result<(), Errno> {
        assert!(self.is_watched, "not watched");
        self.is_watched = false;
        Ok(())
    }

    fn accept(&mut self, _: &u32) -> Result<u32, Errno> {
        self.accepts.pop_front().unwrap_or(Err(Errno::AGAIN))
    }

    fn hand_off(&mut self, _: u32, _: CoreId) {
        unreachable!("the core hands off")
    }

    fn take_passed(&mut self) -> Option<u32> {
        unreachable!()
    }

    fn share(&mut self, _: &u32, _: CoreId) -> Result<(), Errno> {
        Ok(())
    }

    fn take_shared(&mut self) -> Option<u32> {
        unreachable!()
    }

    fn pass_failures(&self) -> u64 {
        self.pass_failures
    }

    fn fd_room(&self) -> Option<usize> {
        self.fd_room
    }
}

impl Driver for FakeDriver {
    type Message = CoreMessage<()>;
    type Link = Self;

    fn link(&self) -> &Self {
        self
    }
}

impl CoreLink for FakeDriver {
    type Message = CoreMessage<()>;

    fn core(&self) -> CoreId {
        self.core
    }

    fn cores(&self) -> usize {
        self.cores
    }

    fn send_message(
        &self,
        to: CoreId,
        CoreMessage(kind): CoreMessage<()>,
        priority: MessagePriority,
    ) -> Result<(), MailboxFull<CoreMessage<()>>> {
        assert_eq!(priority, MessagePriority::Control);
        match kind {
            CoreMessageKind::Registry(message) => self.to_registry.borrow_mut().push(message),
            CoreMessageKind::Placement(place) => self.placements.borrow_mut().push((to, place)),
            _ => unreachable!("an acceptor sends no other messages"),
        }
        Ok(())
    }

    fn receive_messages(&self, _: &mut Vec<CoreMessage<()>>) -> bool {
        unreachable!()
    }

    fn messages_waiting(&self) -> usize {
        0
    }

    fn wake(&self, core: CoreId) {
        self.woken.borrow_mut().push(core);
    }

    fn permits(&self) -> &Permits {
        &self.permits
    }
}
