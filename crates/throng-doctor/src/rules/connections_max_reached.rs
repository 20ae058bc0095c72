//! A throng server holds as many connections as its limit allows, and others wait.

use throng_measure::{Evidence, Finding, Side};
use throng_report::render::count;

use super::accept_backlog::{accept_backlog, open};
use super::{Rule, RuleTrait, retransmission};
use crate::counted::connections;
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("connections_max_reached", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::WithoutLoad])
    .explains(&[
        "accept_queue_overflow",
        "half_open",
        "latency_grows",
        "retransmits",
        "server_at_capacity",
        "server_slow",
        "server_stalled",
        "syn_queue_overflow",
        "turns_missed",
    ]);

/// A full server to which no other client tries to connect has just enough room.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let paused = paused(run)?;
    let symptom = accept_backlog(run)
        .or_else(|| retransmission::by_connects(run).map(|symptom| symptom.evidence))?;
    let mut servers = run.samples().iter().filter_map(|sample| sample.interval.server.as_ref());
    let server = servers.next_back()?;
    let limit = server.connections_max;
    let held = run.samples().iter().filter_map(open).max().unwrap_or(0);
    let wanted = run.header.users_planned.max(limit.saturating_mul(2));
    let finding = Finding::new(
        RULE.id,
        Side::Server,
        format!(
            "The server is full with {}: its limit is {}. New connections complete the \
             handshake but wait in the accept queue until one closes.",
            connections(held),
            count(limit as f64)
        ),
    )
    .with_evidence([paused])
    .with_evidence([symptom])
    .remedied_by(remedy(&server.handler, wanted));
    Some(finding)
}

/// Returns the command for a ready-made server, and the option for a server of the library.
fn remedy(handler: &str, wanted: u64) -> String {
    match handler {
        "bytes" | "custom" | "websocket" => format!("raise connections_max to {wanted}"),
        "" => format!("throng serve KIND --connections-max {wanted}"),
        kind => format!("throng serve {kind} --connections-max {wanted}"),
    }
}

/// Returns evidence that the server paused accepting at its own limit, during the run or before it.
fn paused(run: &RunView<'_>) -> Option<Evidence> {
    let counter = "server.counters.pauses_max";
    if let Some(growth) = run.server_growth(counter, |server| server.counters.pauses_max) {
        return Some(growth.evidence());
    }
    let full = run.peak_of("server.counters.paused_cores", |sample| {
        let server = sample.interval.server.as_ref()?;
        let counters = &server.counters;
        let is_full = counters.pauses_max > 0 && counters.open >= server.connections_max;
        Some(if is_full { counters.paused_cores as i64 } else { 0 })
    })?;
    (full.value > 0).then(|| full.evidence())
}

#[cfg(test)]
mod tests {
    use throng_measure::{ErrorKind, Metric, Operation, ServerSnapshot};

    use super::super::fixture::Run;
    use super::super::{answers_missing, rate_limited, server_slow};
    use super::*;

    /// A run against a server with this limit, for a thousand connections.
    fn places(places: u64) -> Run {
        Run::quiet().changed(move |interval, second| {
            let connected = interval.load.as_ref().unwrap().counters.connected;
            let mut server = ServerSnapshot { connections_max: places, ..Default::default() };
            server.counters.open = connected.min(places);
            if connected >= places {
                server.counters.pauses_max = second;
                server.counters.paused_cores = 1;
            }
            interval.server = Some(server);
        })
    }

    #[test]
    fn a_server_at_its_own_limit_is_told_with_it_when_connections_wait() {
        let found = places(600).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server is full with 600 connections: its limit is 600"
        );
        assert_eq!(found.remedy, "throng serve KIND --connections-max 1200");
        assert_eq!(found.side, Side::Server);
    }

    #[test]
    fn one_that_has_just_enough_places_is_not_short_of_them() {
        places(1_000).is_silent(&RULE);
    }

    #[test]
    fn one_that_was_full_before_the_run_is_told_and_one_that_was_once_is_not() {
        let before = |is_paused: bool| {
            places(600).changed(move |interval, _| {
                let server = interval.server.as_mut().unwrap();
                server.counters.pauses_max = 7;
                server.counters.paused_cores = u64::from(is_paused);
            })
        };
        before(true).speaks(&RULE);
        before(false).is_silent(&RULE);
    }

    #[test]
    fn no_answer_is_lost_where_only_the_others_give_up() {
        // 400 users wait in the accept queue, and give up after two seconds.
        let giving_up = |served: u64| {
            places(600).with(Metric::LISTENER_ACCEPT_QUEUE, 400).loaded(move |load, second| {
                let gave_up = 40 * second.saturating_sub(4);
                load.counters.messages_answered = 1_000 * second - gave_up;
                load.counters.timeouts_unserved = gave_up * (100 - served) / 100;
                load.counters.timeouts_served = gave_up * served / 100;
                load.errors.add(ErrorKind::ExpectTimeout, gave_up);
                load.times.unanswered[Operation::Message].record_n(2_000_000, 40);
            })
        };
        giving_up(0).speaks(&RULE);
        giving_up(0).is_silent(&answers_missing::RULE);
        giving_up(0).is_silent(&rate_limited::RULE);
        giving_up(0).is_silent(&server_slow::RULE);
        giving_up(90).speaks(&answers_missing::RULE);
    }

    #[test]
    fn a_longer_queue_does_not_help_it() {
        let run = places(600).growing(Metric::TCPEXT_LISTEN_OVERFLOWS, 0, 40, 2);
        let (history, summary) = run.whole();
        let findings = crate::diagnose(&history, &summary, &[]).findings;
        assert_eq!(findings[0].id, RULE.id);
        assert!(findings[1..].iter().all(|other| other.follows_from.as_deref() == Some(RULE.id)));
        assert!(findings.iter().any(|other| other.id == "accept_queue_overflow"));
    }
}
