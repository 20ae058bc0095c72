//! Pub/sub on one core of a server. A publication goes to this core's subscribers, and once to
//! every other core.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use throng_base::{Instant, Key};
use throng_driver::{CoreId, MailboxFull, MessagePriority};
use throng_engine::DeliveryOutcome;
use throng_pubsub::{Hub, Policy, Publication, Rulebook};
use throng_report::{Merge, ServerCounters};

use crate::ConnectionId;
use crate::core_message::{CoreMessage, CoreMessageKind, ServerDriver};

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
    counters: ServerCounters,
}

/// The publications that wait to go to one other core.
#[derive(Default)]
struct Outbox {
    queue: VecDeque<Outgoing>,
    /// The weight of the queue.
    bytes: usize,
}

/// A publication for another core, and the connection there that does not receive it.
struct Outgoing {
    publication: Arc<Publication>,
    except: Option<Key>,
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
            counters: ServerCounters::default(),
        }
    }

    pub(crate) fn started(&mut self, core: CoreId, cores: usize) {
        self.core = core;
        self.outgoing.resize_with(cores, Outbox::default);
    }

    pub(crate) fn cores(&self) -> usize {
        self.outgoing.len()
    }

    /// Publishes to all cores, except to the connection `except`.
    pub(crate) fn publish(&mut self, publication: &Arc<Publication>, except: Option<ConnectionId>) {
        self.counters.published += 1;
        for core in 0..self.outgoing.len() {
            let except = except.filter(|except| except.core() == core).map(ConnectionId::key);
            if core == self.core {
                self.publish_here(publication, except);
            } else {
                let publication = Arc::clone(publication);
                self.queue(core, Outgoing { publication, except });
            }
        }
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
    pub(crate) fn post_outgoing<D: ServerDriver>(&mut self, driver: &mut D, now: Instant) {
        let Self { outgoing, outgoing_count: waiting, retry_at, .. } = self;
        if *waiting == 0 {
            return;
        }
        *retry_at = Instant::ZERO;
        for (core, outbox) in outgoing.iter_mut().enumerate() {
            while let Some(Outgoing { publication, except }) = outbox.queue.pop_front() {
                let weight = publication.weight();
                let mail = CoreMessage(CoreMessageKind::Publish(publication, except));
                if let Err(MailboxFull(CoreMessage(refused))) =
                    driver.send_message(core, mail, MessagePriority::Bulk)
                {
                    if let CoreMessageKind::Publish(publication, except) = refused {
                        outbox.queue.push_front(Outgoing { publication, except });
                    }
                    *retry_at = now + RETRY_AFTER;
                    break;
                }
                outbox.bytes -= weight;
                *waiting -= 1;
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
    fn queue(&mut self, core: CoreId, outgoing: Outgoing) {
        let outbox = &mut self.outgoing[core];
        let policy = self.rules.of(outgoing.publication.topic()).policy;
        let (before, is_queued) = (outbox.queue.len(), outbox.push(outgoing, policy));
        let removed = before + usize::from(is_queued) - outbox.queue.len();
        self.counters.publishes_dropped += (removed + usize::from(!is_queued)) as u64;
        self.outgoing_count += outbox.queue.len();
        self.outgoing_count -= before;
    }
}

impl Outbox {
    /// Adds a publication. If there is no room, `policy` decides which publication of its topic
    /// makes room. Returns false if none does.
    fn push(&mut self, outgoing: Outgoing, policy: Policy) -> bool {
        let weight = outgoing.publication.weight();
        while self.bytes + weight > OUTBOX_BYTES_MAX && !self.queue.is_empty() {
            let topic = outgoing.publication.topic();
            let is_of_topic = |other: &Outgoing| other.publication.topic() == topic;
            let oldest = match policy {
                Policy::DropNewest | Policy::Close => None,
                Policy::DropOldest | Policy::KeepLatest => self.queue.iter().position(is_of_topic),
            };
            let Some(oldest) = oldest.and_then(|oldest| self.queue.remove(oldest)) else {
                return false;
            };
            self.bytes -= oldest.publication.weight();
        }
        self.bytes += weight;
        self.queue.push_back(outgoing);
        true
    }
}

/// The maximum weight of the publications that wait for room in one core's mailbox.
const OUTBOX_BYTES_MAX: usize = 16 << 20;
/// The time until a full mailbox is tried again, unless the core has other work sooner.
const RETRY_AFTER: Duration = Duration::from_millis(1);
