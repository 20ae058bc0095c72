//! The thread that gives the cores what other nodes say.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use throng_bus::{BusMessage, BusSubscription, SubscriptionEnd};
use throng_driver::MailboxSender;
use throng_pubsub::Publication;
use throng_pubsub::nodes::{BatchFilter, BatchRefusal};

use super::counters::NodeCounters;
use super::handler::SharedHandler;
use super::state::{NodeState, now};
use crate::core_message::{CoreMessage, CoreMessageKind};
use crate::outbox::{Outbox, OutboxItem};

pub(super) struct Incoming<H: SharedHandler> {
    state: Arc<NodeState>,
    subscription: BusSubscription,
    mailboxes: MailboxSender<CoreMessage<H::Message>>,
    filter: BatchFilter,
    /// The publications that wait for room in the mailbox of each core.
    outboxes: Vec<Outbox>,
    /// The subjects of packets about nodes and presence; all others are of publications.
    of_packets: [String; 2],
}

impl<H: SharedHandler> Incoming<H> {
    pub(super) fn new(
        state: Arc<NodeState>,
        subscription: BusSubscription,
        mailboxes: MailboxSender<CoreMessage<H::Message>>,
    ) -> Self {
        let (own, of_packets) = {
            let protocol = state.protocol();
            (protocol.id().clone(), protocol.subscriptions())
        };
        let outboxes = std::iter::repeat_with(Outbox::default).take(mailboxes.cores()).collect();
        Self { state, subscription, mailboxes, filter: BatchFilter::new(own), outboxes, of_packets }
    }

    /// Runs until the port is closed, or the bus has ended.
    pub(super) fn run(mut self) {
        while !self.state.port.is_closed() {
            if self.take_some().is_err() {
                return;
            }
            self.post();
            self.state.counters.lost.store(self.subscription.lost(), Relaxed);
        }
    }

    /// Waits for a message, and takes those that wait behind it.
    fn take_some(&mut self) -> Result<(), SubscriptionEnd> {
        let is_posting = self.outboxes.iter().any(|outbox| !outbox.is_empty());
        let wait = if is_posting { RETRY_AFTER } else { LOOK_EVERY };
        let mut next = self.subscription.next_within(wait)?;
        for _ in 0..MESSAGES_AT_ONCE {
            let Some(message) = next else { break };
            self.take(&message);
            next = self.subscription.try_next()?;
        }
        if let Some(message) = next {
            self.take(&message);
        }
        Ok(())
    }

    fn take(&mut self, message: &BusMessage) {
        if !self.of_packets.contains(&message.subject) {
            return self.take_batch(&message.payload);
        }
        let now = now();
        let mut protocol = self.state.protocol();
        if !protocol.receive(now, &message.payload) {
            NodeCounters::add(&self.state.counters.refused, 1);
        }
        if protocol.due() <= now {
            protocol.tick(now);
        }
        self.state.act::<H>(protocol, &self.mailboxes);
    }

    /// Queues the publications of another node for all cores.
    fn take_batch(&mut self, payload: &[u8]) {
        let publications = match self.filter.read(now(), payload) {
            Ok(publications) => publications,
            Err(BatchRefusal::Own) => return,
            Err(BatchRefusal::Duplicate | BatchRefusal::Malformed) => {
                return NodeCounters::add(&self.state.counters.refused, 1);
            }
        };
        let mut received = 0;
        for publication in publications {
            // A subscription to a shard brings other topics, too.
            if !self.state.interest().has(publication.topic) {
                continue;
            }
            match H::decode(publication.topic, publication.body) {
                Some(publication) => {
                    received += 1;
                    self.queue(&Arc::new(publication));
                }
                None => NodeCounters::add(&self.state.counters.refused, 1),
            }
        }
        NodeCounters::add(&self.state.counters.received, received);
    }

    fn queue(&mut self, publication: &Arc<Publication>) {
        let policy = self.state.port.rules().of(publication.topic()).policy;
        for outbox in &mut self.outboxes {
            let item = OutboxItem { publication: Arc::clone(publication), except: None };
            let dropped = outbox.push(item, policy);
            NodeCounters::add(&self.state.counters.kept_out, dropped as u64);
        }
    }

    /// Puts the publications into the cores' mailboxes, as far as these have room.
    fn post(&mut self) {
        for (core, outbox) in self.outboxes.iter_mut().enumerate() {
            outbox.post(|OutboxItem { publication, except }| {
                let message = CoreMessage(CoreMessageKind::Publish(publication, except));
                self.mailboxes.send_bulk(core, message).map_err(|full| match full.0.0 {
                    CoreMessageKind::Publish(publication, except) => {
                        OutboxItem { publication, except }
                    }
                    _ => unreachable!("a full mailbox returns the message it refused"),
                })
            });
        }
    }
}

/// The longest time between two looks whether the node ends.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The time until a full mailbox is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(1);
/// Messages that are taken before what they bring is posted.
const MESSAGES_AT_ONCE: usize = 256;
