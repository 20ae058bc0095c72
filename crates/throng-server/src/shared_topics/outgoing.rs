//! The thread that gives the bus what this node says.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use throng_bus::{BusError, BusMonitor};
use throng_driver::MailboxSender;
use throng_pubsub::TopicChange;
use throng_pubsub::nodes::{PublicationBatch, PublicationBatches, SubscriptionChanges};

use super::change_retry::ChangeRetry;
use super::counters::NodeCounters;
use super::state::{NodeState, now};
use crate::SharedHandler;
use crate::core_message::CoreMessage;
use crate::node_port::FromCore;

pub(super) struct Outgoing<H: SharedHandler> {
    state: Arc<NodeState>,
    mailboxes: MailboxSender<CoreMessage<H::Message>>,
    batches: PublicationBatches,
    /// The buffer for the byte form of a publication.
    body: Vec<u8>,
    change_retry: ChangeRetry,
    bus_monitor: BusMonitor,
}

impl<H: SharedHandler> Outgoing<H> {
    pub(super) fn new(
        state: Arc<NodeState>,
        mailboxes: MailboxSender<CoreMessage<H::Message>>,
    ) -> Self {
        let id = state.protocol().id().clone();
        Self {
            batches: PublicationBatches::new(id, state.subjects.clone()),
            state,
            mailboxes,
            body: Vec::new(),
            change_retry: ChangeRetry::new(),
            bus_monitor: BusMonitor::new(),
        }
    }

    /// Runs until the port is closed and empty. Then the other nodes learn that this one ends.
    pub(super) fn run(mut self) {
        self.work();
        while let Some(items) = self.state.port.take(self.until_due(), BATCH_WINDOW) {
            items.into_iter().for_each(|item| self.take(item));
            self.work();
        }
        let mut protocol = self.state.protocol();
        protocol.leave();
        self.state.act::<H>(protocol, &self.mailboxes);
    }

    fn take(&mut self, item: FromCore) {
        match item {
            FromCore::Publication(publication) => {
                self.body.clear();
                if H::encode(&publication, &mut self.body) {
                    let body = &self.body;
                    self.batches.add(publication.topic(), |out| out.extend_from_slice(body));
                }
            }
            FromCore::Presence(diff) => self.state.protocol().share(&diff),
            FromCore::Topic(TopicChange { topic, has_members: true }) => {
                self.state.interest().add(&topic);
            }
            FromCore::Topic(TopicChange { topic, .. }) => {
                self.state.interest().remove(now(), &topic);
            }
        }
    }

    /// Does all that is due.
    fn work(&mut self) {
        self.state.watch_bus(&mut self.bus_monitor);
        self.change_subscriptions();
        let mut protocol = self.state.protocol();
        protocol.tick(now());
        self.state.act::<H>(protocol, &self.mailboxes);
        for batch in self.batches.take() {
            self.publish(&batch);
        }
    }

    fn change_subscriptions(&mut self) {
        let now = now();
        if now < self.change_retry.at() {
            return;
        }
        let changes = self.state.interest().changes(now);
        if changes.is_empty() {
            return;
        }
        if let Err(error) = self.try_change(&changes) {
            self.state.interest().failed(&changes);
            return self.change_retry.fail(&error, now);
        }
        self.change_retry.succeed();
        let known = self.state.interest().subscriptions();
        self.state.counters.subscriptions.store(known as u64, Relaxed);
    }

    /// Begins subscriptions, then ends others. What was done when it fails is done again later,
    /// which does no harm.
    fn try_change(&self, changes: &SubscriptionChanges) -> Result<(), BusError> {
        let NodeState { bus, subscription, subjects, .. } = &*self.state;
        let [begin, end] = changes.patterns(subjects);
        if !begin.is_empty() {
            bus.extend(subscription, &begin)?;
        }
        if end.is_empty() { Ok(()) } else { bus.reduce(subscription, &end) }
    }

    /// Publishes a batch. While the bus takes no more, it waits a while: the port is bounded.
    fn publish(&self, batch: &PublicationBatch) {
        let PublicationBatch { subject, payload, publications } = batch;
        let NodeState { bus, counters, .. } = &*self.state;
        let deadline = now() + FULL_BUS_WAIT;
        let counter = loop {
            match bus.publish(subject, payload) {
                Ok(()) => break &counters.published,
                Err(BusError::Away(_)) if bus.is_reachable() && now() < deadline => {
                    std::thread::sleep(BATCH_WINDOW);
                }
                Err(_) => break &counters.dropped,
            }
        };
        NodeCounters::add(counter, u64::from(*publications));
    }

    fn until_due(&self) -> Duration {
        let interest = self.state.interest().due().max(self.change_retry.at());
        let due = self.state.protocol().due().min(interest);
        due.since(now()).min(LOOK_EVERY)
    }
}

/// The time for which publications are collected into a batch.
const BATCH_WINDOW: Duration = Duration::from_millis(1);
/// The time for which a batch waits for a bus that takes no more.
const FULL_BUS_WAIT: Duration = Duration::from_millis(200);
/// The longest time between two looks at the bus.
const LOOK_EVERY: Duration = Duration::from_millis(500);
