//! The server ended, stopped answering, or never listened.

use throng_measure::{Endpoint, Finding, Limit, ProcessMetric, RunEventKind, SERVER_SILENT, Side};
use throng_report::render::count;

use super::{Rule, RuleTrait};
use crate::counted::connections;
use crate::history::Sample;
use crate::outages::{events, outages, process_ends, stays_away};
use crate::run_view::{Growth, RunView};

pub(super) const RULE: Rule = Rule::new("server_lost", find)
    .with(&[RuleTrait::ServerFault])
    .explains(&["server_closes_early", "half_open", "handshakes_refused"]);

fn find(run: &RunView<'_>) -> Option<Finding> {
    if let Some((at_ms, how)) = ended(run) {
        return Some(gone(run, at_ms, &how));
    }
    let is_back = outages(run).last().is_some_and(|away| away.to_ms.is_some());
    if let Some((at_ms, reason)) = lost(run).filter(|(at_ms, _)| !is_back && !serves(run, *at_ms)) {
        return Some(silent(run, at_ms, &reason));
    }
    refused(run).filter(|_| run.summary.connect.ok == 0).map(|refused| no_listener(run, &refused))
}

/// Returns when the server ended, and the evidence: its process was seen to end; or its control
/// socket is silent and its connections are gone; or from some time on it refuses every connect. A
/// server that serves again has not ended.
pub(super) fn ended(run: &RunView<'_>) -> Option<(u64, String)> {
    let all = outages(run);
    let away = all.last().copied();
    if away.is_some() && !stays_away(run, &all) {
        return None;
    }
    let exact_ms = |at_ms: u64| {
        let before = |ms: &u64| *ms <= at_ms + LATE_MS && *ms + LATE_MS >= at_ms;
        process_ends(run).last().or(away.map(|away| away.from_ms)).filter(before).unwrap_or(at_ms)
    };
    match lost(run) {
        Some((at_ms, reason)) => {
            let is_gone = ended_with_connections(run, at_ms, &reason) && !serves(run, at_ms);
            is_gone.then(|| (exact_ms(at_ms), format!(" ({reason})")))
        }
        None => {
            let refused = refused(run).filter(|_| run.summary.connect.ok > 0)?;
            let is_gone = all_connects_fail(run, &refused);
            is_gone.then(|| (exact_ms(refused.began_ms), String::new()))
        }
    }
}

/// Reports whether connects succeed some time after `at_ms`: another server with another control
/// socket has replaced it.
fn serves(run: &RunView<'_>, at_ms: u64) -> bool {
    let ok = |sample: &Sample| sample.load().map_or(0, |load| load.counters.connects_ok);
    let after = run.samples().iter().find(|sample| sample.interval.at_ms >= at_ms + LATE_MS);
    after.zip(run.samples().last()).is_some_and(|(after, last)| ok(last) > ok(after))
        && at_end(run) > 0
}

/// Returns the growth of refused connects, if there are enough.
fn refused(run: &RunView<'_>) -> Option<Growth> {
    run.connect_failures("ECONNREFUSED").filter(|refused| refused.by() >= REFUSED_MIN)
}

/// Returns when and why the server's control socket was lost, if it never came back.
fn lost(run: &RunView<'_>) -> Option<(u64, String)> {
    let mut lost = None;
    for event in run.samples().iter().flat_map(|sample| &sample.interval.events) {
        match &event.kind {
            RunEventKind::ServerLost { reason } => lost = Some((event.at_ms, reason.clone())),
            RunEventKind::ServerBack { .. } => lost = None,
            _ => {}
        }
    }
    lost
}

/// Reports whether no connect succeeded after the first refusal, except perhaps in that very
/// interval.
fn all_connects_fail(run: &RunView<'_>, refused: &Growth) -> bool {
    let ok = |sample: &Sample| sample.load().map_or(0, |load| load.counters.connects_ok);
    let since = run.samples().iter().find(|sample| sample.interval.at_ms >= refused.began_ms);
    let last = run.samples().last();
    since.zip(last).is_some_and(|(since, last)| {
        ok(last) == ok(since) && last.load().is_some_and(|load| load.counters.connected == 0)
    })
}

/// Reports whether the connections ended with the server. A server that hangs keeps its
/// connections, and its kernel goes on to establish others; its users may give up.
fn ended_with_connections(run: &RunView<'_>, at_ms: u64, reason: &str) -> bool {
    let refused =
        |sample: &Sample| sample.load().map_or(0, |load| load.connect_failed.get("ECONNREFUSED"));
    let before = run.samples().iter().rev().find(|sample| sample.interval.at_ms < at_ms);
    let since = run.samples().last().map_or(0, refused).saturating_sub(before.map_or(0, refused));
    let held = held(run, at_ms);
    let is_there = reason.starts_with(SERVER_SILENT);
    since >= REFUSED_MIN
        || (!is_there && held > 0 && at_end(run).saturating_mul(LEFT_ONE_IN) <= held)
}

/// Returns the connections before `at_ms`. The server may have ended an interval before that was
/// noticed, or in the middle of one.
fn held(run: &RunView<'_>, at_ms: u64) -> u64 {
    let before = run.samples().iter().rev().filter(|sample| sample.interval.at_ms <= at_ms).take(3);
    before.filter_map(Sample::load).map(|load| load.counters.connected).max().unwrap_or(0)
}

/// Returns the connects that had succeeded by the end of the interval in which the server ended. If
/// no line before it shows connections, no gauge says how many of these there were at that moment.
fn established_first(run: &RunView<'_>, at_ms: u64) -> Option<String> {
    let first = run.samples().iter().find(|sample| sample.interval.at_ms >= at_ms)?;
    let ok = first.load()?.counters.connects_ok;
    (ok > 0).then(|| connections(ok))
}

/// Returns the connections in the last interval.
fn at_end(run: &RunView<'_>) -> u64 {
    run.samples().last().and_then(Sample::load).map_or(0, |load| load.counters.connected)
}

/// Returns the finding for a server that ended.
fn gone(run: &RunView<'_>, at_ms: u64, how: &str) -> Finding {
    let held = held(run, at_ms);
    let with = match held {
        0 => established_first(run, at_ms).map(|most| format!(", with at most {most}")),
        held => Some(format!(", with {}", connections(held))),
    };
    let with = with.unwrap_or_default();
    let taken = port_taken(run);
    let because = taken.as_ref().map_or_else(|| how.to_owned(), |(taken, _)| format!(": {taken}"));
    let range = taken.as_ref().map_or_else(String::new, |(_, range)| range.clone());
    let mut finding = Finding::new(
        RULE.id,
        Side::Server,
        format!(
            "The server ended after {:.1} s{with}, and did not come back{because}.{range} All \
             later failures follow from that.",
            at_ms as f64 / 1000.0
        ),
    )
    .shown_by("load.counters.connected", held as f64, at_end(run) as f64, at_ms)
    .with_evidence(refused(run))
    .with_evidence(run.peak(Endpoint::Server, ProcessMetric::RSS_BYTES.server));
    // The evidence cannot begin before the server ended.
    finding.evidence.iter_mut().for_each(|evidence| evidence.at_ms = evidence.at_ms.max(at_ms));
    let look = "look for the reason in its own output and in dmesg (killed for its memory, a \
                crash, a restart)";
    finding.remedied_by(match (taken, target_port(run)) {
        (Some(_), Some(port)) => {
            format!("{}; {look}", Limit::RESERVED_PORTS.raise(port))
        }
        _ => look.to_owned(),
    })
}

/// Returns why no server can listen on the target's port: a connection has it as its source port.
fn port_taken(run: &RunView<'_>) -> Option<(String, String)> {
    let facts = run.facts(Endpoint::Server);
    let range = [facts.local_port_first, facts.local_port_last];
    events(run).find_map(|(_, kind)| match (kind, range) {
        (RunEventKind::PortTaken { port, connection, holder }, [Some(first), Some(last)])
            if (first..=last).contains(&i64::from(*port)) =>
        {
            let taken = format!("its port {port} is the source port of {connection} ({holder})");
            let range = format!(
                " The kernel gave that port to a connection because it is in ip_local_port_range \
                 {first}-{last}: no server can listen there until that connection ends."
            );
            Some((taken, range))
        }
        _ => None,
    })
}

/// Returns the target's port, if a connection has taken it.
fn target_port(run: &RunView<'_>) -> Option<u16> {
    events(run).find_map(|(_, kind)| match kind {
        RunEventKind::PortTaken { port, .. } => Some(*port),
        _ => None,
    })
}

/// Returns the finding for a server whose control socket is silent while its connections stay open:
/// its state is unknown.
fn silent(run: &RunView<'_>, at_ms: u64, reason: &str) -> Finding {
    let (held, at_end) = (held(run, at_ms), at_end(run));
    Finding::new(
        RULE.id,
        Side::Server,
        format!(
            "The server stopped answering after {:.1} s ({reason}), with {} still \
             open. It hangs, or is too busy to answer.",
            at_ms as f64 / 1000.0,
            connections(at_end)
        ),
    )
    .with_confidence(SILENT_CONFIDENCE)
    .shown_by("load.counters.connected", held as f64, at_end as f64, at_ms)
    .remedied_by(
        "look at its threads (top -H), at the calls that they wait in (strace -f), and at its own \
         output",
    )
}

/// Returns the finding for a target without a listener.
fn no_listener(run: &RunView<'_>, refused: &Growth) -> Finding {
    let target = &run.header.target;
    let refused_text = format!("all {} connects were refused", count(refused.by() as f64));
    let elsewhere = events(run).find_map(|(_, kind)| match kind {
        RunEventKind::ServerElsewhere { target, listens_at, holder } => {
            Some((target, listens_at.first()?, holder))
        }
        _ => None,
    });
    let (text, remedy) = match elsewhere {
        Some((wanted, at, holder)) => {
            let holder = holder.as_ref().map_or_else(String::new, |who| format!(" ({who})"));
            (
                format!(
                    "No server listens at {target}: {refused_text}; one listens at {at}{holder}, \
                     which is the same port of another address."
                ),
                format!(
                    "write --target {}, or let the server listen at {wanted} too",
                    at_address(target, at)
                ),
            )
        }
        None => (
            format!("No server listens at {target}: {refused_text}."),
            "start the server, or correct the address and port (--target)".to_owned(),
        ),
    };
    Finding::new(RULE.id, Side::Server, text)
        .shown_by(&refused.counter, refused.from as f64, refused.to as f64, refused.began_ms)
        .remedied_by(remedy)
}

/// Returns the URL of a target with another address.
fn at_address(target: &str, address: &str) -> String {
    let Some((scheme, rest)) = target.split_once("://") else { return address.to_owned() };
    let path = rest.find('/').map_or("", |at| &rest[at..]);
    format!("{scheme}://{address}{path}")
}

/// The longest delay between the end of a process and the loss of its control socket or its
/// connections.
const LATE_MS: u64 = 2_000;

/// The fewest refusals that count: fewer are a server that starts a moment after its load.
const REFUSED_MIN: u64 = 3;

/// The share of connections, one in so many, that may be left if they ended with the server.
const LEFT_ONE_IN: u64 = 100;

/// The confidence when only the control socket is silent: it is not what the run measures.
const SILENT_CONFIDENCE: f64 = 0.6;

#[cfg(test)]
mod tests {
    use throng_measure::{ErrorKind, Metric, Outage, RunEvent};

    use super::super::fixture::Run;
    use super::*;

    fn refusing_from(from: u64) -> Run {
        Run::quiet().loaded(move |load, second| {
            load.connect_failed.add("ECONNREFUSED", 300 * (second + 1).saturating_sub(from.max(1)));
            if second >= from {
                load.counters.connected = 0;
            }
        })
    }

    fn with_event(run: Run, at: u64, kind: RunEventKind) -> Run {
        run.changed(move |interval, second| {
            if second == at {
                interval.events.push(RunEvent::new(at * 1000, kind.clone()));
            }
        })
    }

    fn lost() -> RunEventKind {
        RunEventKind::ServerLost { reason: "connection refused".into() }
    }

    #[test]
    fn a_server_that_ended_is_reported_with_its_connections() {
        let found = with_event(refusing_from(7), 7, lost()).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server ended after 7.0 s, with 1k connections, and did not come back (connection \
             refused)"
        );
        // For a server that is not throng, only failed connects show it.
        let foreign = refusing_from(7).speaks(&RULE);
        assert_eq!(
            foreign.first_sentence(),
            "The server ended after 7.0 s, with 1k connections, and did not come back"
        );
    }

    #[test]
    fn a_server_that_ended_in_the_first_second_had_the_connections_made_until_then() {
        let run = Run::quiet().loaded(|load, second| {
            (load.counters.connected, load.counters.connects_ok) = (0, 11);
            load.connect_failed.add("ECONNREFUSED", 300 * second);
            load.outage = (second == 1).then(|| Outage {
                lost_ms: Some(500),
                refused_ms: Some(510),
                ..Outage::default()
            });
        });
        let found = run.speaks(&RULE);
        let begin = "The server ended after 0.5 s, with at most 11 connections, and did not";
        assert!(found.text.starts_with(begin), "{found}");
    }

    #[test]
    fn a_silent_server_that_keeps_its_connections_has_not_ended() {
        let hung = with_event(Run::quiet(), 7, lost());
        let found = hung.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server stopped answering after 7.0 s (connection refused), with 1k connections \
             still open"
        );
        assert!(found.confidence < 0.7 && !found.text.contains("ended"), "{found}");
        let late =
            hung.loaded(|load, second| load.errors.add(ErrorKind::ExpectTimeout, 40 * second));
        late.check_all(&["server_slow", "server_lost"]);
        let refusing = with_event(Run::quiet(), 7, lost()).loaded(|load, second| {
            load.connect_failed.add("ECONNREFUSED", 2 * second.saturating_sub(6));
        });
        assert!(refusing.speaks(&RULE).text.contains("The server ended"));
        // Its users gave up at the end of the run, and it is still there.
        let reason = format!("{SERVER_SILENT} for 4.0 s");
        let stopped = with_event(Run::quiet(), 7, RunEventKind::ServerLost { reason });
        let stopped = stopped.loaded(|load, second| {
            if second > 8 {
                load.counters.connected = 0;
            }
        });
        let found = stopped.speaks(&RULE);
        assert!(found.text.starts_with("The server stopped answering after 7.0 s"), "{found}");
    }

    #[test]
    fn a_target_without_a_listener_is_reported() {
        let mut no_server = refusing_from(0).loaded(|load, _| {
            (load.counters.connects_ok, load.counters.connected) = (0, 0);
        });
        no_server.header.target = "tcp://127.0.0.1:5555".into();
        let found = no_server.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "No server listens at tcp://127.0.0.1:5555: all 3k connects were refused"
        );
    }

    #[test]
    fn a_server_at_another_address_of_the_port_is_named() {
        let elsewhere = RunEventKind::ServerElsewhere {
            target: "127.0.0.1:5555".into(),
            listens_at: vec!["[::1]:5555".into()],
            holder: Some("python3, pid 4711".into()),
        };
        let mut run = with_event(refusing_from(0), 0, elsewhere).loaded(|load, _| {
            (load.counters.connects_ok, load.counters.connected) = (0, 0);
        });
        run.header.target = "ws://127.0.0.1:5555/chat".into();
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "No server listens at ws://127.0.0.1:5555/chat: all 3k connects were refused; one \
             listens at [::1]:5555 (python3, pid 4711), which is the same port of another address"
        );
        assert_eq!(
            found.remedy,
            "write --target ws://[::1]:5555/chat, or let the server listen at 127.0.0.1:5555 too"
        );
    }

    #[test]
    fn a_port_that_another_connection_has_is_why_it_cannot_come_back() {
        let taken = RunEventKind::PortTaken {
            port: 40_050,
            connection: "127.0.0.1:40050 -> 127.0.0.1:7999".into(),
            holder: "python3, pid 4711".into(),
        };
        let run = |first| {
            with_event(refusing_from(7), 8, taken.clone())
                .with(Metric::SYSCTL_NET_IPV4_LOCAL_PORT_FIRST, first)
                .with(Metric::SYSCTL_NET_IPV4_LOCAL_PORT_LAST, 40_100)
        };
        let found = run(40_000).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server ended after 7.0 s, with 1k connections, and did not come back: its port \
             40050 is the source port of 127.0.0.1:40050 -> 127.0.0.1:7999 (python3, pid 4711)"
        );
        assert!(
            found.remedy.starts_with("sysctl -w net.ipv4.ip_local_reserved_ports=40050"),
            "{found}"
        );
        assert!(run(40_060).speaks(&RULE).first_sentence().ends_with("did not come back"));
    }

    #[test]
    fn the_moment_of_its_end_is_that_of_its_process() {
        let ended = RunEventKind::ServerProcessEnded { pid: 7, program: "beam.smp".into() };
        let run = refusing_from(7).changed(move |interval, second| {
            if second == 7 {
                interval.events.push(RunEvent::new(6_240, ended.clone()));
            }
        });
        assert!(
            run.speaks(&RULE).text.starts_with("The server ended after 6.2 s, with 1k connections")
        );
    }

    #[test]
    fn a_server_that_came_back_or_refuses_only_some_is_not_lost() {
        let back = with_event(Run::quiet(), 5, lost());
        with_event(back, 7, RunEventKind::ServerBack { pid: 7 }).is_silent(&RULE);
        let some = Run::quiet().loaded(|load, second| {
            load.connect_failed.add("ECONNREFUSED", 300 * second);
            load.counters.connects_ok += 10 * second;
        });
        some.is_silent(&RULE);
    }
}
