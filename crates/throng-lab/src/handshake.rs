//! Failed handshakes, by name.
//!
//! A full accept queue has two effects, which are often confused. If the kernel drops a client's
//! SYN, the client waits and tries again: it knows that it has no connection. If the kernel drops
//! the last packet of the handshake, the client sends on a connection that the server does not
//! know: a half-open connection. Only the client's and the server's counts together tell the two
//! apart.

use throng_measure::{Finding, Growth, Interval, Limit, Metric, Series, Side};
use throng_report::render::count;

use crate::reconcile::reconcile;

/// Returns the worse of the two effects that `intervals` show. Returns none if the counts agree and
/// the kernel dropped nothing, or if the counts cannot be compared.
pub fn finding(intervals: &[Interval]) -> Option<Finding> {
    let drops = Series::of_server(intervals, DROPS).growth();
    let overflows = Series::of_server(intervals, OVERFLOWS).growth();
    let moved = |of: &Option<Growth>| of.as_ref().map_or(0, Growth::by);
    let half_open = reconcile(intervals)?.half_open_most;
    let mut found = if half_open > 0 {
        Finding::new(
            HALF_OPEN,
            if moved(&overflows) > 0 { Side::Kernel } else { Side::Network },
            format!(
                "{half_open} connections were half-open at one time: established for the client, \
                 unknown to the server. {}.",
                match &overflows {
                    Some(overflows) if overflows.by() > 0 => format!(
                        "The kernel dropped the last packet of their handshakes at a full accept \
                         queue ({} overflows)",
                        count(overflows.by() as f64)
                    ),
                    Some(_) =>
                        "No accept queue overflowed: a filter drops the last packet of their \
                         handshakes"
                            .to_owned(),
                    None => "The overflows of the accept queue could not be read".to_owned(),
                }
            ),
        )
    } else if moved(&drops) > 0 {
        Finding::new(
            SYNS_DROPPED,
            Side::Kernel,
            format!(
                "No connection was half-open, but SYNs were dropped {} times ({} at a full accept \
                 queue), including those of other programs in this network namespace. Such a \
                 client knows that it has no connection, and tries again a second later.",
                count(moved(&drops) as f64),
                count(moved(&overflows) as f64)
            ),
        )
    } else {
        return None;
    };
    let evidence = [drops, overflows].into_iter().flatten().filter(|moved| moved.by() > 0);
    found.evidence.extend(evidence.map(|moved| moved.evidence()));
    let remedy = if found.side == Side::Network {
        "check the packet filters between client and server: nft list ruleset, conntrack -S"
            .to_owned()
    } else {
        format!("raise --backlog and {}, or accept faster", Limit::SOMAXCONN)
    };
    Some(found.remedied_by(remedy))
}

/// The finding's id for connections that are established for the client and unknown to the server.
pub const HALF_OPEN: &str = "half_open";
/// The finding's id for SYNs that the kernel dropped, which their clients send again.
pub const SYNS_DROPPED: &str = "syns_dropped";

const DROPS: Metric = Metric::TCPEXT_LISTEN_DROPS;
const OVERFLOWS: Metric = Metric::TCPEXT_LISTEN_OVERFLOWS;

#[cfg(test)]
mod tests {
    use throng_measure::{LoadInterval, ServerSnapshot};

    use super::*;
    use crate::reconcile::ACCEPT_QUEUE;

    /// Returns two quiet seconds in which the client has `client` connections and the server
    /// `open`.
    fn run(client: u64, open: u64, drops: i64, overflows: i64) -> Vec<Interval> {
        let mut load = LoadInterval::default();
        load.counters.connected = client;
        let mut server = ServerSnapshot::default();
        server.counters.open = open;
        let interval = |at_ms, moved| Interval {
            at_ms,
            span_ms: 1000,
            load: Some(load.clone()),
            server: Some(server.clone()),
            kernel: [
                (DROPS, 70 + moved * drops),
                (OVERFLOWS, moved * overflows),
                (ACCEPT_QUEUE, 0),
            ]
            .into(),
            ..Interval::default()
        };
        vec![interval(1000, 0), interval(2000, 1)]
    }

    #[test]
    fn connections_that_only_the_client_has_are_half_open_whatever_was_dropped() {
        let found = finding(&run(500, 2, 498, 498)).unwrap();
        assert_eq!(found.id, HALF_OPEN);
        assert!(found.text.starts_with("498 connections were half-open"), "{}", found.text);
        let shown = &found.evidence[0];
        assert_eq!((shown.counter.as_str(), shown.from, shown.to), (DROPS.name(), 70.0, 568.0));
        assert_eq!(shown.at_ms, 2000);
    }

    #[test]
    fn half_open_connections_without_an_overflow_are_a_filters() {
        let found = finding(&run(500, 2, 0, 0)).unwrap();
        assert_eq!((found.id.as_str(), found.side), (HALF_OPEN, Side::Network));
        assert!(
            found.text.contains("No accept queue overflowed") && !found.remedy.contains("backlog")
        );
    }

    #[test]
    fn drops_without_half_open_connections_are_dropped_syns() {
        let found = finding(&run(2, 2, 9, 7)).unwrap();
        assert_eq!(found.id, SYNS_DROPPED);
        assert!(found.text.contains("SYNs were dropped 9 times (7 at a full"), "{}", found.text);
        assert!(found.remedy.contains("--backlog"));
    }

    #[test]
    fn counts_that_agree_and_counts_that_cannot_be_compared_are_no_finding() {
        assert_eq!(finding(&run(500, 500, 0, 0)), None);
        let mut alone = run(500, 2, 9, 9);
        alone.iter_mut().for_each(|interval| interval.server = None);
        assert_eq!(finding(&alone), None);
        assert_eq!(finding(&[]), None);
    }
}
