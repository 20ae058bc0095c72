//! What reaches a core of a server: from other cores, and from the thread that controls it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use throng_base::Key;
use throng_driver::{CoreId, Errno};
use throng_pubsub::Publication;
use throng_report::{CoreCounters, ServerCounters};

/// A message to a core of a server whose handlers exchange `M`.
pub struct CoreMessage<M>(pub(crate) CoreMessageKind<M>);

pub(crate) enum CoreMessageKind<M> {
    /// For a connection.
    Connection(Key, M),
    /// From another core, for the members of this one, but not for that connection.
    Publish(Arc<Publication>, Option<Key>),
    /// From a thread that is no core: to be published to all cores.
    Relay(Arc<Publication>),
    /// For a core's handler.
    Handler(M),
    /// Dispatch, to the registry: core so-and-so has accepted a connection and waits.
    PlacementRequest(CoreId),
    /// Dispatch, from the registry: the connection goes to that core.
    Placement(CoreId),
    /// Dispatch, to the registry: a connection of that core has ended.
    ConnectionEnded(CoreId),
    Control(Control),
}

pub(crate) enum Control {
    /// Open a listening socket; `shared_with_all`: and give all other cores a reference to it.
    Listen { addr: SocketAddr, shared_with_all: bool, reply: Sender<ListenReport> },
    /// Another core is about to share its listening socket; answered at once, then again when it has come.
    ExpectListener { reply: Sender<ListenReport> },
    /// Close the listening socket.
    Suspend { reply: Sender<CoreId> },
    /// Tell every connection that the server is about to end.
    Drain,
    /// Close every connection, those too that are on their way here.
    CloseAll,
    /// Say what was counted.
    Collect { reply: Sender<CoreReport> },
    /// Return.
    Stop,
}

/// What a core says about its listening socket.
pub type ListenReport = (CoreId, Result<Option<SocketAddr>, Errno>);

/// What a core has counted.
#[derive(Clone, Debug, Default)]
pub struct CoreReport {
    /// Which core.
    pub core: CoreId,
    /// What the server's part of it counted.
    pub server: ServerCounters,
    /// What its loop counted.
    pub turns: CoreCounters,
    /// Failures of accept, of epoll's watches too, by errno.
    pub accept_errors: Vec<(Errno, u64)>,
}

impl<M> CoreMessage<M> {
    /// To one core, core 0 first: open a listening socket. The answer says where.
    pub const fn listen(addr: SocketAddr, reply: Sender<ListenReport>) -> Self {
        Self::control(Control::Listen { addr, shared_with_all: false, reply })
    }

    /// To core 0, after all others have answered [`Self::expect`]: open a listening socket for all cores.
    pub const fn listen_for_all(addr: SocketAddr, reply: Sender<ListenReport>) -> Self {
        Self::control(Control::Listen { addr, shared_with_all: true, reply })
    }

    /// A listening socket will come from core 0. Answered twice: at once, and when it has come.
    pub const fn expect_listener(reply: Sender<ListenReport>) -> Self {
        Self::control(Control::ExpectListener { reply })
    }

    /// Close the listening socket.
    pub const fn suspend(reply: Sender<CoreId>) -> Self {
        Self::control(Control::Suspend { reply })
    }

    /// Tell every connection that the server is about to end.
    pub const fn drain() -> Self {
        Self::control(Control::Drain)
    }

    /// Close every connection, those too that are on their way to this core.
    pub const fn close_all() -> Self {
        Self::control(Control::CloseAll)
    }

    /// Say what was counted.
    pub const fn collect(reply: Sender<CoreReport>) -> Self {
        Self::control(Control::Collect { reply })
    }

    /// Return.
    pub const fn stop() -> Self {
        Self::control(Control::Stop)
    }

    const fn control(control: Control) -> Self {
        Self(CoreMessageKind::Control(control))
    }
}
