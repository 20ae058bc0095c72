//! Broadcasts: what their deliveries say, and how they change as the users become more.

use serde::Serialize;
use throng_load::scenario::Phase;
use throng_measure::{Interval, ProbeReport};
use throng_report::Summary;

use crate::run_facts::RunFacts;
use crate::user_cost::server_cpu_us;

/// The broadcasts of a run, and the users at each of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct BroadcastGrowth {
    all: Vec<BroadcastResult>,
    /// Few enough for a table.
    shown: Vec<BroadcastResult>,
}

/// A broadcast, and the users at that moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct BroadcastResult {
    /// Users that should have arrived by then.
    due: u64,
    connected: u64,
    joined: u64,
    broadcast: ProbeReport,
}

/// Returns the broadcasts that had subscribers.
pub(crate) fn growth(intervals: &[Interval], probes: &[ProbeReport]) -> BroadcastGrowth {
    // Users that leave at the end do not count.
    let staying = || {
        let loads = intervals.iter().filter_map(|i| i.load.as_ref().map(|load| (i.at_ms, load)));
        loads.filter(|(_, load)| !load.is_leaving())
    };
    let at = |due_ms: u64| {
        staying().find(|(at_ms, _)| *at_ms >= due_ms).or_else(|| staying().next_back())
    };
    let moment = |probe: &ProbeReport| {
        let load = at(probe.due_ms).map(|(_, load)| &load.counters);
        BroadcastResult {
            due: load.map_or(0, |counters| counters.users_intended),
            connected: load.map_or(0, |counters| counters.connected),
            joined: load.map_or(0, |counters| counters.joined),
            broadcast: probe.clone(),
        }
    };
    let all: Vec<_> =
        probes.iter().filter(|probe| probe.counters.expected > 0).map(moment).collect();
    BroadcastGrowth { shown: shown(&all), all }
}

/// Selects about ten broadcasts while the users become more, evenly, and of the later ones the
/// first, the middle and the last.
fn shown(growth: &[BroadcastResult]) -> Vec<BroadcastResult> {
    let most = growth.iter().map(|moment| moment.joined).max();
    let full = growth.iter().position(|moment| Some(moment.joined) == most).unwrap_or(0);
    let (coming, there) = growth.split_at(full);
    let some = coming.iter().step_by(coming.len().div_ceil(ROWS_MOST).max(1));
    let mut rest = [0, there.len() / 2, there.len().saturating_sub(1)].to_vec();
    rest.dedup();
    some.chain(rest.into_iter().filter_map(|at| there.get(at))).cloned().collect()
}

/// Returns the last broadcast to the most users.
pub(crate) fn to_all(probes: &[ProbeReport]) -> Option<&ProbeReport> {
    let reached = probes.iter().filter(|probe| probe.counters.expected > 0);
    reached.max_by_key(|probe| (probe.counters.expected, probe.counters.delivered))
}

/// A phase of the load in which the number of users is constant.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Plateau {
    users: u64,
    connected: u64,
    /// Growth of the server's resident memory up to this size.
    server_rss_bytes: Option<u64>,
    /// CPU time of the server up to this size, in microseconds.
    server_cpu_us: Option<u64>,
    /// The fastest broadcast at this size.
    broadcast: Option<ProbeReport>,
}

/// Returns the result of each `hold` after a `ramp`, and of each of the `steps`.
pub(crate) fn plateaus(facts: &RunFacts<'_>) -> Vec<Plateau> {
    let (mut at_ms, mut users) = (0, 0);
    let mut plateaus = Vec::new();
    let probes = facts.probes();
    for phase in facts.sized.scenario.load.shared() {
        let from_ms = at_ms;
        at_ms += phase.length().as_millis() as u64;
        match phase {
            Phase::Ramp { to, .. } => users = u64::from(*to),
            Phase::Hold { .. } => {
                plateaus.push(plateau(users, facts.intervals(), &probes, (from_ms, at_ms)));
            }
            Phase::Step { to, .. } => {
                users = u64::from(*to);
                plateaus.push(plateau(users, facts.intervals(), &probes, (from_ms, at_ms)));
            }
            Phase::Spike { .. } | Phase::Arrivals { .. } | Phase::Recorded { .. } => {}
        }
    }
    plateaus
}

fn plateau(
    users: u64,
    intervals: &[Interval],
    probes: &[ProbeReport],
    (from_ms, to_ms): (u64, u64),
) -> Plateau {
    let at_end = intervals.iter().rev().find(|interval| {
        interval.at_ms <= to_ms && interval.load.is_some() && interval.server.is_some()
    });
    let process = at_end.and_then(|end| end.server.as_ref()).map(|server| &server.process);
    let here = |probe: &&ProbeReport| {
        (from_ms..to_ms).contains(&probe.due_ms) && probe.counters.delivered > 0
    };
    let load = at_end.and_then(|end| end.load.as_ref());
    Plateau {
        users,
        connected: load.map_or(0, |load| load.counters.connected),
        server_rss_bytes: process.map(|p| p.rss_bytes.saturating_sub(p.rss_bytes_at_start)),
        server_cpu_us: at_end.and_then(server_cpu_us),
        broadcast: probes.iter().filter(here).min_by_key(|probe| probe.last_us).cloned(),
    }
}

/// Returns a sentence about the broadcasts: every user received each of them, or the faults.
pub(crate) fn delivery_sentence(probes: &[ProbeReport]) -> String {
    let sum = |of: fn(&ProbeReport) -> u64| probes.iter().map(of).sum::<u64>();
    let delivered = probes.iter().filter(|probe| probe.counters.delivered > 0).count();
    if delivered == 0 {
        return "No broadcast reached a user.".to_owned();
    }
    let faults: Vec<_> = [
        ("missing", sum(|probe| probe.counters.missing)),
        ("duplicated", sum(|probe| probe.counters.duplicates)),
        ("out of order", sum(|probe| probe.counters.out_of_order)),
    ]
    .into_iter()
    .filter(|(_, n)| *n > 0)
    .map(|(fault, n)| format!("{n} {fault}"))
    .collect();
    let left = match sum(|probe| probe.counters.left) {
        0 => String::new(),
        left => format!(" ({left} had left before the delivery)"),
    };
    if faults.is_empty() {
        return format!(
            "Each of {delivered} broadcasts reached every user who was there, once and in \
             order{left}."
        );
    }
    format!(
        "{} deliveries of {delivered} broadcasts were due: {}{left}.",
        sum(|probe| probe.counters.expected),
        faults.join(", ")
    )
}

/// Returns a sentence with the errors by kind; none without errors.
pub(crate) fn errors_sentence(summary: &Summary) -> Option<String> {
    if summary.errors.total() == 0 {
        return None;
    }
    let kinds = summary.errors.0.iter().map(|(kind, n)| format!("{kind} {n}"));
    let connects = summary.connect.failed.0.iter().map(|(kind, n)| format!("{kind} {n}"));
    let connects = match summary.connect.failed.total() {
        0 => String::new(),
        _ => format!(" (connects: {})", connects.collect::<Vec<_>>().join(", ")),
    };
    Some(format!("Errors: {}{connects}.", kinds.collect::<Vec<_>>().join(", ")))
}

const ROWS_MOST: usize = 10;

#[cfg(test)]
mod tests {
    use serde_json::json;
    use throng_measure::{ErrorKind, ProbeCounters};

    use super::*;
    use crate::experiment::tests::verdict;

    fn probe(expected: u64, delivered: u64, missing: u64, left: u64) -> ProbeReport {
        let counters =
            ProbeCounters { expected, delivered, missing, left, ..ProbeCounters::default() };
        ProbeReport { counters, ..ProbeReport::default() }
    }

    #[test]
    fn broadcasts_that_reached_every_user_get_one_sentence() {
        let sentence = delivery_sentence(&[probe(10, 10, 0, 0), probe(20, 19, 0, 1)]);
        assert_eq!(
            sentence,
            "Each of 2 broadcasts reached every user who was there, once and in order (1 had \
             left before the delivery)."
        );
    }

    #[test]
    fn faults_of_broadcasts_are_counted() {
        let mut twice = probe(20, 20, 0, 0);
        twice.counters.duplicates = 3;
        let sentence = delivery_sentence(&[probe(10, 8, 2, 0), twice]);
        let expected = "30 deliveries of 2 broadcasts were due: 2 missing, 3 duplicated.";
        assert_eq!(sentence, expected);
        assert_eq!(delivery_sentence(&[probe(10, 0, 10, 0)]), "No broadcast reached a user.");
    }

    #[test]
    fn errors_are_named_by_kind() {
        let mut summary = Summary::default();
        assert_eq!(errors_sentence(&summary), None);
        summary.errors.add(ErrorKind::Connect, 2);
        summary.errors.add(ErrorKind::JoinTimeout, 1);
        summary.connect.failed.add("ECONNREFUSED", 2);
        assert_eq!(
            errors_sentence(&summary).unwrap(),
            "Errors: connect 2, join_timeout 1 (connects: ECONNREFUSED 2)."
        );
    }

    #[test]
    fn a_long_run_is_shown_in_a_few_rows() {
        let moment = |joined| BroadcastResult { joined, ..BroadcastResult::default() };
        let growth: Vec<_> = (1..=60).map(|n| moment(100 * n.min(40))).collect();
        let rows: Vec<_> = shown(&growth).iter().map(|moment| moment.joined).collect();
        assert_eq!(rows.len(), 13);
        assert_eq!(rows[..3], [100, 500, 900]);
        assert_eq!(rows[10..], [4_000; 3]);
        assert_eq!(shown(&growth[..2]).len(), 2);
        assert_eq!(shown(&growth[59..]).len(), 1);
    }

    fn lobby(joined_most: u64, missed: u64) -> String {
        verdict(
            "phoenix-2m",
            &json!({
                "users": 1000,
                "joined_most": joined_most,
                "all_joined_ms": if joined_most == 1000 { json!(2_500) } else { json!(null) },
                "heartbeats_sent": 50,
                "heartbeats_missed": missed,
                "to_all": {"expected": 1000, "p50_us": 4_000, "last_us": 9_000},
            }),
        )
    }

    #[test]
    fn a_full_lobby_says_how_long_a_broadcast_took() {
        let sentences = lobby(1000, 0);
        assert!(
            sentences.contains("All 1k users were in one lobby, 2.5 s after the first"),
            "{sentences}"
        );
        assert!(
            sentences.contains(
                "A broadcast to 1k of them reached half of them in 4.00 ms and the last in 9"
            ),
            "{sentences}"
        );
        assert!(sentences.contains("All 50 heartbeats were answered"), "{sentences}");
    }

    #[test]
    fn missing_users_are_counted() {
        let sentences = lobby(990, 2);
        assert!(sentences.contains("At most 990 of 1k users were in the lobby"), "{sentences}");
        assert!(sentences.contains("2 of 50 heartbeats were missed"), "{sentences}");
        let plateau = |users: u64, connected: u64| json!({"users": users, "connected": connected});
        let sizes = [plateau(100, 100), plateau(200, 150), plateau(500, 499)];
        let sentences = verdict("haskell-chat", &json!({"plateaus": sizes}));
        assert!(sentences.contains("Only 150 of 200 users were connected"), "{sentences}");
    }
}
