//! What sits on the engine.

use throng_base::Instant;
use throng_driver::{Driver, Errno};
use throng_proto::Session;

use crate::{Conn, CoreContext};

/// A state machine over connections: a server, or a generator.
///
/// Callbacks never nest. What one asks for (send, close, connect, a deadline, something for another
/// connection) is done after it has returned. A callback about a connection that panics ends that connection, nothing
/// else; one about the core ends the core, so what is not the app's own code runs in [`Desk::shield`] there.
pub trait App<D: Driver>: Sized {
    /// The protocol of every connection.
    type Session: Session;
    /// What the app keeps for a connection or user. Small: there are millions.
    type State;

    /// Whether to receive while the other end does not take what is to be sent. A server does not, so that a peer
    /// that never reads cannot make it queue answers without end; a client does, so that two
    /// ends never wait for each other.
    const READS_WHILE_BLOCKED: bool = false;

    /// What the sessions of this core share while they read.
    fn scratch(&self) -> <Self::Session as Session>::Scratch {
        Default::default()
    }

    /// The core begins.
    fn started(&mut self, _desk: &mut CoreContext<D, Self>) {}

    /// Listener `number` has connects waiting. Told again every turn until they are accepted or it is unwatched.
    fn acceptable(&mut self, _desk: &mut CoreContext<D, Self>, _number: u32) {}

    /// Other cores have handed sockets over; [`Driver::take_passed`] yields them.
    fn passed(&mut self, _desk: &mut CoreContext<D, Self>) {}

    /// Another core woke this one; perhaps a permit has come back.
    fn woken(&mut self, _desk: &mut CoreContext<D, Self>) {}

    /// A message from another core or from the control thread.
    fn message(&mut self, _desk: &mut CoreContext<D, Self>, _mail: D::Mail) {}

    /// When [`Self::run_due`] is wanted: the app's own timers, exact.
    fn due(&self) -> Instant {
        Instant::FAR
    }

    /// The moment of [`Self::due`] has come.
    fn run_due(&mut self, _desk: &mut CoreContext<D, Self>) {}

    /// The last thing of every turn.
    fn turn_ended(&mut self, _desk: &mut CoreContext<D, Self>) {}

    /// The connection is established.
    fn opened(&mut self, conn: &mut Conn<'_, D, Self>);

    /// The protocol has something to say.
    fn event(&mut self, conn: &mut Conn<'_, D, Self>, event: <Self::Session as Session>::Event<'_>);

    /// The other end has finished sending. Closes unless overridden.
    fn finished(&mut self, conn: &mut Conn<'_, D, Self>) {
        conn.close_because(CloseReason::Finished);
    }

    /// What had been queued for a slow peer has been taken by the kernel.
    fn drained(&mut self, _conn: &mut Conn<'_, D, Self>) {}

    /// The deadline that [`Conn::set_deadline`] set has come. It is not set any more.
    fn deadline(&mut self, _conn: &mut Conn<'_, D, Self>) {}

    /// [`Desk::nudge`] named this connection.
    fn notified(&mut self, _conn: &mut Conn<'_, D, Self>) {}

    /// The socket is gone, or could not be opened. Says whether the entry stays in the
    /// table: a user stays, to connect again; a server's connection goes.
    fn closed(&mut self, conn: &mut Conn<'_, D, Self>, reason: CloseReason) -> AfterClose;
}

/// What becomes of an entry whose socket has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterClose {
    /// It leaves the table.
    Free,
    /// It stays, without a socket.
    Keep,
}

/// Why a socket is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// This end asked for it.
    Requested,
    /// The other end finished sending and this end followed.
    Finished,
    /// It could not be opened.
    ConnectFailed(Errno),
    /// Receiving or sending failed.
    Failed(Errno),
    /// The other end did not take what was queued for it: more than `pending_bytes_max`, or not within
    /// `drain_timeout` of the close.
    Overflow,
    /// A callback panicked.
    Panicked,
}
