//! The server requested a longer accept queue than the kernel allows.

use throng_measure::{Endpoint, Finding, Limit, Metric, Severity, Side};
use throng_report::render::count;

use super::{Rule, RuleTrait, accept_queue_overflow};
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("backlog_clamped", find)
    .with(&[RuleTrait::WithoutLoad])
    .explains(&["accept_queue_overflow", "syn_queue_overflow", "half_open", "retransmits"]);

/// A throng server reports the backlog that it requested. For another server it is unknown; a
/// backlog that equals the limit makes it likely.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let limit = run.facts(Endpoint::Server).somaxconn?;
    let backlog = run.facts(Endpoint::Server).backlog.filter(|backlog| *backlog == limit)?;
    let requested = run.facts(Endpoint::Server).backlog_asked;
    if requested.is_some_and(|requested| requested <= limit) {
        return None;
    }
    let overflows = accept_queue_overflow::overflows(run);
    let used = run.peak(Endpoint::Server, Metric::LISTENER_ACCEPT_QUEUE_MOST).filter(|peak| {
        // A guess needs an overflow: a queue that was long is not enough.
        requested.is_some() && peak.value * 2 >= backlog
    });
    let severity = match (&overflows, &used) {
        (Some(_), _) => {
            accept_queue_overflow::symptom(run).map_or(Severity::Noted, |symptom| symptom.severity)
        }
        (None, Some(_)) => Severity::Noted,
        (None, None) => return None,
    };
    let is = count(limit as f64);
    let text = match requested {
        Some(requested) => format!(
            "The server requested a backlog of {} and got {is}: net.core.somaxconn is the limit.",
            count(requested as f64)
        ),
        None => format!(
            "The server's backlog is {is}, the limit in net.core.somaxconn: the server may have \
             requested more."
        ),
    };
    let did = match overflows {
        Some(_) => " Its accept queue overflowed, and the kernel dropped handshakes.",
        None => " Its accept queue was more than half full.",
    };
    let raise = Limit::SOMAXCONN.raise(requested.unwrap_or(WANTED));
    let same = if requested.is_some() { "" } else { " with the same backlog" };
    let finding = Finding::new(RULE.id, Side::Server, text + did)
        .with_severity(severity)
        .with_confidence(if requested.is_some() { 1.0 } else { GUESSED })
        .with_evidence(overflows)
        .with_evidence(used)
        .remedied_by(format!("{raise}, then restart the server{same}"));
    Some(finding)
}

/// The confidence that a server whose backlog equals the limit requested more.
const GUESSED: f64 = 0.6;

/// The longest backlog that servers usually request.
const WANTED: i64 = 65_535;

#[cfg(test)]
mod tests {
    use throng_measure::ServerSnapshot;

    use super::super::fixture::Run;
    use super::*;

    fn limited(somaxconn: i64, backlog: i64) -> Run {
        Run::quiet()
            .with(Metric::SYSCTL_NET_CORE_SOMAXCONN, somaxconn)
            .with(Metric::LISTENER_BACKLOG, backlog)
            .growing(Metric::TCPEXT_LISTEN_OVERFLOWS, 0, 40, 2)
            .growing(Metric::LISTENER_DROPS, 0, 40, 2)
    }

    fn asking(run: Run, backlog: u64) -> Run {
        run.changed(move |interval, _| {
            let mut server = ServerSnapshot { backlog, ..ServerSnapshot::default() };
            server.counters.open = interval.load.as_ref().unwrap().counters.connected;
            interval.server = Some(server);
        })
    }

    #[test]
    fn a_throng_server_that_asked_for_more_is_certain() {
        let found = asking(limited(128, 128), 4_096).speaks(&RULE);
        assert_eq!(found.confidence, 1.0);
        assert_eq!(
            found.first_sentence(),
            "The server requested a backlog of 4.1k and got 128: net.core.somaxconn is the limit"
        );
        assert!(found.remedy.contains("somaxconn=4096"), "{found}");
        asking(limited(128, 128), 4_096).check_all(&["backlog_clamped", "accept_queue_overflow"]);
    }

    #[test]
    fn another_server_may_have_asked_for_more() {
        assert_eq!(limited(128, 128).speaks(&RULE).confidence, GUESSED);
    }

    #[test]
    fn a_queue_as_long_as_was_asked_for_is_not_clamped() {
        asking(limited(4_096, 128), 128).is_silent(&RULE);
        asking(limited(128, 128), 128).is_silent(&RULE);
        limited(4_096, 128).is_silent(&RULE);
    }

    #[test]
    fn a_short_queue_that_was_hardly_used_is_no_finding() {
        let quiet = |most| {
            let run = Run::quiet()
                .with(Metric::SYSCTL_NET_CORE_SOMAXCONN, 128)
                .with(Metric::LISTENER_BACKLOG, 128)
                .with(Metric::LISTENER_ACCEPT_QUEUE_MOST, most);
            asking(run, 4_096)
        };
        quiet(20).is_silent(&RULE);
        // Another program's queue overflowed.
        quiet(20).growing(Metric::TCPEXT_LISTEN_OVERFLOWS, 0, 40, 2).is_silent(&RULE);
        assert_eq!(quiet(100).speaks(&RULE).severity, Severity::Noted);
    }
}
