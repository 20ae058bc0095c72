//! The server serves a number of connections at a time, and leaves the others without an answer.

mod place;
mod step;
mod stuck;

use throng_measure::{ErrorKind, Evidence, Finding, Side};
use throng_report::render::count;

use super::server_closes_early::closed_by_the_server;
use super::{Rule, RuleTrait, connections_max_reached, epoll_watches_exhausted, fds_exhausted};
use crate::counted::counted;
use crate::first_error::FirstError;
use crate::run_view::{Growth, RunView};
use place::{Place, ThreadUse};
use step::{Step, connects, full, has_classes, median, new_connections_most, users};
use stuck::{stuck_listeners, stuck_workers};

pub(super) const RULE: Rule = Rule::new("serves_only_some", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::GoesOn])
    .explains(&[
        "server_closes_early",
        "server_slow",
        "server_stalled",
        "accept_queue_overflow",
        "backlog_clamped",
        "half_open",
        "syn_queue_overflow",
        "retransmits",
        "latency_grows",
        "server_at_capacity",
        "turns_missed",
    ]);

/// A limit of connections shows in which waits are given up. Some connections have each answer; on
/// the others the server has never answered once. A server that loses answers, or that is slow,
/// fails on all connections alike. Some servers close the connections that are too many.
fn find(run: &RunView<'_>) -> Option<Finding> {
    if CAUSES.iter().any(|cause| cause.find(run).is_some()) {
        return None;
    }
    let steps: Vec<Step> = run.steps().filter_map(|step| Step::of(run, step)).collect();
    let Some(gave_up) = gave_up(run) else { return closes_others(run, &steps) };
    stuck_listeners(&steps, &gave_up)
        .or_else(|| limited(run, &steps, &gave_up))
        .or_else(|| stuck_workers(run, &steps, &gave_up))
}

/// Reports whether a limit of connections explains the waits that were given up: nearly all of them
/// were on connections that were never served. Then no answer was lost on the others.
pub(super) fn explains_waits(run: &RunView<'_>) -> bool {
    let is_known = || CAUSES.iter().any(|cause| cause.find(run).is_some());
    RULE.find(run).is_some() || gave_up(run).is_some() && is_known()
}

/// Returns the waits that were given up on connections that were never served, if nearly all waits
/// that were given up are such.
fn gave_up(run: &RunView<'_>) -> Option<Growth> {
    let growth = run.load_growth("timeouts_unserved", |load| load.timeouts_unserved)?;
    let counters = &run.counted()?.counters;
    let is_of_unserved = counters.timeouts_served * UNSERVED_TIMES <= growth.by();
    // A message arrived that the step did not take.
    let skipped = [ErrorKind::ExpectTimeout, ErrorKind::HttpTimeout]
        .iter()
        .any(|kind| FirstError::of(run, kind).is_some_and(|first| first.has_skipped()));
    (growth.by() >= GAVE_UP_MIN && is_of_unserved && !skipped).then_some(growth)
}

/// Returns the finding for a number of connections that stays the same.
fn limited(run: &RunView<'_>, steps: &[Step], gave_up: &Growth) -> Option<Finding> {
    let full = full(steps, |step| step.users > step.served)?;
    let served = median(full.iter().map(|step| step.served));
    let users = users(run, full);
    // No user gives up before the limit is reached, and who comes again is not served, either.
    let first = steps.iter().position(|step| step.gave_up > 0)?;
    let is_reached = steps[first.saturating_sub(1)].served * 10 >= served * 9;
    let thread = ThreadUse::of(run, full);
    if !is_reached || thread.is_some_and(|thread| thread.wanted() > BUSY_MIN) {
        return None;
    }
    let place = Place::of(full);
    let has_place = matches!(place, Place::AcceptQueue(_) | Place::Unread(_));
    // A part of the users may get no answers for what they are. That many new connections may get
    // none by chance.
    if !has_place && (has_classes(run) || connects(full) > new_connections_most(full)) {
        return None;
    }
    let every = match run.counted()?.counters.timeouts_served {
        0 => "every answer",
        _ => "nearly every answer",
    };
    let text = format!(
        "The server serves {} at a time: {} of {} had {every}, and the others none. {}",
        counted(served, "connection", "connections"),
        count(served as f64),
        counted(users, "user", "users"),
        place.describe(thread),
    );
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_confidence(place.confidence())
        .with_evidence([gave_up.evidence()])
        .with_evidence([Evidence {
            counter: "load.served".to_owned(),
            from: 0.0,
            to: served as f64,
            at_ms: full[0].at_ms,
        }])
        .with_evidence(place.evidence(full));
    Some(finding.remedied_by(remedy(served)))
}

/// Returns the finding for a server that accepts each connection beyond a number, and closes it.
fn closes_others(run: &RunView<'_>, steps: &[Step]) -> Option<Finding> {
    let closed = run.load_growth("closed_unserved", |load| load.closed_unserved)?;
    let all = closed_by_the_server(run).iter().map(Growth::by).sum::<u64>();
    let full = full(steps, |step| step.closed > 0)?;
    let served = median(full.iter().map(|step| step.served));
    let users = users(run, full).max(served + 1);
    // Where others are served meanwhile, it may close any connection.
    let stay = connects(full) <= closed.by() + closed.by() / 2 + served / 10;
    if closed.by() < GAVE_UP_MIN || closed.by() * 10 < all * 9 || has_classes(run) || !stay {
        return None;
    }
    let text = format!(
        "The server serves {} at a time: {} of {} had answers, and it closes each other connection \
         before the first answer. It closed {} so, from {} s on.",
        counted(served, "connection", "connections"),
        count(served as f64),
        counted(users, "user", "users"),
        count(closed.by() as f64),
        count(closed.began_ms as f64 / 1000.0),
    );
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_confidence(0.9)
        .with_evidence([closed.evidence()])
        .with_evidence([Evidence {
            counter: "load.served".to_owned(),
            from: 0.0,
            to: served as f64,
            at_ms: full[0].at_ms,
        }]);
    Some(finding.remedied_by(remedy(served)))
}

/// Returns what to do about a limit of so many connections.
fn remedy(served: u64) -> String {
    format!(
        "raise the server's limit of {} (maxconn, worker_connections, LimitListener, a semaphore, \
         ulimit -n; or threads or workers, which may be fewer), or let it close connections that \
         only keep a place",
        counted(served, "connection", "connections")
    )
}

/// Known causes of connections that are not served.
static CAUSES: [&Rule; 3] =
    [&connections_max_reached::RULE, &epoll_watches_exhausted::RULE, &fds_exhausted::RULE];

/// The fewest waits that count.
const GAVE_UP_MIN: u64 = 3;

/// How many times as many waits are given up on connections that were never served as on others.
const UNSERVED_TIMES: u64 = 10;

/// The share for which the server's threads have something to do from which it has no time to serve
/// more.
const BUSY_MIN: f64 = 0.9;

#[cfg(test)]
mod tests {
    use throng_measure::{Metric, Operation, ProcessMetric};

    use super::super::fixture::Run;
    use super::*;

    /// A run of a thousand users, of whom the first 400 have every answer, once a second, and the
    /// others give up after two seconds and come again.
    fn limited() -> Run {
        let run = Run::quiet().loaded(|load, second| {
            let counters = &mut load.counters;
            counters.served = (200 * second).min(400);
            counters.messages_answered = 400 * second;
            let gave_up = 300 * second.saturating_sub(3);
            counters.timeouts_unserved = gave_up;
            counters.connects_ok += gave_up;
            counters.messages_expected = counters.messages_answered + gave_up;
            counters.messages_sent = counters.messages_expected;
            load.errors.add(ErrorKind::ExpectTimeout, gave_up);
            load.times.unanswered[Operation::Message].record_n(2_000_000, 100);
        });
        here(run)
    }

    fn here(mut run: Run) -> Run {
        run.header.target_is_here = true;
        run
    }

    fn queued(run: Run) -> Run {
        run.with(Metric::LISTENER_COUNT, 1)
            .with(Metric::LISTENER_BEHIND, 1)
            .with(Metric::LISTENER_ACCEPT_QUEUE, 600)
    }

    fn with_cpu(run: Run) -> Run {
        run.growing(ProcessMetric::CPU_US.server, 0, 10_000, 0)
    }

    #[test]
    fn the_number_of_connections_is_named_and_where_the_others_wait() {
        let run = queued(limited()).with(ProcessMetric::BUSIEST_THREAD_PERMILLE.server, 10);
        let run = with_cpu(run);
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server serves 400 connections at a time: 400 of 1k users had every answer, and \
             the others none"
        );
        let waits = "600 connections wait in its accept queue, which it does not empty, though it \
                     is idle (its busiest thread: 1.00 % of a CPU)";
        assert!(found.text.contains(waits), "{found}");
        assert!(found.remedy.starts_with("raise the server's limit of 400 connections"), "{found}");
        run.check_all(&["serves_only_some"]);
    }

    #[test]
    fn connections_that_are_accepted_and_not_read_are_seen() {
        let run = limited().with(Metric::LISTENER_ACCEPT_QUEUE, 0);
        let unread = run.with(Metric::LISTENER_UNREAD, 600).speaks(&RULE);
        assert!(unread.text.contains("has accepted 600 connections more and reads"), "{unread}");
    }

    #[test]
    fn a_server_that_is_never_idle_has_no_limit() {
        let waiting = |permille| {
            let run = queued(limited()).with(ProcessMetric::BUSIEST_THREAD_PERMILLE.server, 480);
            with_cpu(run).with(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.server, permille)
        };
        waiting(500).is_silent(&RULE);
        let found = waiting(100).speaks(&RULE);
        assert!(!found.text.contains("idle"), "{found}");
    }

    #[test]
    fn connects_for_http_requests_say_nothing_about_other_connections() {
        // Each user that comes again logs in first, by requests with a connection each.
        let logs_in = || {
            let run = limited().with(Metric::LISTENER_ACCEPT_QUEUE, 0);
            run.loaded(|load, second| load.counters.connects_ok += 900 * second)
        };
        logs_in().is_silent(&RULE);
        logs_in().loaded(|load, second| load.counters.http_started = 900 * second).speaks(&RULE);
    }

    /// A run of a thousand users, of whom the first 400 have every answer. The others are closed,
    /// and connect again each second.
    fn closing() -> Run {
        here(Run::quiet().loaded(|load, second| {
            let counters = &mut load.counters;
            let closed = 600 * second.saturating_sub(3);
            counters.served = (200 * second).min(400);
            counters.connected = counters.served;
            counters.users_active = counters.served;
            counters.messages_answered = 400 * second;
            counters.closed_unserved = closed;
            counters.connects_ok = 400 + closed;
            counters.connects_started = counters.connects_ok;
            counters.messages_expected = counters.messages_answered + closed;
            counters.messages_sent = counters.messages_expected;
            load.errors.add(ErrorKind::ClosedByPeer, closed);
        }))
    }

    #[test]
    fn a_server_that_closes_the_others_has_the_same_limit() {
        let run = closing();
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server serves 400 connections at a time: 400 of 1k users had answers, and it \
             closes each other connection before the first answer"
        );
        assert!(found.remedy.contains("worker_connections"), "{found}");
        run.check_all(&["serves_only_some", "server_closes_early"]);
    }

    #[test]
    fn a_server_that_closes_any_connection_has_no_limit() {
        closing().loaded(|load, second| load.counters.served = 100 * second).is_silent(&RULE);
        closing().loaded(|load, second| load.counters.connects_ok += 900 * second).is_silent(&RULE);
        let served_too =
            closing().loaded(|load, second| load.errors.add(ErrorKind::ResetByPeer, 200 * second));
        served_too.is_silent(&RULE);
    }

    #[test]
    fn elsewhere_the_two_kinds_of_users_are_enough() {
        let mut run = limited();
        run.header.target_is_here = false;
        let found = run.speaks(&RULE);
        assert!(found.confidence < 0.8 && found.text.contains("`ss -ltn`"), "{found}");
        let classes = run.loaded(|load, _| {
            for class in ["one", "other"] {
                load.classes.entry(class.to_owned()).or_default().users_started = 500;
            }
        });
        classes.is_silent(&RULE);
    }

    #[test]
    fn a_socket_from_which_nothing_is_accepted_is_one_of_several() {
        let run = limited()
            .loaded(|load, second| load.counters.served = 70 * second)
            .with(Metric::LISTENER_COUNT, 4)
            .with(Metric::LISTENER_BEHIND, 1)
            .growing(Metric::LISTENER_ACCEPT_QUEUE, 0, 20, 0);
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "1 of the server's 4 listening sockets accepts nothing: 200 connections wait in its \
             accept queue, which only grows, while the other sockets accept at once"
        );
        run.with(Metric::LISTENER_BEHIND, 4).is_silent(&RULE);
    }

    /// A run of a thousand users that ask once a second. A fourth of all connections get no answer:
    /// their users give up after two seconds, and connect again.
    fn one_worker_of_four() -> Run {
        here(Run::quiet().loaded(|load, second| {
            let counters = &mut load.counters;
            let gave_up = [0, 0, 0, 250, 250, 250, 310, 310, 310, 330, 330][second as usize];
            counters.served = (1_000 * second.min(1)).saturating_sub(250) + gave_up * 3 / 4;
            counters.messages_answered = 750 * second + 200 * second.saturating_sub(3);
            counters.timeouts_unserved = gave_up;
            counters.connects_ok = 1_000 + gave_up;
            counters.connects_started = counters.connects_ok;
            counters.messages_expected = counters.messages_answered + gave_up;
            counters.messages_sent = counters.messages_expected;
            load.errors.add(ErrorKind::ExpectTimeout, gave_up);
            load.times.unanswered[Operation::Message].record_n(2_000_000, 100);
        }))
        .with(Metric::LISTENER_ACCEPT_QUEUE, 0)
    }

    #[test]
    fn a_worker_that_accepts_and_never_answers_is_told_from_lost_answers() {
        let run = one_worker_of_four();
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server never answers on 330 of 1.33k connections (24.8 %), and gives every answer \
             on the others: one of several workers or threads accepts connections, and answers none"
        );
        run.check_all(&["serves_only_some"]);
        // A thread that is full may leave some connections without an answer, too.
        let busy = ProcessMetric::BUSIEST_THREAD_PERMILLE.server;
        with_cpu(one_worker_of_four()).with(busy, 1_000).check_all(&["hot_core", RULE.id]);
        // Users that ask once on each connection do not tell whose answers are lost.
        let once = one_worker_of_four().loaded(|load, _| load.counters.connects_ok *= 5);
        once.is_silent(&RULE);
        one_worker_of_four()
            .loaded(|load, second| load.counters.timeouts_served = 20 * second)
            .is_silent(&RULE);
    }

    #[test]
    fn losses_on_all_connections_are_another_case() {
        queued(limited()).loaded(|load, _| load.counters.timeouts_served = 400).is_silent(&RULE);
    }

    #[test]
    fn a_number_that_grows_or_a_busy_server_is_no_limit() {
        let grows = queued(limited()).loaded(|load, second| load.counters.served = 40 * second);
        grows.is_silent(&RULE);
        let busy = ProcessMetric::BUSIEST_THREAD_PERMILLE.server;
        with_cpu(queued(limited()).with(busy, 990)).is_silent(&RULE);
    }

    #[test]
    fn a_first_answer_that_is_lost_by_chance_is_no_limit() {
        // Each second 400 connections open, 300 of which are served for a second.
        let run = limited().loaded(|load, second| load.counters.connects_ok = 1_200 * second);
        run.with(Metric::LISTENER_ACCEPT_QUEUE, 0).is_silent(&RULE);
    }
}
