//! Counters and gauges of a server, a generator and its probes: one table for each.
//!
//! Counters only grow, from the start of the process. Gauges are as of the moment of the snapshot.
//! Both add up over cores ([`Merge`]).

use serde::{Deserialize, Serialize};

use crate::metric::MetricKind;

/// A value that can be summed over cores.
pub trait Merge {
    /// Adds the counts of `other`.
    fn merge(&mut self, other: &Self);
}

/// One field of a table of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterField {
    /// The name in the run file.
    pub name: &'static str,
    /// The way in which it changes.
    pub kind: MetricKind,
    /// The meaning, as in the documentation of the field.
    pub doc: &'static str,
    /// The value.
    pub value: u64,
}

/// Declares a struct of `u64` fields that can be merged. A field is a counter, which only grows,
/// unless it says otherwise: a `gauge` is as of one moment and adds up over cores; a `max` is the
/// largest of the interval and merges as that.
macro_rules! counters {
    ($(#[$meta:meta])* $name:ident {
        $( $(#[doc = $doc:literal])+ $field:ident $(: $kind:ident)? ),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $name { $( $(#[doc = $doc])+ pub $field: u64, )* }

        impl $name {
            /// Returns the growth since `earlier`; gauges and maxima are as of now.
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $( $field: counters!(@since self.$field, earlier.$field $(, $kind)?), )* }
            }

            /// Returns the counters alone; gauges and maxima are zero.
            #[must_use]
            pub fn without_gauges(&self) -> Self {
                Self { $( $field: counters!(@counter self.$field $(, $kind)?), )* }
            }

            /// Returns all fields, in their order.
            pub fn fields(&self) -> impl Iterator<Item = CounterField> + use<> {
                [$(CounterField {
                    name: stringify!($field),
                    kind: counters!(@kind $($kind)?),
                    doc: concat!($($doc),+),
                    value: self.$field,
                }),*]
                .into_iter()
            }
        }

        impl Merge for $name {
            fn merge(&mut self, other: &Self) {
                $( counters!(@merge self.$field, other.$field $(, $kind)?); )*
            }
        }
    };
    (@kind) => { MetricKind::Counter };
    (@kind gauge) => { MetricKind::Gauge };
    (@kind max) => { MetricKind::Maximum };
    (@since $now:expr, $earlier:expr) => { $now.saturating_sub($earlier) };
    (@since $now:expr, $earlier:expr, gauge) => { $now };
    (@since $now:expr, $earlier:expr, max) => { $now };
    (@counter $now:expr) => { $now };
    (@counter $now:expr, $kind:ident) => { 0 };
    (@merge $one:expr, $other:expr) => { $one = $one.saturating_add($other) };
    (@merge $one:expr, $other:expr, gauge) => { $one = $one.saturating_add($other) };
    (@merge $one:expr, $other:expr, max) => { $one = $one.max($other) };
}

counters! {
    /// Counters of every core, whichever app runs on it.
    CoreCounters {
        /// Turns of the event loop.
        turns,
        /// Events that the driver reported.
        events,
        /// Bytes received from the kernel.
        bytes_received,
        /// Bytes that the kernel accepted for sending.
        bytes_sent,
        /// Sends that the kernel accepted only in part, or not at all.
        sends_blocked,
        /// Times that a connection used up its share of a turn, so that the rest of its input
        /// waited for the next.
        reads_deferred,
        /// Connections closed because their unsent bytes exceeded `pending_bytes_max`.
        pending_overflows,
        /// Callbacks that panicked; each closed only its own connection.
        panics,
        /// Messages from other cores.
        mail_received,
        /// Messages that did not fit into another core's mailbox.
        mail_dropped,
        /// Gauge: connections and users in the table.
        slots: gauge,
        /// Gauge: bytes that wait for slow peers.
        pending_bytes: gauge,
        /// The longest turn of the interval, in microseconds.
        turn_us_most: max,
    }
}

counters! {
    /// Counters of a server.
    ServerCounters {
        /// Connections accepted.
        accepted,
        /// Connections that ended, closed by either peer.
        closed,
        /// Gauge: connections open now.
        open: gauge,
        /// Messages (for raw TCP: reads that returned bytes) passed to the handler.
        messages_received,
        /// Answers that the handler sent.
        messages_sent,
        /// Connections closed because they received nothing for `idle_timeout`.
        idle_timeouts,
        /// Connections that ended with a reset or another socket error.
        resets,
        /// Connections moved to another core because this core's fd table was full, or by
        /// `dispatch`.
        handed_over,
        /// Connections closed because they could not be moved.
        hand_over_failures,
        /// Times that a core stopped accepting because its fd table (EMFILE) or the system's
        /// (ENFILE) was full.
        pauses_fd,
        /// Times that a core stopped accepting because `connections_max` was reached.
        pauses_max,
        /// Gauge: cores that are not accepting now.
        paused_cores: gauge,
        /// `dispatch`: the longest queue of accepted sockets that waited for the registry in the
        /// interval.
        registry_mailbox_most: max,
        /// Calls of accept that returned no connection.
        accepts_empty,
        /// Gauge: topics that have subscribers, summed over the cores: a topic with subscribers on
        /// two cores counts twice.
        topics: gauge,
        /// Gauge: subscriptions, each of one connection to one topic.
        memberships: gauge,
        /// Publications made by connections or by other threads.
        published,
        /// Publications that arrived from other cores; each counts once on every core.
        publishes_received,
        /// Publications that a topic's policy dropped because a core's mailbox was full, or because
        /// too many waited for their turn; each counts once on every core that misses it.
        publishes_dropped,
        /// Frames of publications written to subscribers, or queued for them.
        fanned_out,
        /// Writes of these frames: one write carries several frames if publications arrive faster
        /// than they are delivered.
        fanout_writes,
        /// Publications handed to handlers whose connections intercept them.
        intercepted,
        /// Frames that had to wait for a slow subscriber.
        fanout_queued,
        /// Frames that a slow subscriber does not receive: `drop-newest`, or no room under any
        /// policy.
        dropped_newest,
        /// Frames dropped while they waited for a slow subscriber: `drop-oldest`.
        dropped_oldest,
        /// Frames replaced by newer ones while they waited for a slow subscriber: `keep-latest`.
        replaced,
        /// Connections reset because their queue of frames was full: `close`.
        slow_closed,
        /// Gauge: channels that clients have joined.
        channels: gauge,
        /// Joins of channels that were answered ok.
        joins,
        /// Joins of channels that were answered with an error, for any reason.
        joins_refused,
        /// Channels that panicked, also during a join.
        channel_crashes,
        /// Clients refused by channels or by the chat: for their origin, their version, or the
        /// application's own reasons.
        connects_refused,
        /// Clients disconnected (1011) because they sent something that is no message of their
        /// protocol version.
        bad_messages,
        /// Gauge: long-poll sessions.
        poll_sessions: gauge,
        /// Gauge: bytes that long-poll sessions hold for their next polls; shared bytes count once
        /// on each core.
        poll_bytes: gauge,
        /// Long-poll sessions refused because there were already `poll_sessions_max`.
        poll_sessions_refused,
        /// Long-poll sessions ended because too many messages waited for them.
        poll_overflows,
        /// Presences that were not tracked because their topic already had `presence_members_max`.
        presence_refused,
        /// Gauge: other nodes that share topics with this one.
        nodes: gauge,
        /// Gauge: subscriptions on the bus to topics, or to shards of topics.
        bus_subscriptions: gauge,
        /// Publications given to the bus for other nodes; each counts once, for all of them.
        bus_published,
        /// Publications that arrived from other nodes for topics with members here.
        bus_received,
        /// Publications that other nodes do not receive: the bus was away or full, too many waited
        /// for it, or it does not carry so long a message.
        bus_dropped,
        /// Messages of the bus that were lost on arrival, because too many waited.
        bus_lost,
        /// Messages of the bus that were not read: of another version, malformed, or batches of
        /// publications that came a second time.
        bus_refused,
        /// Connections closed (1008) because a message that they began was not complete in time.
        message_timeouts,
        /// Connections closed (1009) because a frame or a message exceeded its limit.
        messages_too_large,
        /// Connections closed (413, 414, 431) because a request exceeded its limit.
        requests_too_large,
    }
}

counters! {
    /// Counters of a generator.
    ///
    /// Everything that begins ends in exactly one way. When all users have left,
    ///
    /// - `iterations` = `users_finished` + `users_failed` + `users_cut`
    /// - `connects_started` = `connects_ok` + `connects_failed` + `connects_waiting`
    /// - `upgrades_started` = `connects_ok` - `http_connects` + `upgrades_failed` +
    ///   `upgrades_waiting` over WebSockets
    /// - `messages_expected` = `messages_answered` + `messages_failed` + `messages_waiting`
    /// - `joins_started` = `joins_ok` + `joins_failed` + `joins_waiting`
    /// - `pushes_sent` = `pushes_ok` + `pushes_failed` + `pushes_waiting` + `pushes_without_reply`
    /// - `http_started` = `http_ok` + `http_failed` + `http_waiting`
    /// - `turns_intended` = `turns_started` + `turns_failed` + `turns_waiting`
    ///
    /// A request that a user still waits for counts as waiting at the moment when all users begin
    /// to leave, or when the schedule or `throng ctl` stops this user. Its later outcome is not
    /// counted.
    LoadCounters {
        /// Users (closed model) or arrivals (open model) that should have started by now.
        users_intended,
        /// Users that have started. Further iterations of the same user count in `iterations`.
        users_started,
        /// Times that a user began its program, the first time included.
        iterations,
        /// Iterations that ended without an error.
        users_finished,
        /// Iterations that ended with an error.
        users_failed,
        /// Iterations without an error that were cut off before their last step: the run ended, or
        /// the schedule or `throng ctl` stopped the user.
        users_cut,
        /// Gauge: users in an iteration.
        users_active: gauge,
        /// Gauge: connections established.
        connected: gauge,
        /// Connects begun.
        connects_started,
        /// Connects that were established.
        connects_ok,
        /// Connects that failed, for any reason.
        connects_failed,
        /// Connects in progress when their user was stopped.
        connects_waiting,
        /// Connects of WebSockets whose TCP was established and that sent their upgrade request.
        upgrades_started,
        /// Failed connects whose TCP was established.
        upgrades_failed,
        /// Waiting connects whose TCP was established.
        upgrades_waiting,
        /// `send` steps done.
        messages_sent,
        /// `expect` steps begun.
        messages_expected,
        /// `expect` steps that received what they expected.
        messages_answered,
        /// `expect` steps that received something else, or nothing in time, or lost their
        /// connection.
        messages_failed,
        /// `expect` steps that waited when their user was stopped.
        messages_waiting,
        /// Steps that were about to send when their connection ended, while the server did not take
        /// the bytes sent before.
        sends_failed,
        /// Steps that were about to send when their user was stopped, while the server did not take
        /// the bytes sent before.
        sends_waiting,
        /// Turns of `every` that came due: those that have begun, and those before the last turn
        /// that began or was given up.
        turns_intended,
        /// Turns of `every` that have begun.
        turns_started,
        /// Turns of `every` that came due while their user waited, and never began because an error
        /// ended the loop.
        turns_failed,
        /// Turns of `every` that had come due and had not begun when their user was stopped.
        turns_waiting,
        /// Complete messages received over WebSockets, whether or not a step waited for them.
        messages_received,
        /// Messages (over TCP: receives) that arrived while no step waited for them, or that a step
        /// skipped: they answered nothing.
        messages_unasked,
        /// Answers that may belong to another user: messages that match their `expect` had arrived
        /// unrequested on the same connection.
        answers_doubtful,
        /// The part of `answers_doubtful` that may be no answers, but what the server says first:
        /// after the first answer of their connection came another, which no message asked for.
        answers_after_greeting,
        /// Answers that may be late answers to the previous request, which timed out. No histogram
        /// contains them.
        answers_out_of_step,
        /// Gauge: channels that users are joined to.
        joined: gauge,
        /// `join` steps begun.
        joins_started,
        /// `join` steps that were answered ok.
        joins_ok,
        /// `join` steps that were refused, not answered in time, or lost their connection.
        joins_failed,
        /// `join` steps that waited when their user was stopped.
        joins_waiting,
        /// `push` steps done.
        pushes_sent,
        /// Pushes that request no answer.
        pushes_without_reply,
        /// `push` steps that were answered ok.
        pushes_ok,
        /// `push` steps that were refused, not answered in time, or lost their connection or
        /// channel.
        pushes_failed,
        /// `push` steps that waited when their user was stopped.
        pushes_waiting,
        /// HTTP requests begun; a request that is sent again counts once.
        http_started,
        /// HTTP requests that were answered as expected.
        http_ok,
        /// HTTP requests that were answered otherwise, not answered in time, or lost their
        /// connection.
        http_failed,
        /// HTTP requests that waited when their user was stopped.
        http_waiting,
        /// Connections established for HTTP requests. `connects_ok` includes them.
        http_connects,
        /// Connects for HTTP requests that failed. `connects_failed` includes them.
        http_connects_failed,
        /// Connects for HTTP requests in progress when their user was stopped. `connects_waiting`
        /// includes them.
        http_connects_waiting,
        /// HTTP requests sent again on a new connection, because the server closed the old one
        /// before it answered.
        http_retried,
        /// HTTP requests that failed after a part of their answer had arrived: at their time-out,
        /// or at the end of their connection.
        http_incomplete,
        /// Answers to HTTP requests with a status from 200 to 299.
        http_2xx,
        /// Answers to HTTP requests with a status from 300 to 399.
        http_3xx,
        /// Answers to HTTP requests with a status from 400 to 499.
        http_4xx,
        /// Answers to HTTP requests with a status of 500 or more.
        http_5xx,
        /// Heartbeats sent.
        heartbeats_sent,
        /// Heartbeats that were answered.
        heartbeats_answered,
        /// Heartbeats that were not answered until the next was due, which ends a connection.
        heartbeats_missed,
        /// Users that waited for an answer (`expect`, `join`, `push`, `leave`) when all users began
        /// to leave.
        users_waiting,
        /// The longest wait of one of these users, from the intended moment, in microseconds.
        users_waiting_us_most: max,
        /// Waits for other users (`barrier`, `wait_for`) that have begun.
        cue_waits,
        /// Time of those that have ended, in microseconds.
        cue_waits_us,
        /// Gauge: users that wait for other users.
        cue_waiting: gauge,
    }
}

impl LoadCounters {
    /// Returns the number of requests that users have sent: messages, pushes and HTTP requests.
    pub fn requests_begun(&self) -> u64 {
        self.messages_sent + self.pushes_sent + self.http_started
    }

    /// Returns the number of requests that were answered as expected: messages, pushes and HTTP
    /// requests.
    pub fn requests_answered(&self) -> u64 {
        self.messages_answered + self.pushes_ok + self.http_ok
    }

    /// Returns the number of answers to HTTP requests, whatever their status.
    pub fn http_answers(&self) -> u64 {
        self.http_2xx + self.http_3xx + self.http_4xx + self.http_5xx
    }

    /// Returns the number of connects of `connect` steps that ended: those for HTTP requests are
    /// parts of the requests.
    pub fn connect_steps_ended(&self) -> u64 {
        let for_requests = self.http_connects + self.http_connects_failed;
        (self.connects_ok + self.connects_failed).saturating_sub(for_requests)
    }
}

counters! {
    /// Counters of a generator's probes. At the end, the `expected` deliveries of every probe are
    /// the sum of `delivered`, `left` and `missing`.
    ProbeCounters {
        /// Probes that were due.
        intended,
        /// Probes without a subscriber: no user was connected or joined.
        skipped,
        /// Probes sent.
        sent,
        /// Deliveries that must arrive: one for every user that was subscribed when a probe was
        /// about to be sent.
        expected,
        /// Expected deliveries that arrived in time.
        delivered,
        /// Expected deliveries that became void: the user left the channel or lost its connection
        /// first.
        left,
        /// Expected deliveries that did not arrive in time.
        missing,
        /// Missing deliveries that arrived later.
        late,
        /// Deliveries to users that had already received this probe.
        duplicates,
        /// Deliveries to users that had already received a later probe.
        out_of_order,
        /// Deliveries to users that were not expected to receive the probe: they joined after that
        /// moment, or were leaving.
        unexpected,
    }
}

impl ProbeCounters {
    /// Returns the number of deliveries that may still arrive.
    pub fn outstanding(&self) -> u64 {
        self.expected.saturating_sub(self.delivered + self.left + self.missing)
    }
}

counters! {
    /// Counters of a generator for one class of users; the totals are in [`LoadCounters`].
    ClassCounters {
        /// Iterations that were started.
        users_started,
        /// Iterations that ended without an error.
        users_finished,
        /// Iterations that ended with an error.
        users_failed,
        /// Iterations that were cut off, as in [`LoadCounters`].
        users_cut,
        /// Connects that were established.
        connects_ok,
        /// `expect` steps that received what they expected.
        messages_answered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_name_kind_meaning_and_value() {
        let counters = ServerCounters { open: 7, ..Default::default() };
        let open = counters.fields().find(|field| field.name == "open").unwrap();
        assert_eq!((open.kind, open.value), (MetricKind::Gauge, 7));
        assert_eq!(open.doc.trim(), "Gauge: connections open now.");
        let kind = |name| counters.fields().find(|field| field.name == name).unwrap().kind;
        assert_eq!(kind("registry_mailbox_most"), MetricKind::Maximum);
        assert_eq!(kind("accepted"), MetricKind::Counter);
    }

    #[test]
    fn merging_cores_adds_counters_and_keeps_the_largest_maximum() {
        let mut one = CoreCounters { turns: 3, slots: 5, turn_us_most: 80, ..Default::default() };
        one.merge(&CoreCounters { turns: 4, slots: 6, turn_us_most: 70, ..Default::default() });
        assert_eq!((one.turns, one.slots, one.turn_us_most), (7, 11, 80));
    }

    #[test]
    fn requests_are_messages_pushes_and_http_requests() {
        let begun = LoadCounters {
            connects_ok: 40,
            connects_failed: 20,
            http_connects: 35,
            http_connects_failed: 15,
            messages_sent: 10,
            messages_answered: 9,
            pushes_sent: 200,
            pushes_ok: 100,
            http_started: 3_000,
            http_ok: 2_000,
            joins_started: 7,
            ..Default::default()
        };
        assert_eq!((begun.requests_begun(), begun.requests_answered()), (3_210, 2_109));
        assert_eq!(begun.connect_steps_ended(), 10);
    }

    #[test]
    fn since_subtracts_counters_and_leaves_gauges() {
        let earlier = ServerCounters { accepted: 10, open: 9, ..Default::default() };
        let now = ServerCounters { accepted: 25, open: 4, ..Default::default() };
        let since = now.since(&earlier);
        assert_eq!((since.accepted, since.open), (15, 4));
        let earlier = LoadCounters { joined: 9, joins_ok: 9, ..Default::default() };
        let now = LoadCounters { joined: 4, joins_ok: 12, ..Default::default() };
        assert_eq!((now.since(&earlier).joined, now.since(&earlier).joins_ok), (4, 3));
    }
}
