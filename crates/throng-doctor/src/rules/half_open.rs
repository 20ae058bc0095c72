//! Connections that the client believes established and that the server does not know.

use throng_measure::{Endpoint, Finding, Metric, Severity, Side};
use throng_report::render::count;

use super::accept_backlog::{open, opened_and_closed};
use super::{Rule, RuleTrait, accept_queue_overflow};
use crate::counted::part_of;
use crate::history::Sample;
use crate::run_view::RunView;

pub(super) const RULE: Rule =
    Rule::new("half_open", find).with(&[RuleTrait::LacksCpu]).explains(&["server_slow"]);

/// A full accept queue, or a filter on the way, dropped the handshake's final ACK: the client has
/// sent it and believes that it is connected. Only the counts of client and server together show
/// it, and only while few connections open or close: the two are not read at the same moment, and
/// when all users leave in between, the server knows first.
fn find(run: &RunView<'_>) -> Option<Finding> {
    if run.header.server_is_part {
        // Other servers know the others.
        return None;
    }
    let compared =
        run.samples().windows(3).filter_map(|three| Some((three, half_open(run, three)?)));
    let worst = compared.max_by_key(|(_, half_open)| *half_open);
    let (three, most) = worst?;
    let (before, now) = (&three[0], &three[1]);
    let connected_now = connected(now)?;
    if most < HALF_OPEN_MIN || most.saturating_mul(HALF_OPEN_ONE_IN) < connected_now {
        return None;
    }
    let overflows = accept_queue_overflow::overflows(run);
    let (side, dropped, confidence, remedy) = match &overflows {
        Some(overflows) => (
            Side::Server,
            format!(
                "The kernel dropped the final ACK of their handshakes at a full accept queue ({} \
                 overflows): no program reads what such a client sends.",
                count(overflows.by() as f64)
            ),
            // This rule has seen what other rules only infer.
            1.0,
            "throng serve --backlog 65535, or raise the backlog of your server's listen(), and \
             sysctl -w net.core.somaxconn=65535; or accept faster",
        ),
        None => (
            Side::Network,
            "No accept queue is known to have overflowed: a filter or a NAT drops the final ACK of \
             their handshakes, and what such a client sends."
                .to_owned(),
            0.9,
            "find what drops them: nft list ruleset (or iptables-save) on both machines, and check \
             the devices between them",
        ),
    };
    let finding = Finding::new(
        RULE.id,
        side,
        format!(
            "{} half-open: the client believes them established, the server does not know them. \
             {dropped}",
            part_of(most, connected_now, "connection was", "connections were")
        ),
    )
    .with_severity(Severity::Stopped)
    .with_confidence(confidence)
    .shown_by(
        "load.counters.connected",
        connected(before)? as f64,
        connected_now as f64,
        now.interval.at_ms,
    )
    .shown_by(
        "server.counters.open",
        open(before).or(open(now))? as f64,
        open(now)? as f64,
        now.interval.at_ms,
    )
    .with_evidence(overflows)
    .remedied_by(remedy);
    Some(finding)
}

/// Returns how many of the client's connections are neither open at the server nor in its accept
/// queue, or `None` if they cannot be compared.
fn half_open(run: &RunView<'_>, three: &[Sample]) -> Option<u64> {
    let [before, now, after] = three else { return None };
    let server = now.interval.server.as_ref().filter(|server| server.cores_silent == 0)?;
    // The connections of a core that says nothing may be gone.
    now.load().filter(|load| load.cores_silent == 0)?;
    // A connection that waits in a queue that cannot be read is not half-open.
    let waiting = run.value(Endpoint::Server, now, Metric::LISTENER_ACCEPT_QUEUE)?;
    let known = server.counters.open + u64::try_from(waiting).unwrap_or(0);
    let client = connected(now)?;
    let moved = opened_and_closed(before, now)? + opened_and_closed(now, after)?;
    if client == 0 || moved * 100 > client {
        return None;
    }
    // What opened and closed in both intervals is far more than what does so between two reads.
    Some(client.saturating_sub(known + moved))
}

/// Returns the number of connections that the generator has.
fn connected(sample: &Sample) -> Option<u64> {
    sample.load().map(|load| load.counters.connected)
}

/// The fewest that count: a few may be closing while client and server are read.
const HALF_OPEN_MIN: u64 = 3;
/// The share that may be closing among many connections: one in so many.
const HALF_OPEN_ONE_IN: u64 = 1_000;

#[cfg(test)]
mod tests {
    use throng_measure::ServerSnapshot;

    use super::super::fixture::Run;
    use super::*;

    /// A run whose server knows all but `unknown` of the connections, while `waiting` wait to be
    /// accepted.
    fn run(unknown: u64, waiting: i64) -> Run {
        Run::quiet().with(Metric::LISTENER_ACCEPT_QUEUE, waiting).changed(move |interval, _| {
            let connected = interval.load.as_ref().unwrap().counters.connected;
            let mut server = ServerSnapshot::default();
            server.counters.open = connected.saturating_sub(unknown);
            interval.server = Some(server);
        })
    }

    #[test]
    fn what_the_server_does_not_know_is_half_open() {
        let found = run(400, 0).growing(Metric::TCPEXT_LISTEN_OVERFLOWS, 0, 50, 2).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "400 of 1k connections were half-open: the client believes them established, the \
             server does not know them"
        );
        assert!(found.text.contains("400 overflows"), "{found}");
        assert_eq!(found.side, Side::Server);
    }

    #[test]
    fn where_no_queue_overflowed_a_filter_did_it() {
        let found = run(400, 0).with(Metric::TCPEXT_LISTEN_OVERFLOWS, 50).speaks(&RULE);
        assert_eq!(found.side, Side::Network);
        assert!(found.remedy.contains("nft list ruleset"), "{found}");
        assert!(!found.remedy.contains("backlog"), "{found}");
    }

    #[test]
    fn connections_that_come_and_go_at_the_same_rate_are_not_half_open() {
        let replaced = |each_second| {
            run(8, 0).loaded(move |load, second| load.counters.connects_ok += each_second * second)
        };
        replaced(0).speaks(&RULE);
        replaced(200).is_silent(&RULE);
        replaced(2).is_silent(&RULE);
    }

    #[test]
    fn a_handful_of_very_many_is_on_its_way() {
        let many = |unknown: u64| {
            run(0, 0).changed(move |interval, _| {
                let load = &mut interval.load.as_mut().unwrap().counters;
                (load.connected, load.connects_ok) = (100_000, 100_000);
                interval.server.as_mut().unwrap().counters.open = 100_000 - unknown;
            })
        };
        many(99).is_silent(&RULE);
        many(100).speaks(&RULE);
    }

    #[test]
    fn what_waits_to_be_accepted_is_not_half_open() {
        run(400, 400).is_silent(&RULE);
        run(0, 0).is_silent(&RULE);
    }

    #[test]
    fn a_server_that_is_read_after_users_began_to_leave_knows_first() {
        let leaving = run(0, 0).changed(|interval, second| {
            let open = &mut interval.server.as_mut().unwrap().counters.open;
            match second {
                9 => *open = 100,
                10 => interval.load.as_mut().unwrap().phase = throng_measure::LEAVING.into(),
                _ => {}
            }
        });
        leaving.is_silent(&RULE);
    }

    #[test]
    fn counts_that_are_old_and_a_server_that_cannot_be_read_are_not_compared() {
        run(400, 0)
            .changed(|interval, _| interval.server.as_mut().unwrap().cores_silent = 1)
            .is_silent(&RULE);
        run(400, 0).loaded(|load, _| load.cores_silent = 1).is_silent(&RULE);
        Run::quiet().with(Metric::LISTENER_ACCEPT_QUEUE, 0).is_silent(&RULE);
        let mut part = run(400, 0);
        part.header.server_is_part = true;
        part.is_silent(&RULE);
    }
}
