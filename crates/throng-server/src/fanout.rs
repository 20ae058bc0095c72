//! Pub/sub on one core of a server. A publication goes to this core's subscribers, and once to
//! every other core. The hub's deliveries are written in bounded batches.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use throng_base::{Instant, Key};
use throng_driver::{CoreId, Driver, MailboxFull, MessagePriority};
use throng_engine::{CoreContext, DeliveryOutcome};
use throng_pubsub::{
    Delivery, DeliveryContent, Dialect, Frames, Hub, Policy, Publication, Rulebook,
};
use throng_report::ServerCounters;

use crate::app::ServerApp;
use crate::core_message::{CoreMessage, CoreMessageKind};
use crate::{ConnectionId, Handler, InterceptAction};

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
    pub(crate) counters: FanoutCounters,
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

/// The counters of pub/sub.
#[derive(Debug, Default)]
pub(crate) struct FanoutCounters {
    pub(crate) published: u64,
    pub(crate) publishes_received: u64,
    pub(crate) publishes_dropped: u64,
    pub(crate) fanned_out: u64,
    pub(crate) fanout_writes: u64,
    pub(crate) intercepted: u64,
    pub(crate) queued: u64,
    pub(crate) dropped_newest: u64,
    pub(crate) dropped_oldest: u64,
    pub(crate) replaced: u64,
    pub(crate) slow_closed: u64,
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
            counters: FanoutCounters::default(),
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

    /// Returns when [`ServerApp::fan_out`] is to be called.
    pub(crate) fn due(&self) -> Instant {
        match (self.hub.is_busy(), self.outgoing_count) {
            (true, _) => Instant::ZERO,
            (false, 0) => Instant::FAR,
            (false, _) => self.retry_at,
        }
    }

    /// Writes these counters into the server's.
    pub(crate) fn report(&self, server: &mut ServerCounters) {
        server.topics = self.hub.topics() as u64;
        server.memberships = self.hub.members() as u64;
        let counters = &self.counters;
        server.published = counters.published;
        server.publishes_received = counters.publishes_received;
        server.publishes_dropped = counters.publishes_dropped;
        server.fanned_out = counters.fanned_out;
        server.fanout_writes = counters.fanout_writes;
        server.intercepted = counters.intercepted;
        server.fanout_queued = counters.queued;
        server.dropped_newest = counters.dropped_newest;
        server.dropped_oldest = counters.dropped_oldest;
        server.replaced = counters.replaced;
        server.slow_closed = counters.slow_closed;
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

impl FanoutCounters {
    /// Counts a delivery of `frames` frames.
    fn count(&mut self, frames: usize, delivered: DeliveryOutcome) {
        match delivered {
            DeliveryOutcome::Sent => {
                self.fanout_writes += 1;
                self.fanned_out += frames as u64;
            }
            DeliveryOutcome::Queued(what) => {
                self.fanned_out += (what.sent + what.queued) as u64;
                self.queued += what.queued as u64;
                self.dropped_newest += what.dropped_newest as u64;
                self.dropped_oldest += what.dropped_oldest as u64;
                self.replaced += what.replaced as u64;
                self.slow_closed += u64::from(what.closes);
            }
            DeliveryOutcome::Gone => {}
        }
    }
}

impl<H, D> ServerApp<H, D>
where
    H: Handler,
    D: Driver<Message = CoreMessage<H::Message>>,
{
    /// Sends publications to other cores, then delivers one batch on this core.
    pub(crate) fn fan_out(&mut self, cx: &mut CoreContext<D, Self>) {
        self.post_outgoing(cx);
        let mut bytes = 0;
        for _ in 0..DELIVERIES_OF_BATCH {
            let Self { fanout, handler, .. } = self;
            let delivery = fanout
                .hub
                .next(&mut |publication, dialect| render_frame(handler, cx, publication, dialect));
            let Some(Delivery { key, tag, dialect, lane, content }) = delivery else { return };
            match content {
                DeliveryContent::Frames(frames, range) => {
                    let count = range.len();
                    bytes += frames.span(range.clone()).len();
                    let delivered = cx.deliver(key, frames, range, &lane);
                    fanout.counters.count(count, delivered);
                }
                DeliveryContent::Publication(publication) => {
                    let mut intercepted = InterceptAction::Handled;
                    cx.with(key, |conn| {
                        self.call_handler(conn, |handler, conn| {
                            intercepted = handler.delivery(conn, &publication, tag);
                        });
                    });
                    match intercepted {
                        InterceptAction::Handled => self.fanout.counters.intercepted += 1,
                        InterceptAction::Declined => {
                            let frame = render_frame(&mut self.handler, cx, &publication, dialect);
                            bytes += frame.len();
                            if !frame.is_empty() {
                                let delivered = cx.deliver(key, &Frames::one(frame), 0..1, &lane);
                                self.fanout.counters.count(1, delivered);
                            }
                        }
                    }
                }
                DeliveryContent::Nothing => {}
            }
            if bytes >= BYTES_OF_BATCH {
                return;
            }
        }
    }

    /// Posts the publications for other cores until a mailbox is full.
    fn post_outgoing(&mut self, cx: &mut CoreContext<D, Self>) {
        let Fanout { outgoing, outgoing_count: waiting, retry_at, .. } = &mut self.fanout;
        if *waiting == 0 {
            return;
        }
        *retry_at = Instant::ZERO;
        for (core, outbox) in outgoing.iter_mut().enumerate() {
            while let Some(Outgoing { publication, except }) = outbox.queue.pop_front() {
                let weight = publication.weight();
                let mail = CoreMessage(CoreMessageKind::Publish(publication, except));
                if let Err(MailboxFull(CoreMessage(refused))) =
                    cx.driver().send_message(core, mail, MessagePriority::Bulk)
                {
                    if let CoreMessageKind::Publish(publication, except) = refused {
                        outbox.queue.push_front(Outgoing { publication, except });
                    }
                    *retry_at = cx.now() + RETRY_AFTER;
                    break;
                }
                outbox.bytes -= weight;
                *waiting -= 1;
            }
        }
    }
}

/// Returns the frame that all subscribers of `dialect` share. Empty if the handler panics: then
/// nothing is sent.
fn render_frame<H, D>(
    handler: &mut H,
    cx: &mut CoreContext<D, ServerApp<H, D>>,
    publication: &Publication,
    dialect: Dialect,
) -> Arc<[u8]>
where
    H: Handler,
    D: Driver<Message = CoreMessage<H::Message>>,
{
    let render = |out: &mut Vec<u8>| handler.render(publication, dialect, out);
    cx.catch_panic(|| Arc::clone(publication.frame(dialect, render))).unwrap_or_default()
}

/// Deliveries in one batch at most, before other work of the core: about a millisecond, at 8 us
/// each.
const DELIVERIES_OF_BATCH: usize = 128;
/// Bytes in one batch at most, however few subscribers have received them.
const BYTES_OF_BATCH: usize = 1 << 20;
/// The maximum weight of the publications that wait for room in one core's mailbox.
const OUTBOX_BYTES_MAX: usize = 16 << 20;
/// The time until a full mailbox is tried again, unless the core has other work sooner.
const RETRY_AFTER: Duration = Duration::from_millis(1);
