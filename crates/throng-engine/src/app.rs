//! The interface between the engine and its application.

use throng_base::Instant;
use throng_driver::Driver;
use throng_proto::Session;

use crate::{CloseReason, Conn, CoreContext};

/// State machine over connections: a server or a generator.
///
/// Callbacks never nest. The core carries out what a callback requests (send, close, connect, a
/// deadline, an effect on another connection) after the callback returns. A panic in a callback
/// about a connection ends that connection and nothing else. A panic in a callback about the core
/// ends the core, so these callbacks run foreign code inside [`CoreContext::catch_panic`].
pub trait App<D: Driver>: Sized {
    /// Protocol of every connection.
    type Session: Session;
    /// App's state of a connection or user. It should be small: there are millions.
    type State;

    /// Continue to receive while the peer does not take what is sent. A server does not, so that a
    /// peer that never reads cannot make it queue answers without end. A client does, so that two
    /// peers never wait for each other.
    const READS_WHILE_BLOCKED: bool = false;

    /// Returns the scratch memory that the sessions of this core share while they read.
    fn scratch(&self) -> <Self::Session as Session>::Scratch {
        Default::default()
    }

    /// Reports whether [`Conn::arrival`] must say when the next bytes of this connection arrived. A
    /// receive with its arrival costs more. The socket must have been opened with
    /// [`SocketOptions::arrival_stamps`](throng_driver::SocketOptions::arrival_stamps).
    fn wants_arrival(&self, _state: &Self::State) -> bool {
        false
    }

    /// Runs once, before the core's first turn.
    fn started(&mut self, _cx: &mut CoreContext<D, Self>) {}

    /// Runs when connections wait at listener `number`; again every turn until the app accepts them
    /// or unwatches the listener.
    fn acceptable(&mut self, _cx: &mut CoreContext<D, Self>, _number: u32) {}

    /// Runs when other cores have handed off sockets; their driver returns them
    /// ([`Listeners::take_passed`](throng_driver::Listeners::take_passed)).
    fn passed(&mut self, _cx: &mut CoreContext<D, Self>) {}

    /// Runs when another core woke this one; a permit may be free.
    fn woken(&mut self, _cx: &mut CoreContext<D, Self>) {}

    /// Receives a message from another core or from the control thread.
    fn message(&mut self, _cx: &mut CoreContext<D, Self>, _message: D::Message) {}

    /// Returns when [`Self::run_due`] is due. These are the app's own timers, and exact.
    fn due(&self) -> Instant {
        Instant::FAR
    }

    /// Runs at the moment that [`Self::due`] returns.
    fn run_due(&mut self, _cx: &mut CoreContext<D, Self>) {}

    /// Runs at the end of every turn.
    fn turn_ended(&mut self, _cx: &mut CoreContext<D, Self>) {}

    /// Runs when the socket has connected, and the handshake of its transport begins.
    fn opening(&mut self, _conn: &mut Conn<'_, D, Self>) {}

    /// Runs when the connection is established, and the handshake of its transport is over. Then
    /// [`Conn::arrival`] is that of the bytes that ended it.
    fn opened(&mut self, conn: &mut Conn<'_, D, Self>);

    /// Receives an event of the protocol.
    fn event(&mut self, conn: &mut Conn<'_, D, Self>, event: <Self::Session as Session>::Event<'_>);

    /// Runs when the peer has finished sending. Closes the connection by default.
    fn finished(&mut self, conn: &mut Conn<'_, D, Self>) {
        conn.close_because(CloseReason::Finished);
    }

    /// Runs when the kernel has taken all bytes that waited for a slow peer.
    fn drained(&mut self, _conn: &mut Conn<'_, D, Self>) {}

    /// Runs at the deadline that [`Conn::set_deadline`] set. Each deadline fires once.
    fn deadline(&mut self, _conn: &mut Conn<'_, D, Self>) {}

    /// Runs after [`CoreContext::notify`] named this connection.
    fn notified(&mut self, _conn: &mut Conn<'_, D, Self>) {}

    /// Runs when the socket is closed, or could not be opened: then, and if the handshake of its
    /// transport fails, it was never [`Self::opened`]. Decides whether the entry stays in
    /// the table: a user stays, to connect again; a server's connection does not.
    fn closed(&mut self, conn: &mut Conn<'_, D, Self>, reason: CloseReason) -> AfterClose;
}

/// Fate of an entry whose socket has closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterClose {
    /// The entry leaves the table.
    Free,
    /// The entry stays, without a socket.
    Keep,
}
