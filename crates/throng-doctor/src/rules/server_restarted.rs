//! The server ended and came back.

use throng_measure::{Endpoint, Evidence, Finding, ProcessMetric, RunEventKind, Side};
use throng_report::render::micros;

use super::{Rule, RuleTrait};
use crate::counted::counted;
use crate::outages::{Absence, events, outages, process_ends, stays_away, worker_ends};
use crate::run_view::RunView;

pub(super) const RULE: Rule =
    Rule::new("server_restarted", find).with(&[RuleTrait::ServerFault]).explains(&[
        "server_closes_early",
        "server_lost",
        "server_stalled",
        "server_slow",
        "handshakes_refused",
        "half_open",
        "accept_queue_overflow",
        "syn_queue_overflow",
        "generator_saturated",
        "retransmits",
    ]);

/// Looks for a server that was away for a time. A server that stays away is lost, which is another
/// finding.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let all = outages(run);
    let mut away = all.clone();
    away.retain(|away| away.to_ms.is_some());
    let longest = *away.iter().max_by_key(|away| length_ms(away))?;
    let (lost, refused) =
        all.iter().fold((0, 0), |(lost, refused), away| (lost + away.lost, refused + away.refused));
    if stays_away(run, &all) || lost + refused < FAILED_MIN {
        return None;
    }
    if let Some(found) = workers(run, &all, (lost, refused)) {
        return Some(found);
    }
    let ends: Vec<u64> =
        process_ends(run).filter(|at_ms| all.iter().any(|away| away.is_near(*at_ms))).collect();
    let text = format!(
        "The server{}: {}; then {}. Its users waited until a connect succeeded, and started again.",
        describe(&away, &longest, &ends),
        show_losses(lost, refused),
        successor(run, &longest)
    );
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_evidence(away.iter().take(SHOWN_MAX).map(|away| Evidence {
            counter: "load.outage".to_owned(),
            from: away.from_ms as f64,
            to: away.to_ms.unwrap_or(away.from_ms) as f64,
            at_ms: away.from_ms,
        }))
        .with_evidence(run.connect_failures("ECONNREFUSED"))
        .remedied_by(
            "find why it restarted: its own output, dmesg (killed for its memory), its supervisor \
         (systemd, a container)",
        );
    Some(finding)
}

/// Returns the finding for workers that ended while their supervisor, or other workers, held the
/// listener: no connect was refused.
fn workers(run: &RunView<'_>, all: &[Absence], (lost, refused): (u64, u64)) -> Option<Finding> {
    let workers = worker_ends(run).into_iter();
    let workers = workers.filter(|end| all.iter().any(|away| away.is_of(end)));
    let mut ends: Vec<(u64, u32)> = workers.map(|end| (end.at_ms, end.pid)).collect();
    let processes = run.peak(Endpoint::Server, ProcessMetric::PROCESSES.server);
    // One of several processes that share the listener may be the one that is followed.
    if processes.is_some_and(|peak| peak.value > 1) {
        let followed = events(run).filter_map(|(at_ms, kind)| match kind {
            RunEventKind::ServerProcessEnded { pid, .. } => Some((at_ms, *pid)),
            _ => None,
        });
        ends.extend(followed.filter(|(at_ms, _)| all.iter().any(|away| away.is_near(*at_ms))));
    }
    if refused > 0 || ends.is_empty() {
        return None;
    }
    ends.sort_unstable();
    // The moments are those of samples: only their mean is near the truth.
    let span_ms = ends.last()?.0 - ends.first()?.0;
    let rhythm = match ends.len() as u64 - 1 {
        0 | 1 => String::new(),
        times => format!(", about every {}", micros(span_ms * 1000 / times)),
    };
    let shown: Vec<String> = ends.iter().take(PIDS_SHOWN).map(|(_, pid)| pid.to_string()).collect();
    let more = if ends.len() > shown.len() { ", …" } else { "" };
    let text = format!(
        "{} of the server ended{rhythm}, and {} with {}, while its listener stayed: no connect was \
         refused. {}: {}{more}.",
        counted(ends.len() as u64, "worker process", "worker processes"),
        counted(lost, "connection", "connections"),
        if ends.len() == 1 { "it" } else { "them" },
        if ends.len() == 1 { "Its pid" } else { "Their pids" },
        shown.join(", "),
    );
    let finding = Finding::new(RULE.id, Side::Server, text).with_evidence(
        all.iter().take(SHOWN_MAX).map(|away| Evidence {
            counter: "load.outage".to_owned(),
            from: away.from_ms as f64,
            to: away.to_ms.unwrap_or(away.from_ms) as f64,
            at_ms: away.from_ms,
        }),
    );
    let counter = ProcessMetric::PROCESSES_ENDED.server;
    let ended = run.growth(Endpoint::Server, counter);
    Some(finding.with_evidence(ended).remedied_by(
        "find why workers end: the log of the server and of its supervisor (an unhandled error, a \
         time limit, a limit of requests), dmesg (killed for their memory, a segmentation fault)",
    ))
}

/// Returns what happened to the server: the end of its sentence's subject, and a verb. `ends` are
/// the moments at which its process ended.
fn describe(away: &[Absence], longest: &Absence, ends: &[u64]) -> String {
    let seconds = |ms: u64| format!("{:.1}", ms as f64 / 1000.0);
    let length = length_ms(longest);
    match (ends, away.len()) {
        ([_, _, ..], _) => {
            let rhythm = rhythm(ends).map(|each| format!(", about every {each}"));
            format!(
                "'s process ended {} times{}, and its connections with it",
                ends.len(),
                rhythm.unwrap_or_default()
            )
        }
        ([at_ms], 1) if length < AT_ONCE_MS => {
            let at = seconds(*at_ms);
            format!("'s process ended after {at} s, and another one took its place at once")
        }
        (_, 1) => {
            let to_ms = longest.to_ms.unwrap_or(longest.from_ms);
            format!(" was away from {} to {} s", seconds(longest.from_ms), seconds(to_ms))
        }
        (_, n) => format!(" was away {n} times, for up to {}", micros(length * 1000)),
    }
}

/// Returns the usual time between two ends, if there are several.
fn rhythm(ends: &[u64]) -> Option<String> {
    let mut apart: Vec<u64> = ends.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    apart.sort_unstable();
    let median = *apart.get(apart.len() / 2).filter(|_| apart.len() > 1)?;
    Some(micros(median * 1000))
}

/// Returns the length of an outage.
fn length_ms(away: &Absence) -> u64 {
    away.to_ms.unwrap_or(away.from_ms).saturating_sub(away.from_ms)
}

/// Formats losses, such as `20 connections were lost, 42 connects refused`.
fn show_losses(lost: u64, refused: u64) -> String {
    let lost_words = counted(lost, "connection was", "connections were");
    match (lost, refused) {
        (0, _) => format!("{} refused", counted(refused, "connect was", "connects were")),
        (_, 0) => format!("{lost_words} lost"),
        _ => format!("{lost_words} lost, {} refused", counted(refused, "connect", "connects")),
    }
}

/// Returns a phrase that names the server process after an outage.
fn successor(run: &RunView<'_>, away: &Absence) -> String {
    let after = |at_ms: &u64| *at_ms + SUCCESSOR_MS >= away.from_ms;
    let found = events(run).filter(|(at_ms, _)| after(at_ms)).find_map(|(_, kind)| match kind {
        RunEventKind::ServerProcess { pid, program, .. } => {
            Some(format!("{program} (pid {pid}) served"))
        }
        RunEventKind::ServerBack { pid } => Some(format!("pid {pid} served")),
        _ => None,
    });
    found.unwrap_or_else(|| "it served again".to_owned())
}

/// The fewest failures that count: a connect or two that a start-up refuses are no outage.
const FAILED_MIN: u64 = 3;

/// The longest absence that users do not notice: a supervisor holds the listener.
const AT_ONCE_MS: u64 = 100;

/// The most pids that the text shows.
const PIDS_SHOWN: usize = 4;

/// The most outages that the evidence shows.
const SHOWN_MAX: usize = 3;

/// The longest time by which the next server process may be noticed before the first connection is
/// lost.
const SUCCESSOR_MS: u64 = 1_000;

#[cfg(test)]
mod tests {
    use throng_measure::{ErrorKind, Outage, RunEvent};

    use super::super::fixture::Run;
    use super::*;

    /// A run whose server is away from 4.2 to 5.6 s.
    fn restarted() -> Run {
        Run::quiet()
            .loaded(|load, second| {
                if second == 5 {
                    load.outage = Some(Outage {
                        lost_ms: Some(4_200),
                        refused_ms: Some(4_300),
                        ..Outage::default()
                    });
                    load.counters.connected = 0;
                } else if second == 6 {
                    load.outage = Some(Outage { back_ms: Some(5_600), ..Outage::default() });
                }
                load.counters.connects_ok += if second >= 6 { 20 } else { 0 };
                load.errors.add(ErrorKind::ClosedByPeer, if second >= 5 { 20 } else { 0 });
                load.connect_failed.add("ECONNREFUSED", 21 * second.saturating_sub(4).min(2));
            })
            .changed(|interval, second| {
                let program = || "python3".to_owned();
                let ended = RunEventKind::ServerProcessEnded { pid: 7, program: program() };
                let began =
                    RunEventKind::ServerProcess { pid: 20_144, program: program(), runtime: None };
                match second {
                    5 => interval.events.push(RunEvent::new(4_190, ended)),
                    6 => interval.events.push(RunEvent::new(5_550, began)),
                    _ => {}
                }
            })
    }

    #[test]
    fn a_restart_is_an_outage_with_its_length_and_the_next_process() {
        let found = restarted().speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server was away from 4.2 to 5.6 s: 20 connections were lost, 42 connects refused; \
             then python3 (pid 20144) served"
        );
        assert_eq!(found.began_ms(), Some(4_200));
        restarted().check_all(&["server_restarted"]);
        // For a server on another machine only failed connects show it.
        let foreign = restarted().changed(|interval, _| interval.events.clear());
        assert!(foreign.speaks(&RULE).first_sentence().ends_with("; then it served again"));
    }

    #[test]
    fn a_throng_server_whose_control_socket_is_another_one_has_come_back_too() {
        let run = restarted().changed(|interval, second| {
            interval.events.clear();
            if second == 5 {
                let reason = "connection refused".to_owned();
                interval.events.push(RunEvent::new(5_000, RunEventKind::ServerLost { reason }));
            }
        });
        run.check_all(&["server_restarted"]);
    }

    #[test]
    fn a_server_that_goes_away_again_and_again_is_one_finding() {
        let run = Run::quiet().loaded(|load, second| {
            load.connect_failed.add("ECONNREFUSED", 5 * second);
            let (refused_ms, back_ms) = (1_000 * second - 500.min(1_000 * second), 1_000 * second);
            load.outage = Some(Outage {
                refused_ms: Some(refused_ms),
                back_ms: Some(back_ms),
                ..Outage::default()
            });
        });
        let found = run.speaks(&RULE);
        assert!(
            found.text.starts_with(
                "The server was away 10 times, for up to 500 ms: 50 connects were refused"
            ),
            "{found}"
        );
    }

    #[test]
    fn connections_that_are_closed_while_others_are_taken_are_no_outage() {
        let closing = Run::quiet().loaded(|load, second| {
            load.errors.add(ErrorKind::ClosedByPeer, 20 * second);
            load.outage = Some(Outage {
                lost_ms: Some(1_000 * second),
                back_ms: Some(1_000 * second + 1),
                ..Outage::default()
            });
        });
        closing.is_silent(&RULE);
    }

    /// A run whose server's process ends every two seconds with its 60 connections. The listener
    /// stays, so that connects succeed at once, and before the end of the process is noticed.
    fn looping(ends: usize) -> Run {
        let is_end =
            move |second: u64| second.is_multiple_of(2) && (2..=2 * ends as u64).contains(&second);
        Run::quiet()
            .loaded(move |load, second| {
                let at = 1_000 * second;
                load.errors.add(ErrorKind::ClosedByPeer, 60 * (second / 2).min(ends as u64));
                load.outage = is_end(second).then(|| Outage {
                    lost_ms: Some(at - 500),
                    back_ms: Some(at - 499),
                    ..Outage::default()
                });
            })
            .changed(move |interval, second| {
                if is_end(second) {
                    let program = || "python3".to_owned();
                    let (at, pid) = (1_000 * second, 3_600 + second as u32);
                    let ended = RunEventKind::ServerProcessEnded { pid, program: program() };
                    let next = RunEventKind::ServerProcess {
                        pid: pid + 1,
                        program: program(),
                        runtime: None,
                    };
                    interval.events.push(RunEvent::new(at - 470, ended));
                    interval.events.push(RunEvent::new(at - 400, next));
                }
            })
    }

    #[test]
    fn a_process_that_ends_again_and_again_is_reported_though_no_connect_was_refused() {
        let run = looping(4);
        assert_eq!(
            run.speaks(&RULE).first_sentence(),
            "The server's process ended 4 times, about every 2.00 s, and its connections with it: \
             240 connections were lost; then python3 (pid 3609) served"
        );
        run.check_all(&["server_restarted"]);
        let once = looping(1).speaks(&RULE);
        let begin =
            "The server's process ended after 1.5 s, and another one took its place at once";
        assert!(once.text.starts_with(begin), "{once}");
    }

    /// The same of workers, whose supervisor is the process that is followed.
    fn losing_workers(ends: usize, ended_each: i64) -> Run {
        looping(ends).growing(ProcessMetric::PROCESSES_ENDED.server, 0, ended_each, 1).changed(
            |interval, _| {
                interval.kernel.set(ProcessMetric::PROCESSES.server, 5);
                interval.events.retain_mut(|event| match &event.kind {
                    RunEventKind::ServerProcessEnded { pid, program } => {
                        let (pid, program) = (*pid, program.clone());
                        event.kind = RunEventKind::ServerWorkerEnded { pid, program };
                        true
                    }
                    _ => false,
                });
            },
        )
    }

    fn here(mut run: Run) -> Run {
        run.header.target_is_here = true;
        run
    }

    #[test]
    fn workers_that_end_while_their_listener_stays_are_counted_with_their_pids() {
        let run = here(losing_workers(4, 1));
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "4 worker processes of the server ended, about every 2.00 s, and 240 connections with \
             them, while its listener stayed: no connect was refused"
        );
        assert!(found.text.contains("Their pids: 3602, 3604, 3606, 3608."), "{found}");
        assert!(found.remedy.contains("dmesg"), "{found}");
        run.check_all(&["server_restarted"]);
        // Connects that are refused are those of a server that is away.
        let refused = run.loaded(|load, second| load.connect_failed.add("ECONNREFUSED", second));
        assert!(!refused.speaks(&RULE).text.contains("listener stayed"));
    }

    #[test]
    fn one_of_several_workers_may_be_the_followed_process() {
        let run = here(looping(4).with(ProcessMetric::PROCESSES.server, 5));
        let begin = "4 worker processes of the server ended, about every 2.00 s";
        let found = run.speaks(&RULE);
        assert!(found.text.starts_with(begin), "{found}");
    }

    #[test]
    fn a_process_for_each_connection_that_ends_with_it_is_no_worker() {
        here(losing_workers(4, 100)).is_silent(&RULE);
    }

    #[test]
    fn a_loop_of_crashes_that_is_away_at_the_end_has_not_stayed_away() {
        let away_at_end = looping(4).loaded(|load, second| {
            if second == 10 {
                load.errors.add(ErrorKind::ClosedByPeer, 60);
                load.connect_failed.add("ECONNREFUSED", 9);
                load.counters.connected = 0;
                load.outage = Some(Outage {
                    lost_ms: Some(9_700),
                    refused_ms: Some(9_800),
                    ..Outage::default()
                });
            }
        });
        away_at_end.check_all(&["server_restarted"]);
    }

    #[test]
    fn one_that_stays_away_is_lost() {
        let gone = restarted().loaded(|load, second| {
            if second >= 6 {
                load.outage = None;
                load.counters.connected = 0;
                load.counters.connects_ok -= 20;
            }
        });
        gone.is_silent(&RULE);
        gone.check_all(&["server_lost"]);
    }
}
