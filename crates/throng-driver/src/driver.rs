//! What an event loop needs from the world below it.

use std::net::SocketAddr;
use std::time::Duration;

use throng_base::{Instant, Key};

use crate::{Errno, Permits};

/// The number of a core, from 0.
pub type CoreId = usize;

/// The world as one core sees it.
///
/// Sockets never block. They are edge-triggered: readiness is told once, and whoever stops before
/// [`Errno::AGAIN`] must come back by himself. Listeners are level-triggered.
pub trait Driver {
    /// A socket or listener; it belongs to the core whose fd table it is in.
    type Fd;
    /// What cores tell each other.
    type Mail;

    /// Which core this is.
    fn core(&self) -> CoreId;
    /// How many cores there are.
    fn cores(&self) -> usize;
    /// The time.
    fn now(&self) -> Instant;

    /// Waits for events until `deadline` at the latest and appends a bounded batch of them. A deadline that is
    /// over, or [`Instant::ZERO`], only looks; [`Instant::FAR`] waits for as long as it takes.
    fn wait(&mut self, deadline: Instant, events: &mut Vec<IoEvent>);

    /// Opens a listening socket. Its connects are told once it is watched.
    fn listen(&mut self, spec: &ListenSpec) -> Result<Self::Fd, Errno>;
    /// Starts telling, under [`Token::listener`] `number`, that `listener` has connects waiting.
    fn watch(&mut self, listener: &Self::Fd, number: u32) -> Result<(), Errno>;
    /// Stops telling. The connects wait in the kernel's queue.
    fn unwatch(&mut self, listener: &Self::Fd) -> Result<(), Errno>;
    /// Takes one connection from the queue, or says [`Errno::AGAIN`].
    fn accept(&mut self, listener: &Self::Fd) -> Result<Self::Fd, Errno>;

    /// Begins to connect. Success is told as writable without error; [`Self::error`] says what failed.
    fn connect(&mut self, spec: &ConnectSpec) -> Result<Self::Fd, Errno>;
    /// Takes the error that the socket holds, if any.
    fn error(&mut self, fd: &Self::Fd) -> Result<(), Errno>;
    /// The address of this end.
    fn local_addr(&self, fd: &Self::Fd) -> Option<SocketAddr>;
    /// The address of the other end.
    fn peer_addr(&self, fd: &Self::Fd) -> Option<SocketAddr>;

    /// Starts telling readiness of `fd` under `token`.
    fn register(&mut self, fd: &Self::Fd, token: Token, interest: Interest) -> Result<(), Errno>;
    /// Changes what is told; what is ready already is told again.
    fn reregister(&mut self, fd: &Self::Fd, token: Token, interest: Interest) -> Result<(), Errno>;
    /// Receives into `buffer`; zero means that the other end has finished.
    fn recv(&mut self, fd: &Self::Fd, buffer: &mut [u8]) -> Result<usize, Errno>;
    /// Receives as [`Self::recv`] does, and returns beside the count when the last of the bytes reached
    /// this kernel. None where the kernel does not say: the socket was opened without
    /// [`SocketOptions::arrival_stamps`], or the wall clock was set meanwhile.
    fn recv_stamped(
        &mut self,
        fd: &Self::Fd,
        buffer: &mut [u8],
    ) -> Result<(usize, Option<Instant>), Errno>;
    /// Returns the round trip of the connect's handshake as the kernel measured it. None when a segment
    /// was sent again, or the kernel does not say. To be asked right after the connect.
    fn handshake_rtt(&self, fd: &Self::Fd) -> Option<Duration>;
    /// Hands over as much of `bytes` as the socket takes.
    fn send(&mut self, fd: &Self::Fd, bytes: &[u8]) -> Result<usize, Errno>;
    /// Tells the other end that nothing more will be sent.
    fn finish(&mut self, fd: &Self::Fd) -> Result<(), Errno>;
    /// Ends the socket.
    fn close(&mut self, fd: Self::Fd, how: SocketClose);

    /// Hands a socket over to another core, which is told by [`Token::PASSED`]. Batches until
    /// the next wait; what cannot be passed on then is counted in [`Self::pass_failures`]. The socket must not be
    /// registered here.
    fn pass(&mut self, fd: Self::Fd, to: CoreId);
    /// Takes the next socket that another core handed over.
    fn take_passed(&mut self) -> Option<Self::Fd>;
    /// Gives another core a reference to `listener`, which that core is told of by [`Token::PASSED`]. Connects are
    /// refused only once every core that has one has closed it.
    fn share(&mut self, listener: &Self::Fd, to: CoreId) -> Result<(), Errno>;
    /// Takes the next listener that another core shared with this one; to be asked after [`Self::take_passed`] has
    /// no more.
    fn take_shared(&mut self) -> Option<Self::Fd>;
    /// Sockets that were to be passed on and could not be; they have been closed. Counted since the start.
    fn pass_failures(&self) -> u64;
    /// How many sockets this core can still open before its fd table is full; none where all cores share one table, since
    /// nobody knows who else takes fds of it.
    fn fd_room(&self) -> Option<usize>;

    /// Puts `mail` into another core's mailbox and wakes it.
    fn send_message(
        &mut self,
        to: CoreId,
        mail: Self::Mail,
        kind: MessagePriority,
    ) -> Result<(), MailboxFull<Self::Mail>>;
    /// Appends a bounded batch of what other cores have posted; true when more is left.
    fn receive_messages(&mut self, into: &mut Vec<Self::Mail>) -> bool;
    /// How many messages wait in this core's mailbox.
    fn messages_waiting(&self) -> usize;
    /// Makes another core's wait return with [`Token::WAKE`].
    fn wake(&mut self, core: CoreId);

    /// The permits that all cores share: one for every connection.
    fn permits(&self) -> &Permits;
}

/// Whose readiness an event tells: a connection's, a listener's, or one of the core's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token(u64);

impl Token {
    /// Another core woke this one, perhaps with mail.
    pub const WAKE: Self = Self::special(0);
    /// Another core handed a socket over.
    pub const PASSED: Self = Self::special(1);

    /// The listener with this number.
    pub const fn listener(number: u32) -> Self {
        Self::special(number + LISTENERS)
    }

    /// The connection with this key.
    pub const fn connection(key: Key) -> Self {
        Self((key.generation() as u64) << 32 | key.index() as u64)
    }

    /// The key of the connection that is meant, if one is.
    pub const fn as_connection(self) -> Option<Key> {
        if self.0 as u32 == u32::MAX {
            None
        } else {
            Some(Key::new(self.0 as u32, (self.0 >> 32) as u32))
        }
    }

    /// The number of the listener that is meant, if one is.
    pub const fn as_listener(self) -> Option<u32> {
        if self.0 as u32 == u32::MAX {
            ((self.0 >> 32) as u32).checked_sub(LISTENERS)
        } else {
            None
        }
    }

    /// The token as the kernel carries it.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The token that [`Self::bits`] came from.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    const fn special(number: u32) -> Self {
        Self((number as u64) << 32 | u32::MAX as u64)
    }
}

const LISTENERS: u32 = 2;

/// Something became ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoEvent {
    /// What.
    pub token: Token,
    /// For what.
    pub ready: Ready,
}

/// What a socket is ready for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Bytes, or the end, can be received.
    pub readable: bool,
    /// Bytes can be sent; a connect has been decided.
    pub writable: bool,
    /// The other end has finished sending, so that a short read does not mean that nothing follows.
    pub finished: bool,
    /// The socket holds an error, or both directions are closed.
    pub error: bool,
}

/// What a connection wants to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Bytes to receive, and errors.
    Read,
    /// The same, and room to send.
    ReadWrite,
}

/// How a socket ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SocketClose {
    /// In order: what was sent is delivered, then FIN.
    #[default]
    Finish,
    /// At once: RST; leaves no TIME-WAIT behind.
    Reset,
}

/// A listening socket to open.
#[derive(Clone, Debug)]
pub struct ListenSpec {
    /// Where. Port 0 lets the kernel choose.
    pub addr: SocketAddr,
    /// Established connections that may wait to be accepted; the kernel clamps it to `net.core.somaxconn`.
    pub backlog: u32,
    /// Whether other sockets of this process listen on the same address, each with a queue of its own.
    pub reuseport: bool,
    /// What the accepted connections inherit.
    pub options: SocketOptions,
}

/// A connection to open.
#[derive(Clone, Copy, Debug)]
pub struct ConnectSpec {
    /// To where.
    pub target: SocketAddr,
    /// From where.
    pub source: SourceAddress,
    /// Options of the socket.
    pub options: SocketOptions,
}

/// From which address and port a connection leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceAddress {
    /// The kernel chooses both.
    #[default]
    Any,
    /// This address; the kernel chooses the port at connect, so that ports are shared between targets.
    IpOnly(std::net::IpAddr),
    /// This address and port. Never together with [`Self::Late`] in one run: they block each other.
    Explicit(SocketAddr),
}

/// Options of a socket; what is `None` stays as the kernel has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// Send small segments at once (TCP_NODELAY).
    pub nodelay: bool,
    /// Send buffer in bytes (the kernel doubles it).
    pub sndbuf_bytes: Option<u32>,
    /// Receive buffer in bytes (the kernel doubles it).
    pub rcvbuf_bytes: Option<u32>,
    /// Have the kernel note when bytes arrive, for [`Driver::recv_stamped`] (SO_TIMESTAMPING). Where it
    /// cannot, receives bring no stamps.
    pub arrival_stamps: bool,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self { nodelay: true, sndbuf_bytes: None, rcvbuf_bytes: None, arrival_stamps: false }
    }
}

/// Whether a message may be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessagePriority {
    /// Never refused: what keeps the system's state right.
    Control,
    /// Refused by a full mailbox: what can be dropped and counted.
    Bulk,
}

/// The mailbox was full; here is the message again.
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
