//! A look into a running server: its cores, its largest topics, its slowest and its busiest
//! connections, as `throng top` shows them.
//!
//! A look takes a moment: each core counts for `span_us`, and walks over its connections and topics
//! meanwhile, a few in each turn. Counts are the growth in that span; everything else is as of its
//! end.

use serde::{Deserialize, Serialize};

/// One look into a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerInspection {
    /// The listening address, `127.0.0.1:5555`.
    pub listen: String,
    /// The name of the handler: `ok`, `echo`, ….
    pub handler: String,
    /// The accept topology: `reuseport`, `shared` or `dispatch`.
    pub accept: String,
    /// The limit of connections over all cores.
    pub connections_max: u64,
    /// The node, if the server shares its topics with others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeInspection>,
    /// The cores, by number.
    pub cores: Vec<CoreInspection>,
    /// The topics with the most members, most first.
    pub topics: Vec<TopicInspection>,
    /// Whether no other topic can have more members than these. False if too many topics share
    /// their members between the cores, or a core was silent.
    pub topics_are_largest: bool,
    /// The connections whose peers are slow, with the most queued bytes first.
    pub slow: Vec<SlowConnection>,
    /// The connections with the most work in the span, most first. The work of a connection is its
    /// bytes, and a kilobyte for each message and each send.
    pub busy: Vec<BusyConnection>,
    /// The most bytes of work that the counts of a busy connection lack. 0 if they are exact: then
    /// at most some thousand connections of each core were active.
    pub busy_missed_bytes_max: u64,
}

/// A server among those that share topics, in a look. Counts are since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeInspection {
    /// The name of this node.
    pub name: String,
    /// The names of the other nodes, in order.
    pub others: Vec<String>,
    /// Whether the bus is away: other nodes receive nothing.
    pub is_bus_away: bool,
    /// Publications given to the bus for other nodes.
    pub published: u64,
    /// Publications that arrived from other nodes.
    pub received: u64,
    /// Publications that other nodes do not receive.
    pub dropped: u64,
    /// Messages of the bus that were lost on arrival, because too many waited.
    pub lost: u64,
}

/// One core in a look.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CoreInspection {
    /// The number of the core.
    pub core: u64,
    /// Milliseconds for which the core has not answered, because a handler stalls, for example.
    /// Then `connections` is as of its last answer, and all else is unknown. `None` if it answered.
    pub silent_ms: Option<u64>,
    /// Length of the span in which this core counted, in microseconds.
    pub span_us: u64,
    /// Connections open.
    pub connections: u64,
    /// Places in the table of connections that the look walked over. Fewer than there are
    /// (`places`) if the core was too busy: then slow connections may be missing.
    pub places_seen: u64,
    /// Places in the table of connections, free ones included.
    pub places: u64,
    /// Whether the core does not accept at the moment: no fds, or `connections_max` is reached.
    pub is_paused: bool,
    /// Connections accepted in the span.
    pub accepted: u64,
    /// Connections closed in the span.
    pub closed: u64,
    /// Messages received in the span.
    pub messages_received: u64,
    /// Answers that the handler sent in the span.
    pub messages_sent: u64,
    /// Frames of publications written to subscribers, or queued for them, in the span.
    pub fanned_out: u64,
    /// Bytes received in the span.
    pub bytes_received: u64,
    /// Bytes that the kernel took in the span.
    pub bytes_sent: u64,
    /// Turns of the event loop in the span.
    pub turns: u64,
    /// Time inside these turns, in microseconds; the rest of the span the core has waited.
    pub busy_us: u64,
    /// The longest of these turns, in microseconds.
    pub turn_us_most: u64,
    /// Messages in the mailbox now.
    pub mailbox: u64,
    /// The most messages that a turn of the span found in the mailbox.
    pub mailbox_most: u64,
    /// Bytes that wait in this process for slow peers.
    pub pending_bytes: u64,
    /// Connections for which bytes wait in this process.
    pub slow_connections: u64,
    /// Topics that have members on this core.
    pub topics: u64,
    /// Memberships of this core's connections.
    pub memberships: u64,
    /// Publications that wait for room in other cores' mailboxes.
    pub publications_waiting: u64,
}

/// A topic in a look.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TopicInspection {
    /// The name, at most 256 bytes of it. Clients choose it: it may contain anything.
    pub topic: String,
    /// Members on all cores.
    pub members: u64,
    /// Publications since the topic has had members, on the core that has had them for longest; it
    /// begins again at 2^32.
    pub publications: u64,
    /// Publications that some members have not received yet, on the core that has most of them.
    pub publications_waiting: u64,
}

/// A connection whose peer does not take what is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlowConnection {
    /// The number of its core.
    pub core: u64,
    /// The name of the connection on its core: place and generation, `12v3`.
    pub connection: String,
    /// The peer's address, if the socket has one.
    pub peer: Option<String>,
    /// Bytes that wait in this process until the kernel takes them.
    pub pending_bytes: u64,
    /// Bytes that the kernel holds because the peer has not acknowledged them; `None` if unknown.
    pub unacknowledged_bytes: Option<u64>,
    /// Microseconds for which some bytes have waited here, without a break.
    pub blocked_us: u64,
    /// Microseconds since the kernel last took some of them.
    pub stalled_us: u64,
}

/// A connection with much work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BusyConnection {
    /// The number of its core.
    pub core: u64,
    /// The name of the connection on its core: place and generation, `12v3`.
    pub connection: String,
    /// The peer's address, if the socket has one.
    pub peer: Option<String>,
    /// Length of the span in which its core counted, in microseconds.
    pub span_us: u64,
    /// Messages received in the span.
    pub messages_received: u64,
    /// Bytes received in the span.
    pub bytes_received: u64,
    /// Sends in the span. One may carry several messages, and a large message may need several.
    pub sends: u64,
    /// Bytes that the kernel took in the span.
    pub bytes_sent: u64,
    /// Work in the span, in bytes: the order of the list.
    pub work_bytes: u64,
}

impl ServerInspection {
    /// Shortens each list to `rows`.
    pub fn truncate(&mut self, rows: usize) {
        self.topics.truncate(rows);
        self.slow.truncate(rows);
        self.busy.truncate(rows);
    }

    /// Reports whether every core answered and walked over all of its connections.
    pub fn is_complete(&self) -> bool {
        let is_seen = |core: &CoreInspection| core.silent_ms.is_none() && core.is_seen();
        self.cores.iter().all(is_seen)
    }
}

impl CoreInspection {
    /// Reports whether the look walked over all connections of the core.
    pub fn is_seen(&self) -> bool {
        self.places_seen >= self.places
    }
}
