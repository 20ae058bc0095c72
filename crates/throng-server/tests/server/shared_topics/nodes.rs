//! Nodes of a test, and a bus of which one node can be cut off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use throng_bus::{Bus, BusDenial, BusError, BusSubscription, MemoryBus, SubscriptionId};
use throng_server::channels::{ChannelHandler, demo};
use throng_server::kinds::Chat;
use throng_server::{
    AcceptTopology, Handler, RunningServer, SharedTopics, WebSocketOptions, WebSockets,
};

use crate::support::{eventually, options, snapshot};

pub(crate) type ChatServer = RunningServer<WebSockets<Chat>>;
pub(crate) type ChannelServer = RunningServer<ChannelHandler>;

/// One node's connection to the bus. While it is cut, what the node says gets lost without an
/// error, as in a network that drops packets.
#[derive(Clone)]
pub(crate) struct CutBus {
    bus: MemoryBus,
    pub(crate) is_cut: Arc<AtomicBool>,
}

impl CutBus {
    pub(crate) fn new(bus: &MemoryBus) -> Self {
        Self { bus: bus.clone(), is_cut: Arc::default() }
    }
}

impl Bus for CutBus {
    fn publish(&self, subject: &str, payload: &[u8]) -> Result<(), BusError> {
        if self.is_cut.load(SeqCst) { Ok(()) } else { self.bus.publish(subject, payload) }
    }

    fn subscribe(&self, pattern: &str) -> Result<BusSubscription, BusError> {
        self.bus.subscribe(pattern)
    }

    fn extend(&self, subscription: &SubscriptionId, patterns: &[String]) -> Result<(), BusError> {
        self.bus.extend(subscription, patterns)
    }

    fn reduce(&self, subscription: &SubscriptionId, patterns: &[String]) -> Result<(), BusError> {
        self.bus.reduce(subscription, patterns)
    }

    fn is_reachable(&self) -> bool {
        self.bus.is_reachable()
    }

    fn denials_after(&self, told: usize) -> Vec<BusDenial> {
        self.bus.denials_after(told)
    }
}

pub(crate) fn chat(bus: &MemoryBus, name: &str) -> ChatServer {
    chat_of_group(bus, name, "default")
}

pub(crate) fn chat_of_group(bus: &MemoryBus, name: &str, group: &str) -> ChatServer {
    let shared = SharedTopics::new(Arc::new(bus.clone()), name);
    RunningServer::start_shared(
        options(AcceptTopology::Reuseport, 2),
        SharedTopics { group: group.to_owned(), ..shared },
        |_| Chat::handler(WebSocketOptions::default()),
    )
    .unwrap()
}

pub(crate) fn channels(bus: impl Bus + 'static, name: &str) -> ChannelServer {
    let channels = demo();
    RunningServer::start_shared(
        options(AcceptTopology::Reuseport, 2),
        SharedTopics::new(Arc::new(bus), name),
        move |core| channels.handler(core),
    )
    .unwrap()
}

/// Waits until a node knows so many others, and has so many subscriptions.
pub(crate) fn settle<H: Handler>(server: &RunningServer<H>, nodes: u64, subscriptions: u64) {
    eventually("the node knows the others and is subscribed", || {
        let counters = snapshot(server).counters;
        (counters.nodes, counters.bus_subscriptions) == (nodes, subscriptions)
    });
}
