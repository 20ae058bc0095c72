//! Topics that several servers share over a bus: each of them is a node.
//!
//! Two threads beside the cores speak to the other nodes. One takes what the cores publish and
//! change, and gives it to the bus in batches. The other takes what arrives, and puts it into the
//! cores' mailboxes. All publications between them are bounded, and neither of them makes a core
//! wait. What the nodes say to each other is [`throng_pubsub::nodes`].

mod change_retry;
mod counters;
mod incoming;
mod outgoing;
mod state;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::SystemTime;

use throng_bus::{Bus, BusError, BusSubscription, check_name};
use throng_driver::MailboxSender;
use throng_measure::{NodeInspection, ServerCounters};
use throng_pubsub::nodes::{NodeId, NodeProtocol, NodeSubjects};

use crate::SharedHandler;
use crate::core_message::CoreMessage;
use crate::events::EventSink;
use crate::node_port::NodePort;
use incoming::Incoming;
use outgoing::Outgoing;
use state::NodeState;

/// The options of a server that shares its topics.
#[derive(Clone)]
pub struct SharedTopics {
    /// The bus between the nodes.
    pub bus: Arc<dyn Bus>,
    /// The group of nodes: letters, digits, `-` and `_`. Groups on one bus do not hear each other.
    /// Default `default`.
    pub group: String,
    /// This node. No other running node of the group may have its name.
    pub node: NodeId,
    /// The address that clients of a node that drains are told to go to. Default: the address that
    /// the server listens on, unless that is an unspecified one (`0.0.0.0`, `[::]`): then none.
    pub advertise: Option<String>,
}

impl SharedTopics {
    /// Makes the options of a node that starts now.
    pub fn new(bus: Arc<dyn Bus>, name: &str) -> Self {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let node = NodeId::new(name, wall.as_nanos() as u64);
        Self { bus, group: "default".to_owned(), node, advertise: None }
    }
}

impl fmt::Debug for SharedTopics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bus: _, group, node, advertise } = self;
        f.debug_struct("SharedTopics")
            .field("group", group)
            .field("node", node)
            .field("advertise", advertise)
            .finish_non_exhaustive()
    }
}

/// A node that is about to start: it hears the others already, so that it misses nothing that they
/// say while its cores start.
pub(crate) struct NodeStart {
    options: SharedTopics,
    subjects: NodeSubjects,
    subscription: BusSubscription,
    port: Arc<NodePort>,
}

impl NodeStart {
    pub(crate) fn new(options: SharedTopics) -> Result<Self, BusError> {
        for name in [&*options.group, &*options.node.name] {
            check_name(name).map_err(|error| BusError::Subject(error.to_string()))?;
        }
        let subjects = NodeSubjects::new(&options.group);
        let protocol = NodeProtocol::new(options.node.clone(), subjects.clone(), None);
        let [to_all, to_this] = protocol.subscriptions();
        let subscription = options.bus.subscribe(&to_all)?;
        options.bus.extend(&subscription.id(), &[to_this])?;
        let port = Arc::new(NodePort::new(options.node.number()));
        Ok(Self { options, subjects, subscription, port })
    }

    pub(crate) fn port(&self) -> Arc<NodePort> {
        Arc::clone(&self.port)
    }

    /// Starts the threads. `address` is the address for clients.
    pub(crate) fn spawn<H: SharedHandler>(
        self,
        address: Option<String>,
        mailboxes: MailboxSender<CoreMessage<H::Message>>,
        events: EventSink,
    ) -> std::io::Result<RunningNode> {
        let Self { options, subjects, subscription, port } = self;
        let address = options.advertise.or(address).map(Arc::from);
        let protocol = NodeProtocol::new(options.node, subjects.clone(), address);
        let state =
            NodeState::new(options.bus, subjects, protocol, port, subscription.id(), events);
        let state = Arc::new(state);
        let mut node = RunningNode { state: Arc::clone(&state), threads: Mutex::default() };
        let incoming = Incoming::<H>::new(Arc::clone(&state), subscription, mailboxes.clone());
        node.start_thread("node-in", move || incoming.run())?;
        let outgoing = Outgoing::<H>::new(state, mailboxes);
        node.start_thread("node-out", move || outgoing.run())?;
        Ok(node)
    }
}

/// The threads of a node. They end when it is dropped, and the other nodes are told.
pub(crate) struct RunningNode {
    state: Arc<NodeState>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl RunningNode {
    fn start_thread(
        &mut self,
        name: &str,
        run: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<()> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run)?;
        self.threads.get_mut().unwrap_or_else(PoisonError::into_inner).push(thread);
        Ok(())
    }

    /// Tells the others whether this node drains.
    pub(crate) fn set_draining(&self, is_draining: bool) {
        self.state.protocol().set_draining(is_draining);
        self.state.port.wake();
    }

    /// Returns the addresses of the nodes that take clients.
    pub(crate) fn addresses(&self) -> Arc<[Arc<str>]> {
        self.state.protocol().addresses().collect()
    }

    /// Adds the node's counters to the server's.
    pub(crate) fn report(&self, server: &mut ServerCounters) {
        self.state.report(server);
    }

    /// Looks at the node for people.
    pub(crate) fn inspect(&self) -> NodeInspection {
        self.state.inspect()
    }

    /// Ends the node: the others learn it at once.
    pub(crate) fn stop(&self) {
        self.state.port.close();
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            // A panic of the thread is a defect, but no reason not to stop the server.
            _ = thread.join();
        }
    }
}

impl Drop for RunningNode {
    fn drop(&mut self) {
        self.stop();
    }
}
