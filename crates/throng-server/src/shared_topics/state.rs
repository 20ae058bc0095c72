//! What the two threads of a node share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throng_base::Instant;
use throng_bus::{Bus, BusChange, BusMonitor, SubscriptionId};
use throng_driver::{Clock, MailboxSender};
use throng_measure::{NodeInspection, RunEventKind, ServerCounters};
use throng_pubsub::nodes::{
    NodeAction, NodeProtocol, NodeSubjects, TOPIC_SUBSCRIPTIONS_MAX, TopicInterest,
};

use super::counters::NodeCounters;
use crate::SharedHandler;
use crate::core_message::{CoreMessage, CoreMessageKind};
use crate::events::EventSink;
use crate::node_port::NodePort;

/// The state of a node, for its two threads and for the thread that controls the server. No core
/// touches it, except for the port.
pub(super) struct NodeState {
    pub(super) bus: Arc<dyn Bus>,
    pub(super) subjects: NodeSubjects,
    pub(super) port: Arc<NodePort>,
    pub(super) subscription: SubscriptionId,
    pub(super) counters: NodeCounters,
    protocol: Mutex<NodeProtocol>,
    interest: Mutex<TopicInterest>,
    events: EventSink,
}

impl NodeState {
    pub(super) fn new(
        bus: Arc<dyn Bus>,
        subjects: NodeSubjects,
        protocol: NodeProtocol,
        port: Arc<NodePort>,
        subscription: SubscriptionId,
        events: EventSink,
    ) -> Self {
        Self {
            bus,
            subjects,
            port,
            subscription,
            counters: NodeCounters::default(),
            protocol: Mutex::new(protocol),
            interest: Mutex::new(TopicInterest::new(TOPIC_SUBSCRIPTIONS_MAX)),
            events,
        }
    }

    pub(super) fn protocol(&self) -> MutexGuard<'_, NodeProtocol> {
        self.protocol.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn interest(&self) -> MutexGuard<'_, TopicInterest> {
        self.interest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Executes what the protocol requests. The guard proves that no other thread does so
    /// meanwhile: the order of the actions counts.
    pub(super) fn act<H: SharedHandler>(
        &self,
        mut protocol: MutexGuard<'_, NodeProtocol>,
        mailboxes: &MailboxSender<CoreMessage<H::Message>>,
    ) {
        while let Some(action) = protocol.next_action() {
            match action {
                // What is lost here is requested again, or said again with the next heartbeat.
                NodeAction::Publish { subject, payload } => {
                    _ = self.bus.publish(&subject, &payload);
                }
                NodeAction::Presence(diff) => {
                    let messages = H::presence_messages(&diff, mailboxes.cores());
                    for (core, message) in messages.into_iter().enumerate() {
                        let message = CoreMessage(CoreMessageKind::Handler(message));
                        mailboxes.send_control(core, message);
                    }
                }
                NodeAction::Found(id) => {
                    self.emit(RunEventKind::NodeFound { node: id.to_string() })
                }
                NodeAction::Ended(id) => {
                    self.emit(RunEventKind::NodeEnded { node: id.to_string() })
                }
                NodeAction::Lost(id) => self.emit(RunEventKind::NodeLost { node: id.to_string() }),
                NodeAction::NameTaken => {
                    let node = protocol.id().to_string();
                    self.emit(RunEventKind::NodeNameTaken { node });
                }
            }
        }
    }

    /// Emits an event for each change of the bus.
    pub(super) fn watch_bus(&self, monitor: &mut BusMonitor) {
        for change in monitor.changes(&*self.bus) {
            self.emit(match change {
                BusChange::Lost => RunEventKind::NodeBusLost,
                BusChange::Back => RunEventKind::NodeBusBack,
                BusChange::Denied(denial) => {
                    RunEventKind::NodeBusDenied { reason: denial.to_string() }
                }
            });
        }
    }

    pub(super) fn report(&self, server: &mut ServerCounters) {
        self.counters.report(server);
        server.nodes += self.protocol().others().count() as u64;
    }

    /// Looks at the node for people.
    pub(super) fn inspect(&self) -> NodeInspection {
        let mut counters = ServerCounters::default();
        self.counters.report(&mut counters);
        let protocol = self.protocol();
        let mut others: Vec<_> = protocol.others().map(|id| id.to_string()).collect();
        others.sort();
        NodeInspection {
            name: protocol.id().to_string(),
            others,
            is_bus_away: !self.bus.is_reachable(),
            published: counters.bus_published,
            received: counters.bus_received,
            dropped: counters.bus_dropped,
            lost: counters.bus_lost,
        }
    }

    fn emit(&self, kind: RunEventKind) {
        self.events.emit(now(), kind);
    }
}

pub(super) fn now() -> Instant {
    Clock.now()
}
