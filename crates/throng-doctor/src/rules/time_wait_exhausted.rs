//! More closed connections than the TIME-WAIT table holds.

use throng_report::render::count;
use throng_report::{Finding, Metric, Severity};

use super::{Rule, retransmission};
use crate::kernels::{Kernel, kernels};
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::note("time_wait_exhausted", find);

fn find(run: &RunView<'_>) -> Option<Finding> {
    kernels(run).iter().find_map(|kernel| of_kernel(run, kernel))
}

/// Beyond the limit the kernel forgets a closed connection at once. That matters only if a late
/// segment of it meets the next connection with the same ports, so the run's plan may well be met.
fn of_kernel(run: &RunView<'_>, kernel: &Kernel) -> Option<Finding> {
    let forgotten = run.growth(kernel.endpoint, Metric::TCPEXT_TCP_TIME_WAIT_OVERFLOW)?;
    let last = &run.samples().last()?.load()?.counters;
    let closed = last.connects_ok.saturating_sub(last.connected);
    if forgotten.by() < FORGOTTEN_MIN || forgotten.by() > closed.saturating_mul(SOCKETS_EACH) {
        return None;
    }
    let most = run.facts(kernel.endpoint).tcp_max_tw_buckets;
    let at_start =
        run.samples().iter().find_map(|m| run.value(kernel.endpoint, m, Metric::SOCKSTAT_TCP_TW));
    let was_full = most.zip(at_start).is_some_and(|(most, at_start)| at_start >= most);
    let before = if was_full { " It was already full when the run began." } else { "" };
    let room = most.map_or(String::new(), |most| format!(", which holds {},", count(most as f64)));
    // Its only symptom is a connect that fails or a connection that is reset.
    let symptom =
        retransmission::by_anything(run).filter(|symptom| symptom.severity == Severity::Stopped);
    let severity = if symptom.is_some() { Severity::Slowed } else { Severity::Noted };
    let mut found = Finding::new(
        RULE.id,
        kernel.side,
        format!(
            "The TIME-WAIT table of {}{room} was full: {} closed connections were forgotten at \
             once. A late segment of one may reset the next connection with the same \
             ports.{before}",
            kernel.whose,
            count(forgotten.by() as f64)
        ),
    )
    .with_severity(severity);
    found.evidence.push(forgotten.evidence());
    found
        .evidence
        .extend(run.peak(kernel.endpoint, Metric::SOCKSTAT_TCP_TW).map(|peak| peak.evidence()));
    let wanted = most.unwrap_or(0).saturating_mul(4).max(WANTED);
    Some(found.remedied_by(format!(
        "sysctl -w net.ipv4.tcp_max_tw_buckets={wanted}, or `close: reset` in the scenario, which \
         leaves no TIME-WAIT"
    )))
}

/// Client and server of a connection may be in one kernel, and both are in TIME-WAIT if both close
/// at once.
const SOCKETS_EACH: u64 = 2;

/// The fewest that count: fewer are the tail of something else.
const FORGOTTEN_MIN: u64 = 10;

/// A limit with room for a minute of 4,000 closes a second.
const WANTED: i64 = 262_144;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;

    /// A run of a thousand connections that are all closed.
    fn churn() -> Run {
        Run::quiet().loaded(|load, _| load.counters.connected = 0)
    }

    #[test]
    fn a_full_table_is_noted_with_its_size() {
        let run = churn().with(Metric::SYSCTL_NET_IPV4_TCP_MAX_TW_BUCKETS, 50).growing(
            Metric::TCPEXT_TCP_TIME_WAIT_OVERFLOW,
            5,
            90,
            2,
        );
        let found = run.speaks(&RULE);
        assert_eq!(found.severity, Severity::Noted);
        assert_eq!(
            found.first_sentence(),
            "The TIME-WAIT table of this machine, which holds 50, was full: 720 closed connections \
             were forgotten at once"
        );
    }

    #[test]
    fn connections_that_other_programs_closed_are_not_the_runs() {
        Run::quiet().growing(Metric::TCPEXT_TCP_TIME_WAIT_OVERFLOW, 5, 90, 2).is_silent(&RULE);
        churn().growing(Metric::TCPEXT_TCP_TIME_WAIT_OVERFLOW, 5, 9_000, 2).is_silent(&RULE);
        churn().growing(Metric::TCPEXT_TCP_TIME_WAIT_OVERFLOW, 5, 1, 9).is_silent(&RULE);
    }

    #[test]
    fn a_table_that_was_full_before_is_reported_as_such() {
        let run = churn()
            .with(Metric::SYSCTL_NET_IPV4_TCP_MAX_TW_BUCKETS, 50)
            .with(Metric::SOCKSTAT_TCP_TW, 50);
        let found = run.growing(Metric::TCPEXT_TCP_TIME_WAIT_OVERFLOW, 5, 90, 2).speaks(&RULE);
        assert!(found.text.ends_with("It was already full when the run began."), "{found}");
        assert_eq!(found.severity, Severity::Noted);
    }

    #[test]
    fn many_sockets_in_time_wait_are_no_finding() {
        churn().growing(Metric::SOCKSTAT_TCP_TW, 0, 5_000, 0).is_silent(&RULE);
    }
}
