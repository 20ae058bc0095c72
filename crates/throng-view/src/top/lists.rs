//! The lists of a look: cores, topics, slow and busy connections.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use throng_base::units::{brief_bytes, brief_count, brief_duration, brief_rate, brief_share};
use throng_measure::{
    BusyConnection, CoreInspection, ServerInspection, SlowConnection, TopicInspection,
};
use throng_report::render::Align::{Left, Right};
use throng_report::render::{Align, or_dash};

use super::TopOrder;
use super::list::{Column, NAME, TopList};

/// Returns one line about the server.
pub(super) fn summary(look: &ServerInspection) -> String {
    let sum = |value: fn(&CoreInspection) -> u64| look.cores.iter().map(value).sum::<u64>();
    let rate = |value: fn(&CoreInspection) -> u64| {
        brief_rate(look.cores.iter().map(|core| per_s(value(core), core.span_us)).sum())
    };
    format!(
        "{} on {}: {} of {} connections, {} accepts, {} messages in, {} out, {} queued",
        look.handler,
        look.listen,
        count(sum(|core| core.connections)),
        count(look.connections_max),
        rate(|core| core.accepted),
        rate(|core| core.messages_received),
        rate(|core| core.messages_sent + core.fanned_out),
        bytes(sum(|core| core.pending_bytes)),
    )
}

/// Describes the node in one line, if the server shares its topics with others.
pub(super) fn node(look: &ServerInspection) -> Option<String> {
    let node = look.node.as_ref()?;
    let others = match node.others.is_empty() {
        true => "no other node is there".to_owned(),
        false => format!("shares topics with {}", node.others.join(", ")),
    };
    let bus = if node.is_bus_away { "THE BUS IS AWAY; " } else { "" };
    Some(format!(
        "node {}: {bus}{others}; {} publications to the bus, {} from others, {} dropped, {} lost",
        node.name,
        count(node.published),
        count(node.received),
        count(node.dropped),
        count(node.lost),
    ))
}

/// Returns all lists, in the order in which they are shown.
pub(super) fn all(
    look: &ServerInspection,
    publications_per_s: &HashMap<String, f64>,
    order: TopOrder,
) -> [TopList; 4] {
    [cores(look), topics(look, publications_per_s, order), slow(look, order), busy(look, order)]
}

fn cores(look: &ServerInspection) -> TopList {
    let mut list = TopList::new(CORES, "the server has no cores");
    for core in &look.cores {
        let rate = |count: u64| brief_rate(per_s(count, core.span_us));
        let known = |text: String| if core.silent_ms.is_none() { text } else { "-".to_owned() };
        let state = match core.silent_ms {
            Some(ms) => format!("silent for {}", brief_duration(Duration::from_millis(ms))),
            None if core.is_paused => "does not accept".to_owned(),
            None => String::new(),
        };
        // A turn that began before the look may be longer than its span.
        let busy = (core.busy_us as f64 / core.span_us.max(1) as f64).min(1.0);
        let bytes_per_s = |count: u64| format!("{}/s", bytes(per_s(count, core.span_us) as u64));
        let cells = [
            core.core.to_string(),
            count(core.connections),
            known(rate(core.accepted)),
            known(rate(core.messages_received)),
            known(rate(core.messages_sent + core.fanned_out)),
            known(bytes_per_s(core.bytes_received)),
            known(bytes_per_s(core.bytes_sent)),
            known(brief_share(busy)),
            known(brief_duration(Duration::from_micros(core.turn_us_most))),
            known(count(core.mailbox_most)),
            known(bytes(core.pending_bytes)),
            known(count(core.slow_connections)),
            known(count(core.memberships)),
            state,
        ];
        list.row(cells, core.silent_ms.is_some() || core.is_paused || busy > BUSY_ALARM);
    }
    list
}

fn topics(
    look: &ServerInspection,
    publications_per_s: &HashMap<String, f64>,
    order: TopOrder,
) -> TopList {
    let mut list = TopList::new(TOPICS, "no topic has members");
    let rate = |topic: &TopicInspection| publications_per_s.get(&topic.topic).copied();
    let mut topics: Vec<&TopicInspection> = look.topics.iter().collect();
    if order == TopOrder::Rate {
        topics.sort_by(|a, b| rate(b).unwrap_or(-1.0).total_cmp(&rate(a).unwrap_or(-1.0)));
    }
    for topic in topics {
        let cells = [
            topic.topic.clone(),
            count(topic.members),
            or_dash(rate(topic), brief_rate),
            count(topic.publications_waiting),
        ];
        list.row(cells, false);
    }
    if !look.topics_are_largest {
        list.note = Some("another topic may be larger: cores hold too many to compare".to_owned());
    }
    list
}

fn slow(look: &ServerInspection, order: TopOrder) -> TopList {
    let mut list = TopList::new(SLOW, "no connection is slow");
    let mut slow: Vec<&SlowConnection> = look.slow.iter().collect();
    if order == TopOrder::Rate {
        slow.sort_by_key(|it| Reverse(it.stalled_us));
    }
    for it in slow {
        let time = |us| brief_duration(Duration::from_micros(us));
        let cells = [
            it.peer.clone().unwrap_or_else(|| "-".to_owned()),
            bytes(it.pending_bytes),
            or_dash(it.unacknowledged_bytes, bytes),
            time(it.stalled_us),
            time(it.blocked_us),
            it.core.to_string(),
            it.connection.clone(),
        ];
        list.row(cells, it.stalled_us > STALL_ALARM_US);
    }
    let is_unseen = |core: &CoreInspection| core.silent_ms.is_some() || !core.is_seen();
    if look.cores.iter().any(is_unseen) {
        list.note = Some("not all connections were seen: a core was too busy".to_owned());
    }
    list
}

fn busy(look: &ServerInspection, order: TopOrder) -> TopList {
    let mut list = TopList::new(BUSY, "no connection was active");
    let mut busy: Vec<&BusyConnection> = look.busy.iter().collect();
    if order == TopOrder::Rate {
        busy.sort_by(|a, b| messages_per_s(b).total_cmp(&messages_per_s(a)));
    }
    for it in busy {
        let rate = |count| brief_rate(per_s(count, it.span_us));
        let bytes_per_s = |count| format!("{}/s", bytes(per_s(count, it.span_us) as u64));
        let cells = [
            it.peer.clone().unwrap_or_else(|| "-".to_owned()),
            rate(it.messages_received),
            rate(it.sends),
            bytes_per_s(it.bytes_received),
            bytes_per_s(it.bytes_sent),
            it.core.to_string(),
            it.connection.clone(),
        ];
        list.row(cells, false);
    }
    if look.busy_missed_bytes_max > 0 {
        let missed = bytes(look.busy_missed_bytes_max);
        list.note = Some(format!("many are active: each count may lack up to {missed} of work"));
    }
    list
}

fn count(count: u64) -> String {
    brief_count(count as f64)
}

fn bytes(bytes: u64) -> String {
    brief_bytes(bytes as f64)
}

fn messages_per_s(busy: &BusyConnection) -> f64 {
    per_s(busy.messages_received + busy.sends, busy.span_us)
}

fn per_s(count: u64, span_us: u64) -> f64 {
    if span_us == 0 { 0.0 } else { count as f64 * 1e6 / span_us as f64 }
}

const fn column(head: &'static str, align: Align, importance: u8) -> Column {
    Column { head, align, importance }
}

const CORES: &[Column] = &[
    column("CORE", Right, NAME),
    column("open", Right, 100),
    column("accepts", Right, 90),
    column("in", Right, 80),
    column("out", Right, 80),
    column("bytes in", Right, 20),
    column("bytes out", Right, 20),
    column("busy", Right, 95),
    column("max turn", Right, 85),
    column("mailbox", Right, 86),
    column("queued", Right, 88),
    column("slow", Right, 70),
    column("memberships", Right, 10),
    column("", Left, 99),
];

const TOPICS: &[Column] = &[
    column("TOPIC", Left, NAME),
    column("members", Right, 100),
    column("publications", Right, 90),
    column("waiting", Right, 80),
];

const SLOW: &[Column] = &[
    column("SLOW", Left, NAME),
    column("queued", Right, 100),
    column("in kernel", Right, 80),
    column("takes nothing for", Right, 90),
    column("behind for", Right, 70),
    column("core", Right, 60),
    column("connection", Left, 50),
];

const BUSY: &[Column] = &[
    column("BUSY", Left, NAME),
    column("messages in", Right, 100),
    column("sends", Right, 95),
    column("bytes in", Right, 90),
    column("bytes out", Right, 90),
    column("core", Right, 60),
    column("connection", Left, 50),
];

/// The share of its time above which a core has little room.
const BUSY_ALARM: f64 = 0.9;
/// The time after which a peer that takes nothing has probably stopped to read.
const STALL_ALARM_US: u64 = 5_000_000;
