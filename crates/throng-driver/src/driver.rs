//! The interface between an event loop and the kernel.

use std::net::SocketAddr;
use std::time::Duration;

use throng_base::{Instant, Key};

use crate::{Errno, Permits};

/// Number of a core, from 0.
pub type CoreId = usize;

/// One core's interface to the kernel and to the other cores: what an event loop needs.
///
/// A driver has [`Sockets`] and a [`CoreLink`], and [`Listeners`] if it can listen. An app asks for
/// what it uses, so a server does not compile on a driver of clients alone.
pub trait Driver: Sockets {
    /// Message between cores.
    type Message;
    /// Link to the other cores.
    type Link: CoreLink<Message = Self::Message>;

    /// Returns the link to the other cores.
    fn link(&self) -> &Self::Link;
}

/// Connections of one core, its clock, and the wait for events.
///
/// Sockets never block. Connections are edge-triggered: the driver reports readiness once, and a
/// caller that stops before [`Errno::AGAIN`] must continue without a further event.
pub trait Sockets {
    /// Socket or listener. It belongs to the core whose fd table contains it.
    type Fd;

    /// Returns the time.
    fn now(&self) -> Instant;
    /// Waits for events until `deadline` at the latest, and appends a bounded batch of them to
    /// `events`. Returns at once for a deadline in the past, such as [`Instant::ZERO`]; waits
    /// without limit for [`Instant::FAR`].
    fn wait(&mut self, deadline: Instant, events: &mut Vec<IoEvent>);

    /// Begins to connect. The socket becomes writable without an error on success; on failure
    /// [`Self::error`] returns the error.
    fn connect(&mut self, spec: &ConnectSpec) -> Result<Self::Fd, Errno>;
    /// Takes the pending error of the socket, if there is one.
    fn error(&mut self, fd: &Self::Fd) -> Result<(), Errno>;
    /// Returns the local address.
    fn local_addr(&self, fd: &Self::Fd) -> Option<SocketAddr>;
    /// Returns the peer's address.
    fn peer_addr(&self, fd: &Self::Fd) -> Option<SocketAddr>;

    /// Starts to report the readiness of `fd` under `token`.
    fn register(&mut self, fd: &Self::Fd, token: Token, interest: Interest) -> Result<(), Errno>;
    /// Changes the interest of `fd`. Reports again what is already ready.
    fn reregister(&mut self, fd: &Self::Fd, token: Token, interest: Interest) -> Result<(), Errno>;
    /// Receives into `buffer`. Zero means that the peer has finished sending.
    fn recv(&mut self, fd: &Self::Fd, buffer: &mut [u8]) -> Result<usize, Errno>;
    /// Receives as [`Self::recv`] does, and also returns when the last of the bytes reached this
    /// kernel. That is `None` if the socket was opened without [`SocketOptions::arrival_stamps`],
    /// if the wall clock was set meanwhile, or if the driver gives no stamp.
    fn recv_stamped(
        &mut self,
        fd: &Self::Fd,
        buffer: &mut [u8],
    ) -> Result<(usize, Option<Instant>), Errno> {
        Ok((self.recv(fd, buffer)?, None))
    }
    /// Returns the round trip of the connect's handshake, measured by the kernel. Returns `None` if
    /// a segment was retransmitted, or the driver gives no value. Call it directly after the
    /// connect.
    fn handshake_rtt(&self, _fd: &Self::Fd) -> Option<Duration> {
        None
    }
    /// Returns how many sent bytes the kernel holds because the peer has not acknowledged them.
    /// `None` if the driver gives no value.
    fn unacknowledged_bytes(&self, _fd: &Self::Fd) -> Option<u64> {
        None
    }
    /// Sends as much of `bytes` as the socket takes, and returns how much that is.
    fn send(&mut self, fd: &Self::Fd, bytes: &[u8]) -> Result<usize, Errno>;
    /// Shuts down the sending direction.
    fn finish(&mut self, fd: &Self::Fd) -> Result<(), Errno>;
    /// Closes the socket.
    fn close(&mut self, fd: Self::Fd, how: SocketClose);
}

/// Listening sockets of one core, and sockets on their way to other cores: what a server needs.
///
/// Listeners are level-triggered: the driver reports one in each wait while connections wait there.
pub trait Listeners: Sockets {
    /// Opens a listening socket. The driver reports its connections after [`Self::watch`].
    fn listen(&mut self, spec: &ListenSpec) -> Result<Self::Fd, Errno>;
    /// Starts to report, under [`Token::listener`] `number`, that connections wait at `listener`.
    fn watch(&mut self, listener: &Self::Fd, number: u32) -> Result<(), Errno>;
    /// Stops to report. Connections wait in the kernel's queue.
    fn unwatch(&mut self, listener: &Self::Fd) -> Result<(), Errno>;
    /// Accepts one connection from the queue; [`Errno::AGAIN`] if the queue is empty.
    fn accept(&mut self, listener: &Self::Fd) -> Result<Self::Fd, Errno>;

    /// Hands a socket off to another core, which receives [`Token::PASSED`]. Sockets are batched
    /// until the next wait; [`Self::pass_failures`] counts those that cannot be passed then. The
    /// socket must not be registered here.
    fn hand_off(&mut self, fd: Self::Fd, to: CoreId);
    /// Takes the next socket that another core handed off to this one.
    fn take_passed(&mut self) -> Option<Self::Fd>;
    /// Gives another core a reference to `listener`; that core receives [`Token::PASSED`]. The
    /// kernel refuses connects only after every core has closed its reference.
    fn share(&mut self, listener: &Self::Fd, to: CoreId) -> Result<(), Errno>;
    /// Takes the next listener that another core shared with this one. Call it after
    /// [`Self::take_passed`] has returned `None`.
    fn take_shared(&mut self) -> Option<Self::Fd>;
    /// Returns how many sockets could not be passed since the start. They have been closed.
    fn pass_failures(&self) -> u64;
    /// Returns how many sockets this core can still open before its fd table is full. Returns
    /// `None` where all cores share one table, because other threads use that table too.
    fn fd_room(&self) -> Option<usize>;
}

/// Link of one core to the other cores of its set: mailboxes, wake-ups and permits. Cores that are
/// threads have a [`ThreadLink`](crate::ThreadLink), whatever their driver is.
pub trait CoreLink {
    /// Message between cores.
    type Message;

    /// Returns the number of this core.
    fn core(&self) -> CoreId;
    /// Returns the number of cores.
    fn cores(&self) -> usize;

    /// Puts `message` into the mailbox of the core `to`, and wakes that core.
    fn send_message(
        &self,
        to: CoreId,
        message: Self::Message,
        priority: MessagePriority,
    ) -> Result<(), MailboxFull<Self::Message>>;
    /// Appends a bounded batch of messages from this core's mailbox. Returns true if more are left.
    fn receive_messages(&self, into: &mut Vec<Self::Message>) -> bool;
    /// Returns how many messages wait in this core's mailbox.
    fn messages_waiting(&self) -> usize;
    /// Makes the wait of another core return with [`Token::WAKE`].
    fn wake(&self, core: CoreId);

    /// Returns the permits that all cores share: one for every connection.
    fn permits(&self) -> &Permits;
}

/// Source of an event: a connection, a listener, or the core itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token(u64);

impl Token {
    /// Another core woke this one; a message may wait.
    pub const WAKE: Self = Self::special(0);
    /// Another core handed off a socket, or shared a listener.
    pub const PASSED: Self = Self::special(1);

    /// Returns the token of the listener `number`.
    pub const fn listener(number: u32) -> Self {
        Self::special(number + LISTENERS)
    }

    /// Returns the token of the connection `key`.
    pub const fn connection(key: Key) -> Self {
        Self((key.generation() as u64) << 32 | key.index() as u64)
    }

    /// Returns the connection's key, if this is the token of a connection.
    pub const fn as_connection(self) -> Option<Key> {
        if self.0 as u32 == u32::MAX {
            None
        } else {
            Some(Key::new(self.0 as u32, (self.0 >> 32) as u32))
        }
    }

    /// Returns the listener's number, if this is the token of a listener.
    pub const fn as_listener(self) -> Option<u32> {
        if self.0 as u32 == u32::MAX {
            ((self.0 >> 32) as u32).checked_sub(LISTENERS)
        } else {
            None
        }
    }

    /// Returns the token as the number that the kernel stores.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the token of a number from [`Self::bits`].
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    const fn special(number: u32) -> Self {
        Self((number as u64) << 32 | u32::MAX as u64)
    }
}

/// Number of special tokens before those of the listeners.
const LISTENERS: u32 = 2;

/// Event: a socket became ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoEvent {
    /// Source of the event.
    pub token: Token,
    /// Operations for which the source is ready.
    pub ready: Ready,
}

/// Operations for which a socket is ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Bytes, or the end of the stream, can be received.
    pub readable: bool,
    /// Bytes can be sent, or a connect has succeeded or failed.
    pub writable: bool,
    /// The peer has finished sending, so a short read does not mean that nothing follows.
    pub finished: bool,
    /// The socket holds an error, or both directions are closed.
    pub error: bool,
}

/// Readiness that the driver reports for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Bytes to receive, and errors.
    Read,
    /// Bytes to receive, room to send, and errors.
    ReadWrite,
}

/// Way to close a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SocketClose {
    /// In order: the kernel delivers the bytes that were sent, then FIN.
    #[default]
    Finish,
    /// At once, by RST; leaves no TIME-WAIT.
    Reset,
}

/// A listening socket to open.
#[derive(Clone, Debug)]
pub struct ListenSpec {
    /// Address to listen at. The kernel chooses a port for port 0.
    pub addr: SocketAddr,
    /// Established connections that may wait until they are accepted. The kernel clamps it to
    /// [`Limit::SOMAXCONN`](throng_measure::Limit::SOMAXCONN).
    pub backlog: u32,
    /// Allow other sockets of this process to listen at the same address, each with its own queue.
    pub reuseport: bool,
    /// Options that the accepted connections inherit.
    pub options: SocketOptions,
}

/// A connection to open.
#[derive(Clone, Copy, Debug)]
pub struct ConnectSpec {
    /// Address of the server.
    pub target: SocketAddr,
    /// Local address.
    pub source: SourceAddress,
    /// Options of the socket.
    pub options: SocketOptions,
}

/// Local address and port of an outgoing connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceAddress {
    /// The kernel chooses both.
    #[default]
    Any,
    /// This address; the kernel chooses the port at the connect, so that connections to several
    /// targets share ports.
    IpOnly(std::net::IpAddr),
    /// This address and port. Do not mix it with [`Self::IpOnly`] in one run: they block each
    /// other.
    Explicit(SocketAddr),
}

/// Options of a socket. `None` keeps the kernel's default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// Send small segments at once (TCP_NODELAY).
    pub nodelay: bool,
    /// Send buffer in bytes (the kernel doubles it).
    pub sndbuf_bytes: Option<u32>,
    /// Receive buffer in bytes (the kernel doubles it).
    pub rcvbuf_bytes: Option<u32>,
    /// Let the kernel record when bytes arrive, for [`Sockets::recv_stamped`] (SO_TIMESTAMPING).
    /// Without support in the kernel, receives return no stamps.
    pub arrival_stamps: bool,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self { nodelay: true, sndbuf_bytes: None, rcvbuf_bytes: None, arrival_stamps: false }
    }
}

/// Priority of a message, which decides whether a full mailbox refuses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessagePriority {
    /// Never refused: messages that keep the state of the cores consistent.
    Control,
    /// Refused by a full mailbox: messages that can be dropped and counted.
    Bulk,
}

/// Error: the mailbox is full. It returns the message.
#[derive(Debug, PartialEq, Eq)]
pub struct MailboxFull<M>(pub M);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_what_it_was_made_from() {
        let key = Key::new(7, u32::MAX);
        assert_eq!(Token::connection(key).as_connection(), Some(key));
        assert_eq!(Token::connection(key).as_listener(), None);
        assert_eq!(Token::listener(3).as_listener(), Some(3));
        for token in [Token::WAKE, Token::PASSED, Token::listener(0)] {
            assert_eq!(token.as_connection(), None);
            assert_eq!(Token::from_bits(token.bits()), token);
        }
        assert_eq!(Token::PASSED.as_listener(), None);
    }
}
