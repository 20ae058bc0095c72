//! The restart of a server: how long until all users are back, and what did the storm do?

use std::time::Duration;

use serde::Serialize;
use throng_measure::{Interval, LoadInterval, Metric, Operation, Tally, server_side};
use throng_run::test_bed::NextStep;

use crate::measure::{latency, whole_load};
use crate::run_watch::{LabServer, RunWatch};
use crate::sized_scenario::SizedScenario;

/// What happened after the restart.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Recovery {
    /// The fewest users joined at one time.
    joined_least: u64,
    /// Time from the last moment with all users joined until half of them were joined again.
    half_back_ms: Option<u64>,
    /// Time from the last moment with all users joined until 99 % of them were joined again.
    most_back_ms: Option<u64>,
    /// Time from the last moment with all users joined until all were joined again.
    all_back_ms: Option<u64>,
    /// Connections that were established in the best second of the storm.
    connects_most_per_second: f64,
    connects_begun: u64,
    /// Failed connects by errno.
    connects_failed: Tally,
    connects_failed_total: u64,
    /// The same as text: `ECONNREFUSED 90`.
    failed: String,
    errors: u64,
    connect_p99_us: u64,
    join_p99_us: u64,
    /// `TcpExt.ListenOverflows` during the storm.
    overflows: Option<i64>,
}

/// Restarts the server after all users have been joined for a while, and ends the load when they
/// have been back for as long.
pub(crate) struct RestartWatch {
    users: u64,
    is_restarted: bool,
    /// The moment since which all users have been joined to servers that share the topics, in
    /// milliseconds.
    full_since: Option<u64>,
}

impl RestartWatch {
    pub(crate) fn new(sized: &SizedScenario) -> Self {
        Self { users: sized.param("users") as u64, is_restarted: false, full_since: None }
    }
}

impl RunWatch for RestartWatch {
    fn add(&mut self, interval: &Interval, server: &mut LabServer<'_>) -> NextStep {
        server.saw(interval.at_ms);
        let Some(load) = whole_load(interval) else { return NextStep::Continue };
        let is_full = load.counters.joined >= self.users && server.shares_topics();
        self.full_since = is_full.then(|| self.full_since.unwrap_or(interval.at_ms));
        let calm_ms = self.full_since.map_or(0, |since| interval.at_ms - since);
        if calm_ms < CALM.as_millis() as u64 {
            return NextStep::Continue;
        }
        self.full_since = None;
        if !std::mem::replace(&mut self.is_restarted, true) && server.restart(interval.at_ms) {
            return NextStep::Continue;
        }
        NextStep::Stop
    }
}

/// Computes the result from the intervals.
pub(crate) fn recovery(users: u64, intervals: &[Interval]) -> Recovery {
    let mut found = Recovery::default();
    let all: Vec<(&Interval, &LoadInterval)> = intervals
        .iter()
        .filter_map(|interval| Some((interval, whole_load(interval)?)))
        .filter(|(_, load)| !load.is_leaving())
        .collect();
    let joined = |at: usize| all[at].1.counters.joined;
    let Some(full) = (0..all.len()).find(|at| joined(*at) >= users) else { return found };
    let Some(lost) = (full..all.len()).find(|at| joined(*at) < users) else { return found };
    let (began, before) = all[lost - 1];
    let after = &all[lost..];
    let lowest = (0..after.len()).min_by_key(|at| after[*at].1.counters.joined).unwrap_or(0);
    found.joined_least = after[lowest].1.counters.joined;
    let back = |share: u64| {
        // The search starts at the lowest point: the same number of users is joined on the way
        // down.
        let is_back =
            |(_, load): &&(&Interval, &LoadInterval)| load.counters.joined * 100 >= users * share;
        let (interval, _) = after[lowest..].iter().find(is_back)?;
        Some(interval.at_ms - began.at_ms)
    };
    (found.half_back_ms, found.most_back_ms, found.all_back_ms) = (back(50), back(99), back(100));
    let end = found.all_back_ms.map_or(u64::MAX, |ms| began.at_ms + ms);
    let during: Vec<_> = after.iter().filter(|(interval, _)| interval.at_ms <= end).collect();
    let Some((last_interval, last)) = during.last() else { return found };
    let grown = last.counters.since(&before.counters);
    found.connects_begun = grown.connects_started;
    for (errno, n) in &last.connect_failed.0 {
        let n = n.saturating_sub(before.connect_failed.get(errno));
        if n > 0 {
            found.connects_failed.add(errno, n);
        }
    }
    found.connects_failed_total = found.connects_failed.total();
    let failed = found.connects_failed.0.iter().map(|(kind, n)| format!("{kind} {n}"));
    found.failed = failed.collect::<Vec<_>>().join(", ");
    found.errors = last.errors.total() - before.errors.total().min(last.errors.total());
    found.connects_most_per_second = best_second((began, before), &during);
    let measured = || during.iter().map(|(interval, _)| *interval);
    found.connect_p99_us = latency(measured(), |load| load.latency(Operation::Connect)).p99;
    found.join_p99_us = latency(measured(), |load| load.latency(Operation::Join)).p99;
    let kernel = server_side(intervals);
    let overflows = |interval: &Interval| kernel(interval).get(Metric::TCPEXT_LISTEN_OVERFLOWS);
    found.overflows = overflows(began).zip(overflows(last_interval)).map(|(from, to)| to - from);
    found
}

/// Returns the connections established in the best second after `began`. The intervals are shorter
/// than that, and so is the storm of a few users: then all of them came in one second.
fn best_second(began: (&Interval, &LoadInterval), during: &[&(&Interval, &LoadInterval)]) -> f64 {
    let all: Vec<_> = std::iter::once(began)
        .chain(during.iter().map(|(interval, load)| (*interval, *load)))
        .collect();
    let ok = |at: usize| all[at].1.counters.connects_ok;
    let at_ms = |at: usize| all[at].0.at_ms;
    let rate = |to: usize| {
        let from = (0..to).rev().find(|from| at_ms(to) - at_ms(*from) >= 1000).unwrap_or(0);
        let span_ms = (at_ms(to) - at_ms(from)).max(1000);
        ok(to).saturating_sub(ok(from)) as f64 * 1000.0 / span_ms as f64
    };
    (1..all.len()).map(rate).fold(0.0, f64::max)
}

/// The time for which all users must be joined, before and after the restart.
const CALM: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::tests::verdict;

    fn interval(at_ms: u64, joined: u64, connects_ok: u64, refused: u64) -> Interval {
        let mut load = LoadInterval::default();
        load.counters.joined = joined;
        load.counters.connects_ok = connects_ok;
        load.counters.connects_started = connects_ok + refused;
        if refused > 0 {
            load.connect_failed.add("ECONNREFUSED", refused);
        }
        let kernel = [(Metric::TCPEXT_LISTEN_OVERFLOWS, refused as i64)].into();
        Interval { at_ms, span_ms: 500, load: Some(load), kernel, ..Interval::default() }
    }

    #[test]
    fn users_that_are_all_back_within_a_second_have_a_best_second() {
        let run = [
            interval(0, 200, 200, 0),
            interval(250, 0, 200, 0),
            interval(500, 120, 320, 0),
            interval(750, 200, 400, 0),
            interval(1000, 200, 400, 0),
        ];
        assert_eq!(recovery(200, &run).connects_most_per_second, 200.0);
    }

    #[test]
    fn all_users_are_back_when_as_many_are_joined_as_before() {
        let run = [
            interval(0, 50, 50, 0),
            interval(500, 100, 100, 0),
            interval(1000, 100, 100, 0),
            // On the way down.
            interval(1500, 60, 100, 0),
            interval(2000, 0, 100, 30),
            interval(2500, 0, 110, 90),
            interval(3000, 55, 160, 90),
            interval(3500, 99, 199, 90),
            interval(4000, 100, 200, 90),
            interval(4500, 100, 200, 90),
        ];
        let storm = recovery(100, &run);
        assert_eq!(storm.joined_least, 0);
        assert_eq!(
            (storm.half_back_ms, storm.most_back_ms, storm.all_back_ms),
            (Some(2000), Some(2500), Some(3000))
        );
        assert_eq!((storm.connects_begun, storm.connects_failed.total()), (190, 90));
        assert_eq!(storm.connects_most_per_second, 89.0);
        assert_eq!(storm.overflows, Some(90));
    }

    #[test]
    fn an_interval_in_which_a_core_was_silent_says_nothing_about_users() {
        let late = |at_ms, joined| {
            let mut interval = interval(at_ms, joined, 100, 0);
            interval.load.as_mut().unwrap().cores_silent = 1;
            interval
        };
        let run = [
            interval(0, 100, 100, 0),
            late(500, 50),
            interval(1000, 100, 100, 0),
            interval(1500, 20, 100, 0),
            late(2000, 0),
            late(2500, 100),
            interval(3000, 100, 200, 0),
        ];
        let storm = recovery(100, &run);
        assert_eq!((storm.joined_least, storm.all_back_ms), (20, Some(2000)));
    }

    #[test]
    fn missing_users_are_in_the_verdict() {
        let storm = recovery(
            100,
            &[interval(0, 100, 100, 0), interval(500, 0, 100, 0), interval(1000, 98, 198, 0)],
        );
        assert_eq!((storm.half_back_ms, storm.all_back_ms), (Some(1000), None));
        let mut row = serde_json::to_value(&storm).unwrap();
        (row["users"], row["down_ms"]) = (100.into(), 1500.into());
        let sentences = verdict("reconnect-storm", &row);
        assert!(sentences.contains("Not all of 100 users were back"), "{sentences}");
        let sentences = verdict("reconnect-storm", &serde_json::json!({"users": 100}));
        assert!(sentences.contains("was not restarted"), "{sentences}");
    }
}
