//! What a server does with its connections.

use std::fmt;

use throng_base::{Instant, Key};
use throng_driver::{CoreId, Errno};
use throng_proto::Session;
use throng_pubsub::{Dialect, Publication, Rulebook};
use throng_report::ServerCounters;

use crate::{Connection, HandlerContext};

/// The behaviour of a server. Every core has its own handler, so nothing here is shared and nothing locks.
///
/// A method must not block: it holds up every connection of its core. One that panics ends its connection, and
/// nothing else; so do [`Handler::Conn`] and [`Handler::Message`] when they panic as they are made or dropped.
///
/// With [`ServerOptions::private_fds`](crate::ServerOptions::private_fds) it must use no fd that was
/// opened outside its own methods.
pub trait Handler: Sized + 'static {
    /// The protocol of its connections; [`Raw`](throng_proto::Raw) for bytes as they come.
    type Session: Session + Default;
    /// What is kept for each connection, made anew for every one. Small: there are millions.
    type State: Default;
    /// What reaches a connection from elsewhere: from another connection, or from a
    /// [`ServerHandle`](crate::ServerHandle). `std::convert::Infallible` when nothing does.
    type Message: Send + 'static;

    /// What reports call it.
    const NAME: &'static str = "custom";

    /// The protocol of a connection that is about to be opened.
    fn session(&mut self, _now: Instant) -> Self::Session {
        Self::Session::default()
    }

    /// What the sessions of this core share: their limits, and buffers.
    fn scratch(&self) -> <Self::Session as Session>::Scratch {
        Default::default()
    }

    /// The rules of topics: what becomes of publications that somebody is too slow for. Asked once, as the core begins.
    fn topics(&self) -> Rulebook {
        Rulebook::default()
    }

    /// Appends the bytes that members who speak `dialect` get of `publication`: whole frames, as they go over the wire.
    /// Called at most once for each publication and dialect, on whichever core is the first to need it, unless it
    /// panics. Where nothing is appended, those members get nothing.
    fn render(&mut self, _publication: &Publication, _dialect: Dialect, _out: &mut Vec<u8>) {}

    /// A connection was accepted; or one without a socket, that [`Connection::spawn`] asked for, begins.
    fn open(&mut self, _conn: &mut Connection<'_, Self>) {}

    /// The protocol has something to say. Raw: bytes arrived, as many as one receive brought. TCP knows no messages: one
    /// may come in pieces, several may come at once.
    fn event(&mut self, conn: &mut Connection<'_, Self>, event: EventOf<'_, Self>);

    /// A message from elsewhere.
    fn message(&mut self, _conn: &mut Connection<'_, Self>, _message: Self::Message) {}

    /// Something was published to a topic that the connection intercepts
    /// ([`Subscription::intercepts`](throng_pubsub::Subscription)); `tag` is the subscription's. What it declines is
    /// delivered as to everyone else.
    fn delivery(
        &mut self,
        _conn: &mut Connection<'_, Self>,
        _publication: &Publication,
        _tag: u16,
    ) -> InterceptAction {
        InterceptAction::Handled
    }

    /// A message for a connection of this core that has ended. Drops it, unless overridden.
    fn undelivered(&mut self, _core: &mut HandlerContext<'_, Self>, _message: Self::Message) {}

    /// A message that a core has sent this one: see [`Corewide::mail`].
    fn core_message(&mut self, _core: &mut HandlerContext<'_, Self>, _message: Self::Message) {}

    /// The last thing of every turn: what its callbacks piled up can be told to other cores together.
    fn turn_ended(&mut self, _core: &mut HandlerContext<'_, Self>) {}

    /// The moment that [`Connection::set_timeout`] set has come. It is not set any more.
    fn timeout(&mut self, _conn: &mut Connection<'_, Self>) {}

    /// The kernel has taken everything that waited for a slow peer.
    fn drained(&mut self, _conn: &mut Connection<'_, Self>) {}

    /// Adds what this core's handler has counted itself.
    fn count(&self, _counters: &mut ServerCounters) {}

    /// The server is about to end ([`Server::drain`](crate::Server::drain)), and would like the connection to end by itself:
    /// a protocol that has a word for that says it now. Does nothing unless overridden.
    fn draining(&mut self, _conn: &mut Connection<'_, Self>) {}

    /// The connection has ended; sending is of no use any more.
    fn close(&mut self, _conn: &mut Connection<'_, Self>, _why: DisconnectReason) {}
}

/// What a handler makes of a publication that its connection intercepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterceptAction {
    /// The handler has done with it whatever there is to do. What it sent is the connection's own: no topic's policy
    /// applies to it, and too much of it for a slow reader ends the connection.
    Handled,
    /// It is to be delivered in the frame that [`Handler::render`] makes for the subscription's dialect, by its topic's
    /// policy. Not for a connection without a socket: nothing can be written to it.
    Declined,
}

/// What the protocol of a handler's connections says.
pub type EventOf<'a, H> = <<H as Handler>::Session as Session>::Event<'a>;

/// Why a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectReason {
    /// This end closed it: the handler, or the server's end.
    Local,
    /// The other end finished.
    PeerFinished,
    /// Nothing was heard for `idle_timeout`.
    Idle,
    /// Receiving or sending failed: ECONNRESET, mostly.
    Failed(Errno),
    /// The other end did not read, and more than `pending_bytes_max` waited for it, or for longer than
    /// `close_timeout` after the close.
    Overflow,
    /// The handler panicked.
    Panicked,
}

/// The name of one connection, good on every core and thread. What it names may have ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectionId {
    core: u32,
    key: Key,
}

impl ConnectionId {
    pub(crate) fn new(core: CoreId, key: Key) -> Self {
        Self { core: core as u32, key }
    }

    /// The core that the connection belongs to.
    pub const fn core(self) -> CoreId {
        self.core as CoreId
    }

    /// It as two numbers, for a token that leaves the process.
    pub const fn to_bits(self) -> (u32, u64) {
        (self.core, (self.key.generation() as u64) << 32 | self.key.index() as u64)
    }

    /// The name that [`Self::to_bits`] wrote. None when the server has no such core.
    pub fn from_bits(core: u32, key: u64, cores: usize) -> Option<Self> {
        let is_known = (core as usize) < cores;
        is_known.then_some(Self { core, key: Key::new(key as u32, (key >> 32) as u32) })
    }

    pub(crate) const fn key(self) -> Key {
        self.key
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:?}", self.core, self.key)
    }
}
