//! What a restart of one of several servers that share topics does to deliveries.

use serde::Serialize;
use throng_measure::{Interval, ProbeReport};

use crate::measure::whole_load;
use crate::run_watch::ServerHistory;

/// The deliveries of the broadcasts of a run: of those while all users were there, and of those
/// around the restart.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct RestartDeliveries {
    /// Broadcasts while all users were there, on servers that shared the topic, from [`SETTLED_MS`]
    /// before each broadcast until as long after it.
    settled: Deliveries,
    /// Broadcasts from the first lost connection until this was so again.
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
    servers: &ServerHistory,
) -> RestartDeliveries {
    let moments = moments(users, intervals, servers);
    let mut found = RestartDeliveries::default();
    let Some(first) = moments.iter().find(|moment| moment.has_all) else { return found };
    let end = moments.last().map_or(0, |moment| moment.at_ms);
    let counted = first.at_ms + SETTLED_MS..=end.saturating_sub(SETTLED_MS);
    let has_subscribers = |probe: &&ProbeReport| probe.counters.expected > 0;
    for probe in probes.iter().filter(has_subscribers) {
        if counted.contains(&probe.due_ms) {
            let is_settled = is_settled(&moments, probe.due_ms);
            let part = if is_settled { &mut found.settled } else { &mut found.restart };
            part.add(probe);
        }
    }
    found
}

/// The end of an interval.
struct RoomSample {
    at_ms: u64,
    /// All users were there, on servers that were known to share their topics.
    has_all: bool,
}

/// Returns the moments of the load at which the users of all cores are known, and those at which a
/// server ended, in order.
fn moments(users: u64, intervals: &[Interval], servers: &ServerHistory) -> Vec<RoomSample> {
    let moment = |interval: &Interval| {
        let load = whole_load(interval).filter(|load| !load.is_leaving())?;
        let at_ms = interval.at_ms;
        let has_all = load.counters.joined >= users && servers.shared_at(at_ms);
        Some(RoomSample { at_ms, has_all })
    };
    let ended = servers.sharing.iter().filter(|(_, is_sharing)| !is_sharing);
    let ended = ended.map(|(at_ms, _)| RoomSample { at_ms: *at_ms, has_all: false });
    let mut moments: Vec<_> = intervals.iter().filter_map(moment).chain(ended).collect();
    moments.sort_by_key(|moment| moment.at_ms);
    moments
}

/// Reports whether all users are known to have been there from [`SETTLED_MS`] before a broadcast
/// until as long after it. Without a moment on either side, this is unknown.
fn is_settled(moments: &[RoomSample], due_ms: u64) -> bool {
    let after = moments.partition_point(|moment| moment.at_ms < due_ms + SETTLED_MS);
    let before = moments.partition_point(|moment| moment.at_ms + SETTLED_MS <= due_ms);
    before > 0
        && after < moments.len()
        && moments[before - 1..=after].iter().all(|moment| moment.has_all)
}

/// The time for which all users must be there before and after a broadcast that counts as settled.
/// It is longer than an interval of the lab.
const SETTLED_MS: u64 = 500;

#[cfg(test)]
mod tests {
    use throng_measure::{LoadInterval, ProbeCounters};

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

    fn shared(sharing: &[(u64, bool)]) -> ServerHistory {
        ServerHistory { sharing: sharing.to_vec(), ..ServerHistory::default() }
    }

    /// Checks the numbers of settled broadcasts and of the others, of one every 100 ms, where all
    /// 100 users are there at each of these moments.
    #[track_caller]
    fn check(intervals: &[Interval], sharing: &[(u64, bool)], settled: u64, others: u64) {
        let probes: Vec<_> = (1..100).map(|n| probe(100 * n, 100, 0, 0)).collect();
        let found = restart_deliveries(100, intervals, &probes, &shared(sharing));
        assert_eq!((found.settled.broadcasts, found.restart.broadcasts), (settled, others));
    }

    #[test]
    fn a_broadcast_is_settled_if_all_users_are_known_to_be_there_before_and_after_it() {
        let all = |at_ms: &[u64]| at_ms.iter().map(|at| interval(*at, 100)).collect::<Vec<_>>();
        // Counted are those from 600 to 2,500.
        check(&all(&[100, 500, 1_000, 1_500, 2_000, 2_500, 3_000]), &[(0, true)], 20, 0);
        // Nothing is known of the users for three seconds, in which some of them were away.
        let mut gap = all(&[100, 500, 3_500, 4_000]);
        check(&gap, &[(0, true)], 30, 0);
        gap[2].load.as_mut().unwrap().counters.joined = 99;
        check(&gap, &[(0, true)], 0, 30);
        // The same where a core did not say what it has.
        let mut silent = all(&[100, 500, 1_000, 1_500, 2_000]);
        silent[2].load.as_mut().unwrap().counters.joined = 50;
        check(&silent, &[(0, true)], 0, 10);
        silent[2].load.as_mut().unwrap().cores_silent = 1;
        check(&silent, &[(0, true)], 10, 0);
    }

    #[test]
    fn a_broadcast_is_settled_if_the_servers_are_known_to_share_the_topic() {
        let all: Vec<_> = (1..=40).map(|n| interval(100 * n, 100)).collect();
        check(&all, &[(100, true)], 30, 0);
        check(&all, &[], 0, 0);
        // One server ends after 2 s, and the bus knows the new one half a second later: settled are
        // those from 600 to 1,400, and from 3,000 to 3,500.
        let restart = [(100, true), (2_000, false), (2_500, true)];
        check(&all, &restart, 15, 15);
        // Nothing is known of the users while it restarts.
        let gap: Vec<_> = [100, 1_500, 3_000, 4_000].map(|at| interval(at, 100)).into();
        check(&gap, &restart, 6, 24);
        assert_eq!(shared(&restart).shared_after_ms(), Some(500));
        assert_eq!(shared(&restart[..2]).shared_after_ms(), None);
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
        let shared = shared(&[(200, true)]);
        let found = restart_deliveries(100, &intervals, &probes, &shared);
        let Deliveries { broadcasts, unread, missing, left, .. } = found.restart;
        assert_eq!((broadcasts, unread, missing, left), (3, 1, 3, 50));
        let Deliveries { broadcasts, unread, missing, .. } = found.settled;
        assert_eq!((broadcasts, unread, missing), (2, 0, 1), "the first one came too early");
        assert_eq!(
            restart_deliveries(101, &intervals, &probes, &shared),
            RestartDeliveries::default()
        );
    }

    #[test]
    fn the_verdict_tells_what_may_be_missing_from_what_may_not() {
        let row = |missing: u64, twice: u64, out_of_order: u64| {
            let part = |missing: u64, unread: u64, out_of_order: u64| {
                serde_json::json!({
                    "broadcasts": 10, "unread": unread, "expected": 1000, "delivered": 990,
                    "left": 5, "missing": missing, "twice": twice / 2,
                    "out_of_order": out_of_order
                })
            };
            serde_json::json!({
                "users": 100, "down_ms": 1_500, "all_back_ms": 2_000, "shared_after_ms": 1_700,
                "settled": part(missing, 0, out_of_order), "restart": part(4, 1, 7)
            })
        };
        let sentences = verdict("two-nodes", &row(0, 0, 0));
        assert!(sentences.contains("every user of both nodes once and in order"), "{sentences}");
        assert!(sentences.contains("4 of 1k deliveries were missing"), "{sentences}");
        assert!(!sentences.contains("did not share the room"), "{sentences}");
        let sentences = verdict("two-nodes", &row(3, 4, 0));
        assert!(
            sentences.contains(
                "3 deliveries were missing, 0 messages reached no user, 0 deliveries came out of \
                 order, and 4 came twice"
            ),
            "{sentences}"
        );
        assert!(!sentences.contains("reached every user"), "{sentences}");
        let sentences = verdict("two-nodes", &row(0, 0, 2));
        assert!(sentences.contains("2 deliveries came out of order"), "{sentences}");
        let mut apart = row(0, 0, 0);
        apart["shared_after_ms"] = serde_json::Value::Null;
        let sentences = verdict("two-nodes", &apart);
        assert!(sentences.contains("did not share the room with the other one"), "{sentences}");
        let sentences = verdict("two-nodes", &serde_json::json!({"users": 100}));
        assert!(sentences.contains("No server was restarted"), "{sentences}");
    }
}
