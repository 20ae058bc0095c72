//! One core's look at itself: what it counts for a moment, and a walk over its connections and
//! topics, a few in each turn.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use throng_base::{Instant, Key};
use throng_driver::CoreLink;
use throng_engine::{Activity, App, CoreContext};
use throng_measure::{
    BusyConnection, CoreCounters, CoreInspection, ServerCounters, SlowConnection,
};
use throng_pubsub::Hub;

use crate::core_message::ServerDriver;

/// The answer of a core to a look.
#[derive(Debug, Default)]
pub(crate) struct CoreLook {
    pub(crate) core: CoreInspection,
    pub(crate) slow: Vec<SlowConnection>,
    pub(crate) busy: Vec<BusyConnection>,
    pub(crate) busy_missed_bytes_max: u64,
    /// The topics with the most members here.
    pub(crate) topics: Vec<Arc<str>>,
    /// Members of the largest topic that is not among them; 0 if there is none.
    pub(crate) omitted_members: u64,
}

/// A look in progress. It walks over the table of connections once, and once over that of topics.
/// Entries that come meanwhile to a place behind the walk are not seen.
pub(crate) struct Inspection {
    pub(crate) rows: usize,
    pub(crate) reply: Sender<CoreLook>,
    pub(crate) began: Instant,
    /// The counters when the look began.
    pub(crate) before: (ServerCounters, CoreCounters),
    next_place: u32,
    places: u32,
    next_topic: u32,
    topic_places: u32,
    slow: Largest<Key>,
    topics: Largest<Arc<str>>,
}

impl Inspection {
    pub(crate) fn new(
        rows: usize,
        reply: Sender<CoreLook>,
        began: Instant,
        before: (ServerCounters, CoreCounters),
    ) -> Self {
        Self {
            rows,
            reply,
            began,
            before,
            next_place: 0,
            places: u32::MAX,
            next_topic: 0,
            topic_places: u32::MAX,
            slow: Largest::new(rows),
            // A topic that is large on all cores together may be small on each.
            topics: Largest::new(rows * TOPICS_OF_ROW),
        }
    }

    /// Returns when the next turn has work for the look.
    pub(crate) fn due(&self) -> Instant {
        if self.is_walked() { self.began + SPAN } else { Instant::ZERO }
    }

    /// Reports whether the look has ended: its span is over and the walk is too, or is too slow.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        let span = now.since(self.began);
        span >= SPAN && (self.is_walked() || span >= SPAN + WALK_MAX)
    }

    /// Walks over the next places of both tables.
    pub(crate) fn walk<D: ServerDriver, A: App<D>>(&mut self, cx: &CoreContext<D, A>, hub: &Hub) {
        (self.places, self.topic_places) = (cx.places(), hub.topic_places());
        let end = self.places.min(self.next_place.saturating_add(PLACES_OF_TURN));
        for blocked in cx.blocked_in(self.next_place..end) {
            self.slow.add(blocked.pending_bytes as u64, || blocked.key);
        }
        self.next_place = end;
        let end = self.topic_places.min(self.next_topic.saturating_add(PLACES_OF_TURN));
        for (topic, members) in hub.topics_in(self.next_topic..end) {
            self.topics.add(u64::from(members), || Arc::clone(topic));
        }
        self.next_topic = end;
    }

    fn is_walked(&self) -> bool {
        self.next_place >= self.places && self.next_topic >= self.topic_places
    }

    /// Ends the look of a core that has these counters now.
    pub(crate) fn finish<D: ServerDriver, A: App<D>>(
        &mut self,
        cx: &mut CoreContext<D, A>,
        server: &ServerCounters,
    ) -> CoreLook {
        let mut core = self.core(cx, server);
        let mut busy = (Vec::new(), 0);
        if let Some(activity) = cx.end_observation() {
            core.turns = activity.turns;
            core.busy_us = activity.busy_us;
            core.turn_us_most = activity.turn_us_most;
            core.mailbox_most = activity.mailbox_most as u64;
            busy = (self.busy(cx, &activity), activity.work_missed_max);
        }
        let (slow, (busy, missed)) = (self.slow(cx), busy);
        let omitted = match self.next_topic >= self.topic_places {
            true => self.topics.omitted,
            // A topic that was not seen may have any number of members.
            false => u64::MAX,
        };
        let topics = self.topics.take();
        CoreLook {
            core,
            slow,
            busy,
            busy_missed_bytes_max: missed,
            topics,
            omitted_members: omitted,
        }
    }

    fn core<D: ServerDriver, A: App<D>>(
        &self,
        cx: &mut CoreContext<D, A>,
        server: &ServerCounters,
    ) -> CoreInspection {
        let turns = cx.totals().since(&self.before.1);
        let server = server.since(&self.before.0);
        CoreInspection {
            core: cx.core() as u64,
            silent_ms: None,
            span_us: cx.now().micros_since(self.began),
            places_seen: u64::from(self.next_place),
            places: u64::from(self.places),
            is_paused: server.paused_cores > 0,
            connections: server.open,
            accepted: server.accepted,
            closed: server.closed,
            messages_received: server.messages_received,
            messages_sent: server.messages_sent,
            fanned_out: server.fanned_out,
            bytes_received: turns.bytes_received,
            bytes_sent: turns.bytes_sent,
            mailbox: cx.driver().link().messages_waiting() as u64,
            pending_bytes: turns.pending_bytes,
            slow_connections: self.slow.count,
            topics: server.topics,
            memberships: server.memberships,
            ..CoreInspection::default()
        }
    }

    /// Returns the connections that the walk found slow, as they are now.
    fn slow<D: ServerDriver, A: App<D>>(&mut self, cx: &CoreContext<D, A>) -> Vec<SlowConnection> {
        let now = cx.now();
        let row = |key| {
            let blocked = cx.blocked(key)?;
            Some(SlowConnection {
                core: cx.core() as u64,
                connection: format!("{key:?}"),
                peer: cx.peer_addr(key).map(|peer| peer.to_string()),
                pending_bytes: blocked.pending_bytes as u64,
                unacknowledged_bytes: cx.unacknowledged_bytes(key),
                blocked_us: now.micros_since(blocked.since),
                stalled_us: now.micros_since(blocked.since.max(blocked.taken_at)),
            })
        };
        self.slow.take().into_iter().filter_map(row).collect()
    }

    /// Returns the busiest connections that are still open.
    fn busy<D: ServerDriver, A: App<D>>(
        &self,
        cx: &CoreContext<D, A>,
        activity: &Activity,
    ) -> Vec<BusyConnection> {
        let span_us = cx.now().micros_since(self.began);
        let open = activity.busiest().into_iter().filter(|(key, _)| cx.has_socket(*key));
        let rows = open.take(self.rows).map(|(key, it)| BusyConnection {
            core: cx.core() as u64,
            connection: format!("{key:?}"),
            peer: cx.peer_addr(key).map(|peer| peer.to_string()),
            span_us,
            messages_received: it.events,
            bytes_received: it.bytes_received,
            sends: it.sends,
            bytes_sent: it.bytes_sent,
            work_bytes: it.work(),
        });
        rows.collect()
    }
}

/// The items with the largest values of a walk.
#[derive(Debug)]
struct Largest<T> {
    items: Vec<(u64, T)>,
    items_max: usize,
    /// Items of the walk.
    count: u64,
    /// The largest value of an item that was left out.
    omitted: u64,
}

impl<T> Largest<T> {
    const fn new(items_max: usize) -> Self {
        Self { items: Vec::new(), items_max, count: 0, omitted: 0 }
    }

    fn add(&mut self, value: u64, item: impl FnOnce() -> T) {
        self.count += 1;
        // Once something was left out, all items kept are at least as large as that.
        if value <= self.omitted {
            return;
        }
        self.items.push((value, item()));
        if self.items.len() > 2 * self.items_max {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.items.sort_by_key(|(value, _)| Reverse(*value));
        if let Some((value, _)) = self.items.get(self.items_max) {
            self.omitted = self.omitted.max(*value);
        }
        self.items.truncate(self.items_max);
    }

    /// Takes the items, the largest first.
    fn take(&mut self) -> Vec<T> {
        self.cut();
        self.items.drain(..).map(|(_, item)| item).collect()
    }
}

/// The most rows of each list of a look.
pub const INSPECTION_ROWS_MAX: usize = 100;
/// The time for which a core counts.
pub(crate) const SPAN: Duration = Duration::from_millis(500);
/// The time that the walk of a busy core may take beyond that.
pub(crate) const WALK_MAX: Duration = Duration::from_millis(500);
/// Places of each table that a turn walks over: about 50 us.
const PLACES_OF_TURN: u32 = 2_048;
/// Topics that a core reports for each row.
const TOPICS_OF_ROW: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_of_many_are_kept_and_the_first_one_left_out_is_known() {
        let mut largest = Largest::new(3);
        for value in [5, 1, 9, 7, 3, 8, 2, 6, 4, 0] {
            largest.add(value, || value);
        }
        assert_eq!((largest.take(), largest.omitted, largest.count), (vec![9, 8, 7], 6, 10));
        let mut few = Largest::new(3);
        few.add(0, || "an empty one");
        few.add(2, || "two");
        assert_eq!((few.take(), few.omitted), (vec!["two"], 0));
    }
}
