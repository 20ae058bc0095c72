//! The counters of a server.

use serde::{Deserialize, Serialize};

use super::{CounterField, Merge};
use crate::metric::MetricKind;

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
        /// Long-poll sessions refused, because there were already `poll_sessions_max` or their
        /// address had its share, or ended before their first use, for a new one.
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
        /// Handshakes of TLS that have begun.
        tls_handshakes,
        /// Handshakes of TLS after which the connection was open.
        tls_opened,
        /// Handshakes of TLS that resumed an earlier session.
        tls_resumed,
        /// Connections closed because their TLS handshake took too long.
        tls_handshake_timeouts,
        /// Connections closed because TLS failed, in the handshake or later; `tls_errors` has the
        /// names of the failures.
        tls_failures,
        /// Open TLS connections whose client ended them without `close_notify`.
        tls_truncated,
        /// Gauge: handshakes of TLS that are under way.
        tls_under_way: gauge,
        /// Gauge: bytes of TLS records that have arrived in part.
        tls_part_bytes: gauge,
    }
}
