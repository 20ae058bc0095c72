//! The `Handler` trait: the application of a server.

use throng_base::Instant;
use throng_driver::Errno;
use throng_measure::ServerCounters;
use throng_proto::Session;
use throng_pubsub::{Dialect, Publication, Rulebook};

use crate::{Connection, HandlerContext};

/// The application of a server. Every core has its own handler: nothing is shared and nothing
/// locks.
///
/// A method must not block, because it would block every connection of its core. A panic in a
/// method ends its connection and nothing else; so does a panic when a [`Handler::State`] or a
/// [`Handler::Message`] is made or dropped.
///
/// With [`ServerOptions::private_fds`](crate::ServerOptions::private_fds) it must use no fd that
/// was opened outside its own methods.
pub trait Handler: Sized + 'static {
    /// The protocol of the connections; [`Raw`](throng_proto::Raw) for plain bytes.
    type Session: Session + Default;
    /// The state of a connection, made for each of them. Keep it small: there are millions.
    type State: Default;
    /// A message to a connection, from another connection or from a
    /// [`ServerHandle`](crate::ServerHandle). `std::convert::Infallible` if there are none.
    type Message: Send + 'static;

    /// The handler's name in reports.
    const NAME: &'static str = "custom";

    /// Makes the session of a connection that is about to open.
    fn session(&mut self, _now: Instant) -> Self::Session {
        Self::Session::default()
    }

    /// Makes what the sessions of this core share: their limits and buffers.
    fn scratch(&self) -> <Self::Session as Session>::Scratch {
        Default::default()
    }

    /// Returns the rules of topics: what happens to publications for slow readers. Called once,
    /// when the core starts.
    fn topics(&self) -> Rulebook {
        Rulebook::default()
    }

    /// Called once, before the core starts, if the server shares its topics with others. `node` is
    /// the number of this node. Does nothing by default.
    fn share_topics(&mut self, _node: u16) {}

    /// Appends the bytes of `publication` for the subscribers that speak `dialect`: whole frames,
    /// as they go over the wire. Unless it panics, it is called at most once for each publication
    /// and dialect, on the first core that needs the frame. If it appends nothing, those
    /// subscribers receive nothing.
    fn render(&mut self, _publication: &Publication, _dialect: Dialect, _out: &mut Vec<u8>) {}

    /// Called when a connection was accepted, or when one without a socket begins
    /// ([`Connection::spawn`]).
    fn open(&mut self, _conn: &mut Connection<'_, Self>) {}

    /// Called when the session has decoded an event. With [`Raw`](throng_proto::Raw), an event is
    /// the bytes of one receive. TCP has no messages: one may arrive in pieces, and several may
    /// arrive at once.
    fn event(&mut self, conn: &mut Connection<'_, Self>, event: EventOf<'_, Self>);

    /// Called when a message from another connection or from a
    /// [`ServerHandle`](crate::ServerHandle) has arrived.
    fn message(&mut self, _conn: &mut Connection<'_, Self>, _message: Self::Message) {}

    /// Called when a publication has arrived for a topic that the connection intercepts
    /// ([`Subscription::intercepts`](throng_pubsub::Subscription)); `tag` is the subscription's. A
    /// publication that the handler declines is delivered as a frame.
    fn delivery(
        &mut self,
        _conn: &mut Connection<'_, Self>,
        _publication: &Publication,
        _tag: u16,
    ) -> InterceptAction {
        InterceptAction::Handled
    }

    /// Called with a message for a connection of this core that has ended. Drops it by default.
    fn undelivered(&mut self, _core: &mut HandlerContext<'_, Self>, _message: Self::Message) {}

    /// Called with a message of another core's handler: see [`HandlerContext::send_to_core`].
    fn core_message(&mut self, _core: &mut HandlerContext<'_, Self>, _message: Self::Message) {}

    /// Called at the end of every turn. The handler can send other cores the collected changes of
    /// the turn here.
    fn turn_ended(&mut self, _core: &mut HandlerContext<'_, Self>) {}

    /// Called once the time set with [`Connection::set_timeout`] has passed. No timeout is set
    /// then.
    fn timeout(&mut self, _conn: &mut Connection<'_, Self>) {}

    /// Called when the kernel has taken all bytes that waited for a slow peer.
    fn drained(&mut self, _conn: &mut Connection<'_, Self>) {}

    /// Adds this core's own counters of the handler.
    fn count(&self, _counters: &mut ServerCounters) {}

    /// Called when the server drains ([`RunningServer::drain`](crate::RunningServer::drain)). Send
    /// the protocol's goodbye here (WebSocket close 1001), so that the peer closes first. Does
    /// nothing by default.
    fn draining(&mut self, _conn: &mut Connection<'_, Self>) {}

    /// Called when the connection has ended. Sends have no effect.
    fn close(&mut self, _conn: &mut Connection<'_, Self>, _why: DisconnectReason) {}
}

/// The handler's answer to a publication that its connection intercepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterceptAction {
    /// The handler has processed it. Bytes that it sent are the connection's own: no topic's policy
    /// applies to them, and too many of them for a slow reader end the connection.
    Handled,
    /// Deliver it as a frame: [`Handler::render`] makes the frame for the subscription's dialect,
    /// and the topic's policy applies. Not for a connection without a socket: nothing can be
    /// written to it.
    Declined,
}

/// An event of the session of a handler's connections.
pub type EventOf<'a, H> = <<H as Handler>::Session as Session>::Event<'a>;

/// The reason why a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectReason {
    /// Closed locally, by the handler or by server shutdown.
    Local,
    /// The peer closed.
    PeerFinished,
    /// Nothing was received for `idle_timeout`.
    Idle,
    /// Receiving or sending failed, mostly with ECONNRESET.
    Failed(Errno),
    /// The peer did not read: more than `pending_bytes_max` waited for it, or bytes waited for
    /// longer than `close_timeout` after the close.
    Overflow,
    /// The peer broke the rules of the transport.
    TransportFailed,
    /// The handler panicked.
    Panicked,
}
