//! No source port was left for another connection to the same target.

use throng_measure::{Endpoint, Finding, Metric, RunEventKind, Side};
use throng_report::render::count;

use super::Rule;
use crate::counted::counted;
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("ports_exhausted", find).explains(&["generator_saturated"]);

/// Looks for `EADDRNOTAVAIL` from a connect: the kernel found no port, or the source address does
/// not belong to this machine.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let short = run.connect_failures("EADDRNOTAVAIL")?;
    // Source ports that were chosen by number and are taken: another cause, which ends in both
    // errnos.
    let taken = run.connect_failures("EADDRINUSE").map_or(0, |growth| growth.by());
    if taken > short.by() {
        return None;
    }
    if run.samples().last()?.load()?.counters.connects_ok == 0 {
        return Some(no_such_address(run).shown_by(
            &short.counter,
            short.from as f64,
            short.to as f64,
            short.began_ms,
        ));
    }
    let ports = run.facts(Endpoint::Client).local_ports;
    let has = ports.map_or(String::new(), |ports| {
        format!(": each of its addresses has {} for one target", count(ports as f64))
    });
    let address = address(run).map_or(String::new(), |address| format!(" of {address}"));
    let waiting = run.peak(Endpoint::Client, Metric::SOCKSTAT_TCP_TW).filter(|tw| {
        // The run's own closed connections, compared with its open ones.
        let open = run.load_at(short.began_ms).connections;
        tw.value as u64 > open
    });
    let is_waiting = waiting.is_some();
    let finding = Finding::new(
        RULE.id,
        Side::Client,
        format!(
            "No source port{address} was left for {} of the generator{has}. {}",
            counted(short.by(), "connect", "connects"),
            match waiting {
                Some(_) => {
                    "Most are in TIME-WAIT: their connections are closed, and for a minute no \
                     other connection gets the port."
                }
                None =>
                    "A connection of the generator or a socket of another program has each of \
                     them.",
            }
        ),
    )
    .with_evidence([short])
    .with_evidence(waiting)
    .remedied_by(if is_waiting {
        "add addresses with --source ADDRESS/PREFIX, or set `close: reset` in the scenario, or \
         sysctl -w net.ipv4.tcp_tw_reuse=1"
    } else {
        "add addresses with --source ADDRESS/PREFIX, or sysctl -w \
         net.ipv4.ip_local_port_range=\"1024 65535\""
    });
    Some(finding)
}

/// Returns the source address whose ports ran out, if an event names it.
fn address<'a>(run: &RunView<'a>) -> Option<&'a str> {
    let events = run.samples().iter().flat_map(|sample| &sample.interval.events);
    events.into_iter().find_map(|event| match &event.kind {
        RunEventKind::PortsExhausted { source } => Some(source.as_str()),
        _ => None,
    })
}

/// Returns the finding for a run without any connection: its ports did not run out.
fn no_such_address(run: &RunView<'_>) -> Finding {
    Finding::new(
        RULE.id,
        Side::Client,
        format!(
            "No connect to {} got a source port: the source address does not belong to this \
             machine, or other sockets have all of its ports. Each connect failed with \
             EADDRNOTAVAIL.",
            run.header.target
        ),
    )
    .with_confidence(0.8)
    .remedied_by(
        "check the machine's addresses (ip addr) and the sockets on their ports (ss -tan); then \
         add an address with ip addr add, or ports with sysctl -w \
         net.ipv4.ip_local_port_range=\"1024 65535\"",
    )
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;

    fn failing(why: &'static str, each_second: u64) -> Run {
        Run::quiet().loaded(move |load, second| {
            load.connect_failed.add(why, each_second * second.saturating_sub(3));
        })
    }

    #[test]
    fn ports_that_are_all_in_use_are_reported_with_their_number() {
        let found = failing("EADDRNOTAVAIL", 50)
            .with(Metric::SYSCTL_NET_IPV4_LOCAL_PORTS, 300)
            .speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "No source port was left for 350 connects of the generator: each of its addresses has \
             300 for one target"
        );
        assert!(found.remedy.contains("ip_local_port_range"), "{found}");
        assert!(found.text.contains("or a socket of another program"), "{found}");
    }

    #[test]
    fn ports_in_time_wait_have_another_remedy() {
        let run = failing("EADDRNOTAVAIL", 50).growing(Metric::SOCKSTAT_TCP_TW, 0, 2_000, 2);
        assert!(run.speaks(&RULE).remedy.contains("tcp_tw_reuse"));
    }

    #[test]
    fn without_any_connection_the_address_is_wrong_or_its_ports_are_taken() {
        let run = failing("EADDRNOTAVAIL", 50).loaded(|load, _| load.counters.connects_ok = 0);
        let found = run.speaks(&RULE);
        for cause in ["does not belong to this machine", "other sockets have all of its ports"] {
            assert!(found.first_sentence().contains(cause), "{found}");
        }
        assert!(found.remedy.contains("ss -tan"), "{found}");
    }

    #[test]
    fn other_failures_and_ports_that_others_hold_are_not_this() {
        failing("ECONNREFUSED", 50).is_silent(&RULE);
        let held = failing("EADDRINUSE", 50)
            .loaded(|load, second| load.connect_failed.add("EADDRNOTAVAIL", u64::from(second > 5)));
        held.is_silent(&RULE);
    }
}
