//! What a server does with its connections.

use std::fmt;

use throng_base::{Instant, Key};
use throng_driver::{CoreId, Errno};
use throng_proto::Session;

use crate::Connection;

/// The behaviour of a server. Every core has its own handler, so nothing here is shared and nothing locks.
///
/// A method must not block: it holds up every connection of its core. One that panics ends its connection, and
/// nothing else; so do [`Handler::Conn`] and [`Handler::Message`] when they panic as they are made or dropped.
pub trait Handler: Sized + 'static {
    /// The protocol of its connections; [`Raw`](throng_proto::Raw) for bytes as they come.
    type Session: Session + Default;
    /// What is kept for each connection, made anew for every one. Small: there are millions.
    type Conn: Default;
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

    /// A connection was accepted.
    fn open(&mut self, _conn: &mut Connection<'_, Self>) {}

    /// The protocol has something to say. Raw: bytes arrived, as many as one receive brought. TCP knows no messages: one
    /// may come in pieces, several may come at once.
    fn event(&mut self, conn: &mut Connection<'_, Self>, event: EventOf<'_, Self>);

    /// A message from elsewhere.
    fn message(&mut self, _conn: &mut Connection<'_, Self>, _message: Self::Message) {}

    /// The moment that [`Connection::set_timeout`] set has come. It is not set any more.
    fn timeout(&mut self, _conn: &mut Connection<'_, Self>) {}

    /// The kernel has taken everything that waited for a slow peer.
    fn drained(&mut self, _conn: &mut Connection<'_, Self>) {}

    /// The connection has ended; sending is of no use any more.
    fn close(&mut self, _conn: &mut Connection<'_, Self>, _why: Ended) {}
}

/// What the protocol of a handler's connections says.
pub type EventOf<'a, H> = <<H as Handler>::Session as Session>::Event<'a>;

/// Why a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// This end closed it: the handler, or the server's end.
    Asked,
    /// The other end finished.
    Finished,
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

    pub(crate) const fn key(self) -> Key {
        self.key
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:?}", self.core, self.key)
    }
}
