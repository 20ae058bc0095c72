//! What a restart of one of several servers that share topics does to deliveries.

use serde::Serialize;
use throng_report::{Interval, ProbeReport};

/// The deliveries of the broadcasts of a run: of those while all users were there, and of those
/// around the restart.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct RestartDeliveries {
    /// Broadcasts while all users were there, and had been there for [`SETTLED_MS`].
    settled: Deliveries,
    /// Broadcasts from the first lost connection until all users were there again for as long.
    restart: Deliveries,
}

/// The deliveries of some broadcasts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Deliveries {
    broadcasts: u64,
    /// Broadcasts that reached no user: the server ended before it read them.
    unread: u64,
    expected: u64,
    delivered: u64,
    /// Deliveries that became void, because the user lost its connection first.
    left: u64,
    /// Deliveries that did not arrive, of broadcasts that reached other users.
    missing: u64,
    /// Deliveries that came twice.
    twice: u64,
    out_of_order: u64,
}

impl Deliveries {
    fn add(&mut self, probe: &ProbeReport) {
        let of = &probe.counters;
        self.broadcasts += 1;
        if of.delivered == 0 {
            self.unread += 1;
        } else {
            self.missing += of.missing;
        }
        self.expected += of.expected;
        self.delivered += of.delivered;
        self.left += of.left;
        self.twice += of.duplicates;
        self.out_of_order += of.out_of_order;
    }
}

/// Counts the deliveries. Those before all `users` were there for the first time do not count, nor
/// those while they leave.
pub(crate) fn restart_deliveries(
    users: u64,
    intervals: &[Interval],
    probes: &[ProbeReport],
) -> RestartDeliveries {
    // The moment at the end of each interval, and whether all users were there.
    let moments: Vec<(u64, bool)> = intervals
        .iter()
        .filter_map(|interval| interval.load.as_ref().map(|load| (interval.at_ms, load)))
        .filter(|(_, load)| !load.is_leaving())
        .map(|(at_ms, load)| (at_ms, load.counters.joined >= users))
        .collect();
    let mut found = RestartDeliveries::default();
    let Some(first) = moments.iter().find(|(_, all)| *all).map(|(at_ms, _)| *at_ms) else {
        return found;
    };
    let end = moments.last().map_or(0, |(at_ms, _)| *at_ms);
    let counted = first + SETTLED_MS..=end.saturating_sub(SETTLED_MS);
    let has_subscribers = |probe: &&ProbeReport| probe.counters.expected > 0;
    for probe in probes.iter().filter(has_subscribers) {
        let due = probe.due_ms;
        if !counted.contains(&due) {
            continue;
        }
        let near = due.saturating_sub(SETTLED_MS)..=due + SETTLED_MS;
        let is_settled = moments.iter().filter(|(at, _)| near.contains(at)).all(|(_, all)| *all);
        let part = if is_settled { &mut found.settled } else { &mut found.restart };
        part.add(probe);
    }
    found
}

/// The time for which all users must be there before and after a broadcast that counts as settled.
/// It is longer than an interval of the lab.
const SETTLED_MS: u64 = 500;

#[cfg(test)]
mod tests {
    use throng_report::{LoadInterval, ProbeCounters};

    use super::*;
    use crate::experiment::tests::verdict;

    fn interval(at_ms: u64, joined: u64) -> Interval {
        let mut load = LoadInterval::default();
        load.counters.joined = joined;
        Interval { at_ms, span_ms: 250, load: Some(load), ..Interval::default() }
    }

    fn probe(due_ms: u64, delivered: u64, missing: u64, left: u64) -> ProbeReport {
        let expected = delivered + missing + left;
        let counters =
            ProbeCounters { expected, delivered, missing, left, ..ProbeCounters::default() };
        ProbeReport { due_ms, counters, ..ProbeReport::default() }
    }

    #[test]
    fn what_is_missing_around_the_restart_is_told_apart() {
        let joined = |at_ms: u64| match at_ms {
            0..=250 => 50,
            251..3_000 => 100,
            3_000..4_000 => 50,
            _ => 100,
        };
        let intervals: Vec<_> = (1..=28).map(|n| interval(250 * n, joined(250 * n))).collect();
        let probes = [
            probe(300, 60, 5, 0),
            probe(1_500, 100, 0, 0),
            probe(2_900, 0, 50, 50),
            probe(3_500, 50, 0, 0),
            probe(3_900, 60, 3, 0),
            probe(5_000, 99, 1, 0),
        ];
        let found = restart_deliveries(100, &intervals, &probes);
        let Deliveries { broadcasts, unread, missing, left, .. } = found.restart;
        assert_eq!((broadcasts, unread, missing, left), (3, 1, 3, 50));
        let Deliveries { broadcasts, unread, missing, .. } = found.settled;
        assert_eq!((broadcasts, unread, missing), (2, 0, 1), "the first one came too early");
        assert_eq!(restart_deliveries(101, &intervals, &probes), RestartDeliveries::default());
    }

    #[test]
    fn the_verdict_tells_what_may_be_missing_from_what_may_not() {
        let row = |settled_missing: u64, twice: u64| {
            let part = |missing: u64, unread: u64| {
                serde_json::json!({
                    "broadcasts": 10, "unread": unread, "expected": 1000, "delivered": 990, "left": 5,
                    "missing": missing, "twice": twice / 2, "out_of_order": 0
                })
            };
            serde_json::json!({
                "users": 100, "down_ms": 1_500, "all_back_ms": 2_000,
                "settled": part(settled_missing, 0), "restart": part(4, 1)
            })
        };
        let sentences = verdict("two-nodes", &row(0, 0));
        assert!(sentences.contains("reached every user of both nodes once"), "{sentences}");
        assert!(sentences.contains("4 of 1k deliveries were missing"), "{sentences}");
        let sentences = verdict("two-nodes", &row(3, 4));
        assert!(
            sentences.contains("3 deliveries were missing, 0 messages reached nobody, and 4"),
            "{sentences}"
        );
        assert!(!sentences.contains("reached every user"), "{sentences}");
        let sentences = verdict("two-nodes", &serde_json::json!({"users": 100}));
        assert!(sentences.contains("No server was restarted"), "{sentences}");
    }
}
