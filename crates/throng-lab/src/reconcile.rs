//! Reconciles the client's and the server's counts of the same connections.

use serde::Serialize;
use throng_measure::{Interval, Metric, server_side};

use crate::measure::whole_load;

/// The comparison of both counts over the quiet seconds of a run.
///
/// A connection is half-open if the client has established it, but it is neither open at the server
/// nor in its accept queue: the handshake's last packet was dropped at a full queue, so the server
/// does not know the connection. The recorder does not read both counts at the same moment, so only
/// seconds count in which the number of connections hardly changed, and in which all cores of both
/// ends, and all agents, told what they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Reconciliation {
    /// Seconds in which the counts could be compared.
    pub(crate) seconds: u64,
    /// The most half-open connections in one of them.
    pub(crate) half_open_most: u64,
    /// Half-open connections in the last of them.
    pub(crate) half_open_last: u64,
    /// The most connections that the server held and the client did not: closed by the client, but
    /// not yet by the server.
    pub(crate) unknown_to_client_most: u64,
}

/// Compares both counts; returns none if no second was quiet or the server did not answer.
pub(crate) fn reconcile(intervals: &[Interval]) -> Option<Reconciliation> {
    let mut found = Reconciliation::default();
    let kernel = server_side(intervals);
    let both = |interval: &Interval| {
        let server = interval.server.as_ref().filter(|server| server.cores_silent == 0)?;
        let server = server.counters.open;
        let waiting = kernel(interval).get(ACCEPT_QUEUE)?;
        Some((connected(interval)?, server + u64::try_from(waiting).unwrap_or(0)))
    };
    for (at, pair) in intervals.windows(2).enumerate() {
        let (Some(before), Some((client, server))) = (connected(&pair[0]), both(&pair[1])) else {
            continue;
        };
        // A connection that closes between the two readings is missing from the server's count.
        let after = match intervals.get(at + 2).map(connected) {
            Some(None) => continue,
            after => after.flatten().unwrap_or(client),
        };
        let moved = client.abs_diff(before);
        if client == 0 || moved.max(client.abs_diff(after)) * 100 > client {
            continue;
        }
        // The change between the two readings is no finding. The change over the whole second is
        // far more than the change in the milliseconds between them.
        let half_open = client.saturating_sub(server + moved);
        found.seconds += 1;
        found.half_open_last = half_open;
        found.half_open_most = found.half_open_most.max(half_open);
        found.unknown_to_client_most =
            found.unknown_to_client_most.max(server.saturating_sub(client + moved));
    }
    (found.seconds > 0).then_some(found)
}

fn connected(interval: &Interval) -> Option<u64> {
    whole_load(interval).map(|load| load.counters.connected)
}

/// The gauge's name in the doctor's sampler.
pub(crate) const ACCEPT_QUEUE: Metric = Metric::LISTENER_ACCEPT_QUEUE;

#[cfg(test)]
mod tests {
    use throng_measure::{LoadInterval, ServerSnapshot};

    use super::*;

    /// An interval in which the client had `client` connections and the server `open` and
    /// `waiting`.
    fn interval((client, open, waiting): (u64, u64, i64)) -> Interval {
        let mut load = LoadInterval::default();
        load.counters.connected = client;
        let mut server = ServerSnapshot::default();
        server.counters.open = open;
        Interval {
            load: Some(load),
            server: Some(server),
            kernel: [(ACCEPT_QUEUE, waiting)].into(),
            ..Interval::default()
        }
    }

    #[track_caller]
    fn check(counts: &[(u64, u64, i64)], seconds: u64, half_open: u64, unknown: u64) {
        let intervals: Vec<_> = counts.iter().copied().map(interval).collect();
        let found = reconcile(&intervals).unwrap();
        let found = (found.seconds, found.half_open_most, found.unknown_to_client_most);
        assert_eq!(found, (seconds, half_open, unknown));
    }

    #[test]
    fn connections_that_only_the_client_has_are_half_open() {
        check(&[(500, 2, 0), (500, 2, 0)], 1, 498, 0);
        check(&[(500, 500, 0), (500, 500, 0)], 1, 0, 0);
    }

    #[test]
    fn connections_in_the_accept_queue_are_not_half_open() {
        check(&[(500, 400, 100), (500, 400, 100)], 1, 0, 0);
    }

    #[test]
    fn seconds_in_which_the_count_changes_are_left_out() {
        check(&[(0, 0, 0), (5000, 4000, 0), (10_000, 9000, 0), (10_000, 10_000, 0)], 1, 0, 0);
        check(&[(10_000, 9_950, 0), (10_050, 10_000, 0)], 1, 0, 0);
    }

    #[test]
    fn connections_that_close_between_the_two_readings_are_not_half_open() {
        check(&[(500, 500, 0), (500, 500, 0), (500, 20, 0), (0, 0, 0)], 1, 0, 0);
    }

    #[test]
    fn a_connection_that_only_the_server_has_is_counted_apart() {
        check(&[(500, 510, 0), (500, 510, 0)], 1, 0, 10);
    }

    #[test]
    fn seconds_in_which_a_core_was_silent_are_left_out() {
        // An agent is late: its users are missing from the counts of two seconds.
        let late = |interval: Interval| {
            let mut interval = interval;
            interval.load.as_mut().unwrap().cores_silent = 1;
            interval
        };
        let slow = |interval: Interval| {
            let mut interval = interval;
            interval.server.as_mut().unwrap().cores_silent = 1;
            interval
        };
        let all = || interval((500, 500, 0));
        let few = || interval((500, 250, 0));
        let seconds = |intervals: &[Interval]| {
            reconcile(intervals).map(|found| (found.seconds, found.half_open_most))
        };
        assert_eq!(seconds(&[all(), few(), all()]), Some((2, 250)));
        assert_eq!(seconds(&[all(), slow(few()), all()]), Some((1, 0)));
        assert_eq!(seconds(&[all(), late(few()), all()]), None, "its neighbours do not count");
        assert_eq!(seconds(&[all(), all(), late(few()), all(), all()]), Some((1, 0)));
    }

    #[test]
    fn without_a_server_that_answers_nothing_is_known() {
        let alone = Interval { server: None, ..interval((500, 0, 0)) };
        assert_eq!(reconcile(&[alone.clone(), alone]), None);
    }
}
