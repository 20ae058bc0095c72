//! The generator binds source ports by number, and other sockets have them.

use throng_measure::{Endpoint, Finding, Side};
use throng_report::render::count;

use super::Rule;
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("port_conflict", find);

/// Looks for `EADDRINUSE` from a connect. A user tries several ports after the first one, so a
/// failure means that several in a row are taken.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let taken = run.connect_failures("EADDRINUSE")?;
    let short = run.connect_failures("EADDRNOTAVAIL").map_or(0, |growth| growth.by());
    if short >= taken.by() {
        return None;
    }
    let attempts = run.load_growth("load.connects_started", |load| load.connects_started)?;
    let finding = Finding::new(
        RULE.id,
        Side::Client,
        format!(
            "{} of {} connects found their source port taken (EADDRINUSE): a listener or a \
             connection of another program has it. {}",
            count(taken.by() as f64),
            count(attempts.by() as f64),
            listener(run)
        ),
    )
    .with_evidence([taken])
    .remedied_by(
        "choose a range for --source-ports without listeners (ss -tlnH), or leave it out, so that \
         the kernel chooses; keep the kernel from giving out ports of listeners with sysctl -w \
         net.ipv4.ip_local_reserved_ports=PORT",
    );
    Some(finding)
}

/// Returns a sentence that says whether the target's own port may be the taken one.
fn listener(run: &RunView<'_>) -> String {
    let port = run.header.target.rsplit(':').next().and_then(|rest| {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse::<u16>().ok()
    });
    let facts = run.facts(Endpoint::Client);
    match (port, facts.local_port_first, facts.local_port_last) {
        (Some(port), Some(first), Some(last)) if facts.may_choose(port) == Some(true) => format!(
            "The target's port {port} is itself in the range that the kernel gives to connections \
             ({first}-{last})."
        ),
        _ => "Each connect had tried several ports.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use throng_measure::Metric;

    use super::super::fixture::Run;
    use super::*;

    fn failing(why: &'static str) -> Run {
        Run::quiet()
            .loaded(move |load, second| load.connect_failed.add(why, 20 * second.saturating_sub(5)))
    }

    #[test]
    fn ports_that_are_taken_are_reported() {
        let found = failing("EADDRINUSE").speaks(&RULE);
        assert!(found.first_sentence().starts_with("100 of 1k connects found"), "{found}");
    }

    #[test]
    fn a_target_inside_the_ephemeral_range_is_mentioned() {
        let mut run = failing("EADDRINUSE")
            .with(Metric::SYSCTL_NET_IPV4_LOCAL_PORT_FIRST, 1_024)
            .with(Metric::SYSCTL_NET_IPV4_LOCAL_PORT_LAST, 65_535);
        run.header.target = "ws://127.0.0.1:5555/socket".into();
        assert!(run.speaks(&RULE).text.contains("port 5555 is itself"));
        run.header.target = "tcp://127.0.0.1:80".into();
        assert!(!run.speaks(&RULE).text.contains("itself"));
    }

    #[test]
    fn ports_that_ran_out_are_no_conflict() {
        failing("EADDRNOTAVAIL").is_silent(&RULE);
        failing("EADDRINUSE")
            .loaded(|load, second| load.connect_failed.add("EADDRNOTAVAIL", 100 * second))
            .is_silent(&RULE);
    }
}
