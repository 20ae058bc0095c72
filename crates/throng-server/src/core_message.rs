//! Messages to a core of a server, from other cores and from the thread that controls the server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use throng_base::Key;
use throng_driver::{CoreId, CoreLink, Driver, Errno, Listeners, MailboxFull};
use throng_measure::{CoreCounters, ServerCounters, Tally};
use throng_pubsub::{Publication, TopicCounts};
use throng_tls::TlsServerConfig;

use crate::ConnectionId;
use crate::inspection::CoreLook;

/// A message to a core of a server whose handlers exchange `M`.
pub struct CoreMessage<M>(pub(crate) CoreMessageKind<M>);

pub(crate) enum CoreMessageKind<M> {
    /// For a connection of the core.
    Connection(Key, M),
    /// A publication of another core, for this core's subscribers except the given connection.
    Publish(Arc<Publication>, Option<Key>),
    /// A publication of a thread that is not a core, to be published to all cores.
    Relay(Arc<Publication>),
    /// For the core's handler.
    Handler(M),
    /// Dispatch, to the registry.
    Registry(RegistryMessage),
    /// Dispatch, from the registry: the waiting connection goes to this core.
    Placement(CoreId),
    /// From the server.
    Control(Control),
}

/// A link between the cores of a server.
pub(crate) trait ServerLink<M>: CoreLink<Message = CoreMessage<M>> {}

impl<M, L: CoreLink<Message = CoreMessage<M>>> ServerLink<M> for L {}

/// A driver that listens, and whose cores exchange the messages of a server.
pub trait ServerDriver:
    Driver<Message = CoreMessage<<Self as ServerDriver>::Payload>> + Listeners
{
    /// The messages of the server's handlers.
    type Payload;
}

impl<M, D: Driver<Message = CoreMessage<M>> + Listeners> ServerDriver for D {
    type Payload = M;
}

/// A message of a core to the registry of `dispatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegistryMessage {
    /// This core has accepted a connection, which waits for its placement.
    PlacementRequest(CoreId),
    /// A connection of this core has ended.
    ConnectionEnded(CoreId),
}

/// A command of the server to a core.
pub(crate) enum Control {
    /// Open a listening socket, and share it with all other cores if `shared_with_all`.
    Listen { addr: SocketAddr, shared_with_all: bool, reply: Sender<ListenReport> },
    /// Expect a listening socket that another core shares. Answered at once, and again when the
    /// socket has arrived.
    ExpectListener { reply: Sender<ListenReport> },
    /// Close the listening socket.
    Suspend { reply: Sender<CoreId> },
    /// Call [`Handler::draining`](crate::Handler::draining) for every connection, whose client may
    /// go to other nodes.
    Drain { other_nodes: Arc<[Arc<str>]> },
    /// Close every connection, including those in flight to this core.
    CloseAll,
    /// Use this configuration for all TLS handshakes that begin from now on.
    ConfigureTls { config: TlsServerConfig, reply: Sender<CoreId> },
    /// Report the counters.
    Collect { reply: Sender<CoreReport> },
    /// Observe the core for a moment, and report what it and its connections did.
    Inspect { rows: usize, reply: Sender<CoreLook> },
    /// Report the counts of these topics, in this order.
    CountTopics { topics: Arc<[Arc<str>]>, reply: Sender<TopicReport> },
    /// Stop the core.
    Stop,
}

/// A core's report about its listening socket.
pub type ListenReport = (CoreId, Result<Option<SocketAddr>, Errno>);

/// A core's counts of topics, 0 for those without members there.
pub(crate) type TopicReport = (CoreId, Vec<TopicCounts>);

/// The counters of a core.
#[derive(Clone, Debug, Default)]
pub struct CoreReport {
    /// The number of the core.
    pub core: CoreId,
    /// The counters of the server.
    pub server: ServerCounters,
    /// The counters of the event loop.
    pub turns: CoreCounters,
    /// Errors of accept and of epoll's watches, by errno.
    pub accept_errors: Vec<(Errno, u64)>,
    /// Connections that their transport ended, by the name of its error.
    pub transport_errors: Tally,
}

impl<M> CoreMessage<M> {
    /// Makes a message to a connection, for that connection's core.
    pub(crate) const fn to_connection(to: ConnectionId, message: M) -> Self {
        Self(CoreMessageKind::Connection(to.key(), message))
    }

    /// Returns the message to a connection that a full mailbox refused.
    pub(crate) fn refused(MailboxFull(Self(kind)): MailboxFull<Self>) -> M {
        match kind {
            CoreMessageKind::Connection(_, message) => message,
            _ => unreachable!("a full mailbox returns the message it refused"),
        }
    }

    /// Tells a core to open a listening socket, core 0 first. The reply contains its address.
    pub const fn listen(addr: SocketAddr, reply: Sender<ListenReport>) -> Self {
        Self::control(Control::Listen { addr, shared_with_all: false, reply })
    }

    /// Tells core 0 to open a listening socket for all cores. Send it after all others have
    /// answered [`Self::expect_listener`].
    pub const fn listen_for_all(addr: SocketAddr, reply: Sender<ListenReport>) -> Self {
        Self::control(Control::Listen { addr, shared_with_all: true, reply })
    }

    /// Tells a core to expect a listening socket from core 0. The core replies twice: at once, and
    /// when the socket has arrived.
    pub const fn expect_listener(reply: Sender<ListenReport>) -> Self {
        Self::control(Control::ExpectListener { reply })
    }

    /// Tells a core to close its listening socket.
    pub const fn suspend(reply: Sender<CoreId>) -> Self {
        Self::control(Control::Suspend { reply })
    }

    /// Tells a core to call [`Handler::draining`](crate::Handler::draining) for every connection.
    pub fn drain() -> Self {
        Self::drain_to(Arc::default())
    }

    /// Tells a core the same, and where clients may go: the addresses of other nodes.
    pub const fn drain_to(other_nodes: Arc<[Arc<str>]>) -> Self {
        Self::control(Control::Drain { other_nodes })
    }

    /// Tells a core to close every connection, including those in flight to it.
    pub const fn close_all() -> Self {
        Self::control(Control::CloseAll)
    }

    /// Tells a core to use this configuration for all TLS handshakes that begin from now on.
    pub(crate) const fn configure_tls(config: TlsServerConfig, reply: Sender<CoreId>) -> Self {
        Self::control(Control::ConfigureTls { config, reply })
    }

    /// Tells a core to report its counters.
    pub const fn collect(reply: Sender<CoreReport>) -> Self {
        Self::control(Control::Collect { reply })
    }

    /// Tells a core to observe itself, and to report at most `rows` connections of each list.
    pub(crate) const fn inspect(rows: usize, reply: Sender<CoreLook>) -> Self {
        Self::control(Control::Inspect { rows, reply })
    }

    /// Tells a core to report the counts of `topics`.
    pub(crate) const fn count_topics(topics: Arc<[Arc<str>]>, reply: Sender<TopicReport>) -> Self {
        Self::control(Control::CountTopics { topics, reply })
    }

    /// Tells a core to stop.
    pub const fn stop() -> Self {
        Self::control(Control::Stop)
    }

    const fn control(control: Control) -> Self {
        Self(CoreMessageKind::Control(control))
    }
}
