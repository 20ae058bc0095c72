//! The server ended and came back.

use throng_report::render::micros;
use throng_report::{Evidence, Finding, RunEventKind, Side};

use super::{Rule, RuleTrait};
use crate::counted::counted;
use crate::outages::{Absence, events, outages};
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
    let is_gone = away.len() < all.len();
    let longest = *away.iter().max_by_key(|away| length_ms(away))?;
    let (lost, refused) = away
        .iter()
        .fold((0, 0), |(lost, refused), away| (lost + away.lost, refused + away.refused));
    if is_gone || lost + refused < FAILED_MIN {
        return None;
    }
    let seconds = |ms: u64| format!("{:.1}", ms as f64 / 1000.0);
    let when = match away.len() {
        1 => format!("from {} to {} s", seconds(longest.from_ms), seconds(longest.to_ms?)),
        n => format!("{n} times, for up to {}", micros(length_ms(&longest) * 1000)),
    };
    let text = format!(
        "The server was away {when}: {}; then {}. Its users waited until a connect succeeded, and \
         started again.",
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
        RunEventKind::ServerProcess { pid, program } => {
            Some(format!("{program} (pid {pid}) served"))
        }
        RunEventKind::ServerBack { pid } => Some(format!("pid {pid} served")),
        _ => None,
    });
    found.unwrap_or_else(|| "it served again".to_owned())
}

/// The fewest failures that count: a connect or two that a start-up refuses are no outage.
const FAILED_MIN: u64 = 3;

/// The most outages that the evidence shows.
const SHOWN_MAX: usize = 3;

/// The longest time by which the next server process may be noticed before the first connection is
/// lost.
const SUCCESSOR_MS: u64 = 1_000;

#[cfg(test)]
mod tests {
    use throng_report::{Outage, RunEvent};

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
                load.errors.add("closed_by_peer", if second >= 5 { 20 } else { 0 });
                load.connect_failed.add("ECONNREFUSED", 21 * second.saturating_sub(4).min(2));
            })
            .changed(|interval, second| {
                let program = || "python3".to_owned();
                let ended = RunEventKind::ServerProcessEnded { pid: 7, program: program() };
                let began = RunEventKind::ServerProcess { pid: 20_144, program: program() };
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
            load.errors.add("closed_by_peer", 20 * second);
            load.outage = Some(Outage {
                lost_ms: Some(1_000 * second),
                back_ms: Some(1_000 * second + 1),
                ..Outage::default()
            });
        });
        closing.is_silent(&RULE);
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
