//! Pub/sub on one core of a server. A publication goes to this core's subscribers, and once to
//! every other core.

use std::sync::Arc;
use std::time::Duration;

use throng_base::{Instant, Key};
use throng_driver::{CoreId, MailboxFull, MessagePriority};
use throng_engine::DeliveryOutcome;
use throng_measure::{Merge, ServerCounters};
use throng_pubsub::presence::Diff;
use throng_pubsub::{Hub, Publication, Rulebook};

use crate::ConnectionId;
use crate::core_message::{CoreMessage, CoreMessageKind, ServerLink};
use crate::node_port::{FromCore, NodePort};
use crate::outbox::{Outbox, OutboxItem};

/// One core's hub, and the publications that wait to go to other cores.
pub(crate) struct Fanout {
    pub(crate) hub: Hub,
    pub(crate) rules: Rulebook,
    core: CoreId,
    /// The publications for each core, in the order of publishing.
    outgoing: Vec<Outbox>,
    /// Publications in `outgoing`, all cores together.
    outgoing_count: usize,
    /// The time to try a full mailbox again.
    retry_at: Instant,
    /// The way to other nodes, if topics are shared.
    node: Option<Arc<NodePort>>,
    counters: ServerCounters,
}

impl Fanout {
    pub(crate) fn new(rules: Rulebook) -> Self {
        Self {
            hub: Hub::new(),
            rules,
            core: 0,
            outgoing: Vec::new(),
            outgoing_count: 0,
            retry_at: Instant::ZERO,
            node: None,
            counters: ServerCounters::default(),
        }
    }

    /// Sets the way to other nodes.
    pub(crate) fn share_topics(&mut self, node: Arc<NodePort>) {
        node.set_rules(&self.rules);
        self.hub.note_topic_changes();
        self.node = Some(node);
    }

    pub(crate) fn started(&mut self, core: CoreId, cores: usize) {
        self.core = core;
        self.outgoing.resize_with(cores, Outbox::default);
    }

    pub(crate) fn cores(&self) -> usize {
        self.outgoing.len()
    }

    /// Publishes to all cores and nodes, except to the connection `except`.
    pub(crate) fn publish(&mut self, publication: &Arc<Publication>, except: Option<ConnectionId>) {
        self.counters.published += 1;
        if let Some(node) = &self.node
            && !node.publish(publication)
        {
            self.counters.bus_dropped += 1;
        }
        for core in 0..self.outgoing.len() {
            let except = except.filter(|except| except.core() == core).map(ConnectionId::key);
            if core == self.core {
                self.publish_here(publication, except);
            } else {
                let publication = Arc::clone(publication);
                self.queue(core, OutboxItem { publication, except });
            }
        }
    }

    /// Tells other nodes of changes of the members that this core owns.
    pub(crate) fn share_presence(&self, diff: &Arc<Diff>) {
        if let Some(node) = &self.node {
            node.tell(FromCore::Presence(Arc::clone(diff)));
        }
    }

    /// Tells the node's thread which topics have begun and ended on this core.
    pub(crate) fn share_topic_changes(&mut self) {
        let Some(node) = &self.node else { return };
        self.hub.topic_changes().into_iter().for_each(|change| node.tell(FromCore::Topic(change)));
    }

    /// Publishes to the subscribers of this core.
    pub(crate) fn publish_here(&mut self, publication: &Arc<Publication>, except: Option<Key>) {
        let accepted = self.hub.publish(publication, except);
        self.counters.publishes_dropped += accepted.dropped as u64;
    }

    /// Returns when there is something to post or to deliver.
    pub(crate) fn due(&self) -> Instant {
        match (self.hub.is_busy(), self.outgoing_count) {
            (true, _) => Instant::ZERO,
            (false, 0) => Instant::FAR,
            (false, _) => self.retry_at,
        }
    }

    /// Returns how many publications wait for room in other cores' mailboxes.
    pub(crate) const fn outgoing(&self) -> usize {
        self.outgoing_count
    }

    /// Adds these counters to the server's.
    pub(crate) fn report(&self, server: &mut ServerCounters) {
        server.merge(&self.counters);
        server.topics = self.hub.topics() as u64;
        server.memberships = self.hub.members() as u64;
    }

    /// Publishes what another core has published to the subscribers of this core.
    pub(crate) fn publish_received(&mut self, publication: &Arc<Publication>, except: Option<Key>) {
        self.counters.publishes_received += 1;
        self.publish_here(publication, except);
    }

    /// Posts the publications for other cores until a mailbox is full.
    pub(crate) fn post_outgoing<M>(&mut self, link: &impl ServerLink<M>, now: Instant) {
        let Self { outgoing, outgoing_count: waiting, retry_at, .. } = self;
        if *waiting == 0 {
            return;
        }
        *retry_at = Instant::ZERO;
        for (core, outbox) in outgoing.iter_mut().enumerate() {
            let before = outbox.len();
            let is_full = outbox.post(|OutboxItem { publication, except }| {
                let mail = CoreMessage(CoreMessageKind::Publish(publication, except));
                let sent = link.send_message(core, mail, MessagePriority::Bulk);
                sent.map_err(|MailboxFull(CoreMessage(refused))| match refused {
                    CoreMessageKind::Publish(publication, except) => {
                        OutboxItem { publication, except }
                    }
                    _ => unreachable!("a full mailbox returns the message it refused"),
                })
            });
            *waiting -= before - outbox.len();
            if is_full {
                *retry_at = now + RETRY_AFTER;
            }
        }
    }

    /// Counts a publication that a handler has processed.
    pub(crate) fn count_intercepted(&mut self) {
        self.counters.intercepted += 1;
    }

    /// Counts a delivery of `frames` frames.
    pub(crate) fn count(&mut self, frames: usize, delivered: DeliveryOutcome) {
        let counters = &mut self.counters;
        match delivered {
            DeliveryOutcome::Sent => {
                counters.fanout_writes += 1;
                counters.fanned_out += frames as u64;
            }
            DeliveryOutcome::Queued(what) => {
                counters.fanned_out += (what.sent + what.queued) as u64;
                counters.fanout_queued += what.queued as u64;
                counters.dropped_newest += what.dropped_newest as u64;
                counters.dropped_oldest += what.dropped_oldest as u64;
                counters.replaced += what.replaced as u64;
                counters.slow_closed += u64::from(what.closes);
            }
            DeliveryOutcome::Gone => {}
        }
    }

    /// Queues a publication for `core`. If the queue is full, the topic's policy decides what to
    /// drop.
    fn queue(&mut self, core: CoreId, item: OutboxItem) {
        let outbox = &mut self.outgoing[core];
        let policy = self.rules.of(item.publication.topic()).policy;
        let before = outbox.len();
        self.counters.publishes_dropped += outbox.push(item, policy) as u64;
        self.outgoing_count += outbox.len();
        self.outgoing_count -= before;
    }
}

/// The time until a full mailbox is tried again, unless the core has other work sooner.
const RETRY_AFTER: Duration = Duration::from_millis(1);
