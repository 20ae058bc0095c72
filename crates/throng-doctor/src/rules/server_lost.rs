//! The server is gone, does not answer any more, or was never there.

use throng_report::render::count;
use throng_report::{Finding, RunEventKind, SERVER_SILENT, Side};

use super::Rule;
use crate::history::Sample;
use crate::outages::{events, outages};
use crate::run_view::{Endpoint, Growth, RunView};

pub(super) const RULE: Rule = Rule {
    id: "server_lost",
    explains: &["server_closes_early", "half_open", "handshakes_refused"],
    find,
};

fn find(run: &RunView<'_>) -> Option<Finding> {
    if let Some((at_ms, how)) = ended(run) {
        return Some(gone(run, at_ms, &how));
    }
    let is_back = outages(run).last().is_some_and(|away| away.to_ms.is_some());
    if let Some((at_ms, reason)) = lost(run).filter(|(at_ms, _)| !is_back && !serves(run, *at_ms)) {
        return Some(silent(run, at_ms, &reason));
    }
    refused(run).filter(|_| run.summary.connect.ok == 0).map(|refused| nobody(run, &refused))
}

/// When the server ended, and how that is known: its process was seen to end, its control socket is silent and its connections are
/// gone with it, or every connect is refused from some moment on. One that serves again has not.
pub(super) fn ended(run: &RunView<'_>) -> Option<(u64, String)> {
    let away = outages(run).into_iter().next_back();
    if away.is_some_and(|away| away.to_ms.is_some()) {
        return None;
    }
    let exact_ms = |at_ms: u64| {
        let before = |ms: &u64| *ms <= at_ms + LATE_MS && *ms + LATE_MS >= at_ms;
        process_ended(run).or(away.map(|away| away.from_ms)).filter(before).unwrap_or(at_ms)
    };
    match lost(run) {
        Some((at_ms, reason)) => {
            let is_gone = took_all_with_it(run, at_ms, &reason) && !serves(run, at_ms);
            is_gone.then(|| (exact_ms(at_ms), format!(" ({reason})")))
        }
        None => {
            let refused = refused(run).filter(|_| run.summary.connect.ok > 0)?;
            let is_gone = nobody_gets_through(run, &refused);
            is_gone.then(|| (exact_ms(refused.began_ms), String::new()))
        }
    }
}

/// When the process that served last was seen to end.
fn process_ended(run: &RunView<'_>) -> Option<u64> {
    let ended =
        events(run).filter(|(_, kind)| matches!(kind, RunEventKind::ServerProcessEnded { .. }));
    ended.map(|(at_ms, _)| at_ms).last()
}

/// Whether connects succeed some time after `at_ms`: another server has taken its place, whose control socket is another one.
fn serves(run: &RunView<'_>, at_ms: u64) -> bool {
    let ok = |moment: &Sample| moment.load().map_or(0, |load| load.counters.connects_ok);
    let after = run.samples().iter().find(|moment| moment.interval.at_ms >= at_ms + LATE_MS);
    after.zip(run.samples().last()).is_some_and(|(after, last)| ok(last) > ok(after))
        && at_end(run) > 0
}

fn refused(run: &RunView<'_>) -> Option<Growth> {
    run.connect_failures("ECONNREFUSED").filter(|refused| refused.by() >= REFUSED_MIN)
}

/// When the server's control socket was lost, if it never came back.
fn lost(run: &RunView<'_>) -> Option<(u64, String)> {
    let mut lost = None;
    for event in run.samples().iter().flat_map(|moment| &moment.interval.events) {
        match &event.kind {
            RunEventKind::ServerLost { reason } => lost = Some((event.at_ms, reason.clone())),
            RunEventKind::ServerBack { .. } => lost = None,
            _ => {}
        }
    }
    lost
}

/// From the first refusal on no connect was established, but perhaps in that very interval.
fn nobody_gets_through(run: &RunView<'_>, refused: &Growth) -> bool {
    let ok = |moment: &Sample| moment.load().map_or(0, |load| load.counters.connects_ok);
    let since = run.samples().iter().find(|moment| moment.interval.at_ms >= refused.began_ms);
    let last = run.samples().last();
    since.zip(last).is_some_and(|(since, last)| {
        ok(last) == ok(since) && last.load().is_some_and(|load| load.counters.connected == 0)
    })
}

/// A server that hangs keeps its connections, and its kernel goes on to establish others: their users may give up all the same.
fn took_all_with_it(run: &RunView<'_>, at_ms: u64, reason: &str) -> bool {
    let refused =
        |moment: &Sample| moment.load().map_or(0, |load| load.connect_failed.get("ECONNREFUSED"));
    let before = run.samples().iter().rev().find(|moment| moment.interval.at_ms < at_ms);
    let since = run.samples().last().map_or(0, refused).saturating_sub(before.map_or(0, refused));
    let held = held(run, at_ms);
    let is_there = reason.starts_with(SERVER_SILENT);
    since >= REFUSED_MIN
        || (!is_there && held > 0 && at_end(run).saturating_mul(LEFT_ONE_IN) <= held)
}

/// Connections then. It may have ended in the interval before that was noticed, or in the midst of one.
fn held(run: &RunView<'_>, at_ms: u64) -> u64 {
    let before = run.samples().iter().rev().filter(|moment| moment.interval.at_ms <= at_ms).take(3);
    before.filter_map(Sample::load).map(|load| load.counters.connected).max().unwrap_or(0)
}

fn at_end(run: &RunView<'_>) -> u64 {
    run.samples().last().and_then(Sample::load).map_or(0, |load| load.counters.connected)
}

fn gone(run: &RunView<'_>, at_ms: u64, how: &str) -> Finding {
    let held = held(run, at_ms);
    let memory = || run.peak(Endpoint::Server, "process.server.rss_bytes");
    let taken = port_taken(run);
    let because = taken.as_ref().map_or_else(|| how.to_owned(), |(taken, _)| format!(": {taken}"));
    let range = taken.as_ref().map_or_else(String::new, |(_, range)| range.clone());
    let mut found = Finding::new(
        RULE.id,
        Side::Server,
        format!(
            "The server ended after {:.1} s, with {} connections, and did not come back{because}.{range} Whatever failed \
             after that failed for want of it.",
            at_ms as f64 / 1000.0,
            count(held as f64)
        ),
    )
    .shown_by("load.counters.connected", held as f64, at_end(run) as f64, at_ms);
    found.evidence.extend(refused(run).map(|refused| refused.evidence()));
    found.evidence.extend(memory().map(|peak| peak.evidence()));
    // What its memory was then is beside the point of when it was lost.
    found.evidence.iter_mut().for_each(|evidence| evidence.at_ms = evidence.at_ms.max(at_ms));
    let look =
        "look into its own output and into dmesg (killed for its memory, a crash, a restart)";
    found.remedied_by(match (taken, target_port(run)) {
        (Some(_), Some(port)) => {
            format!("sysctl -w net.ipv4.ip_local_reserved_ports={port}; {look}")
        }
        _ => look.to_owned(),
    })
}

/// Why no server can listen on the target's port: a connection has it as its source port.
fn port_taken(run: &RunView<'_>) -> Option<(String, String)> {
    let range = ["first", "last"].map(|which| {
        run.constant(Endpoint::Server, &format!("sysctl.net.ipv4.local_port_{which}"))
    });
    events(run).find_map(|(_, kind)| match (kind, range) {
        (RunEventKind::PortTaken { port, connection, holder }, [Some(first), Some(last)])
            if (first..=last).contains(&i64::from(*port)) =>
        {
            let taken = format!("its port {port} is the source port of {connection} ({holder})");
            let range = format!(
                " The kernel gave that port to a connection because it lies in ip_local_port_range {first}-{last}: no server can \
                 listen there while that lasts."
            );
            Some((taken, range))
        }
        _ => None,
    })
}

fn target_port(run: &RunView<'_>) -> Option<u16> {
    events(run).find_map(|(_, kind)| match kind {
        RunEventKind::PortTaken { port, .. } => Some(*port),
        _ => None,
    })
}

/// Its connections are there, and only it says nothing: what it does is not known.
fn silent(run: &RunView<'_>, at_ms: u64, reason: &str) -> Finding {
    let (held, at_end) = (held(run, at_ms), at_end(run));
    Finding::new(
        RULE.id,
        Side::Server,
        format!(
            "The server did not answer any more after {:.1} s ({reason}), with {} connections still open. It hangs, or is too busy to say \
             anything.",
            at_ms as f64 / 1000.0,
            count(at_end as f64)
        ),
    )
    .with_confidence(SILENT_CONFIDENCE)
    .shown_by("load.counters.connected", held as f64, at_end as f64, at_ms)
    .remedied_by("look at its threads (top -H), at what they wait for (its own trace, strace -f), and into its own output")
}

fn nobody(run: &RunView<'_>, refused: &Growth) -> Finding {
    Finding::new(
        RULE.id,
        Side::Server,
        format!(
            "Nobody listens at {}: all {} connects were refused.",
            run.header.target,
            count(refused.by() as f64)
        ),
    )
    .shown_by(&refused.counter, refused.from as f64, refused.to as f64, refused.began_ms)
    .remedied_by("start the server, or correct the address and port (--target)")
}

/// The end of a process is noticed sooner than that of its control socket, or of its connections.
const LATE_MS: u64 = 2_000;

/// Fewer refusals are a server that begins a moment after its load.
const REFUSED_MIN: u64 = 3;

/// When no more than this is left of its connections, they ended with it.
const LEFT_ONE_IN: u64 = 100;

/// A control socket is not what is measured.
const SILENT_CONFIDENCE: f64 = 0.6;

#[cfg(test)]
mod tests {
    use throng_report::RunEvent;

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
    fn a_server_that_ended_is_told_with_what_it_held() {
        let found = with_event(refusing_from(7), 7, lost()).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server ended after 7.0 s, with 1k connections, and did not come back (connection refused)"
        );
        // Of a foreign one only the connects tell.
        let foreign = refusing_from(7).speaks(&RULE);
        assert_eq!(
            foreign.first_sentence(),
            "The server ended after 7.0 s, with 1k connections, and did not come back"
        );
    }

    #[test]
    fn a_server_that_says_nothing_and_keeps_its_connections_has_not_ended() {
        let hung = with_event(Run::quiet(), 7, lost());
        let found = hung.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server did not answer any more after 7.0 s (connection refused), with 1k connections still open"
        );
        assert!(found.confidence < 0.7 && !found.text.contains("ended"), "{found}");
        let late = hung.loaded(|load, second| load.errors.add("expect_timeout", 40 * second));
        late.check_all(&["server_slow", "server_lost"]);
        let refusing = with_event(Run::quiet(), 7, lost()).loaded(|load, second| {
            load.connect_failed.add("ECONNREFUSED", 2 * second.saturating_sub(6));
        });
        assert!(refusing.speaks(&RULE).text.contains("The server ended"));
        // Its users gave up in the end, and it is there all the same.
        let reason = format!("{SERVER_SILENT} for 4.0 s");
        let stopped = with_event(Run::quiet(), 7, RunEventKind::ServerLost { reason });
        let stopped = stopped.loaded(|load, second| {
            if second > 8 {
                load.counters.connected = 0;
            }
        });
        let found = stopped.speaks(&RULE);
        assert!(
            found.text.starts_with("The server did not answer any more after 7.0 s"),
            "{found}"
        );
    }

    #[test]
    fn where_nobody_ever_listened_that_is_told() {
        let mut nobody = refusing_from(0).loaded(|load, _| {
            (load.counters.connects_ok, load.counters.connected) = (0, 0);
        });
        nobody.header.target = "tcp://127.0.0.1:5555".into();
        let found = nobody.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "Nobody listens at tcp://127.0.0.1:5555: all 3k connects were refused"
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
                .with("sysctl.net.ipv4.local_port_first", first)
                .with("sysctl.net.ipv4.local_port_last", 40_100)
        };
        let found = run(40_000).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server ended after 7.0 s, with 1k connections, and did not come back: its port 40050 is the source port of \
             127.0.0.1:40050 -> 127.0.0.1:7999 (python3, pid 4711)"
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
