//! More closed connections than the TIME-WAIT table holds.

use throng_measure::{Limit, Metric, Severity};

use super::kernel_row::KernelRow;
use super::retransmission::{Symptom, by_anything};
use super::{FindingClass, Rule};
use crate::kernels::Kernel;
use crate::run_view::RunView;

/// Beyond the limit the kernel forgets a closed connection at once. That matters only if a late
/// segment of it meets the next connection with the same ports, so the run's plan may well be met.
pub(super) const RULE: Rule = Rule::row(
    "time_wait_exhausted",
    &KernelRow {
        counters: &[Metric::TCPEXT_TCP_TIME_WAIT_OVERFLOW],
        at_least: 10,
        of_closed: true,
        limit: |facts| facts.tcp_max_tw_buckets,
        gauge: Some(Metric::SOCKSTAT_TCP_TW),
        symptom,
        text: "The TIME-WAIT table of {whose}{room} was full: {drops} closed connections were \
               forgotten at once. A late segment of one may reset the next connection with the \
               same ports.",
        more: |run, kernel| {
            let already = " It was already full when the run began.";
            if was_full(run, kernel) { already.to_owned() } else { String::new() }
        },
        remedy: "{raise}, or `close: reset` in the scenario, which leaves no TIME-WAIT",
        raises: Some(Limit::TIME_WAIT),
        // Room for a minute of 4,000 closes a second.
        wanted_min: 262_144,
        ..KernelRow::ANY
    },
)
.of_class(FindingClass::Note);

/// Returns the only symptom: a connect that fails or a connection that is reset.
fn symptom(run: &RunView<'_>) -> Option<Symptom> {
    let symptom = by_anything(run).filter(|symptom| symptom.severity == Severity::Stopped)?;
    Some(Symptom { severity: Severity::Slowed, ..symptom })
}

fn was_full(run: &RunView<'_>, kernel: &Kernel) -> bool {
    let at_start = run.peak(kernel.endpoint, Metric::SOCKSTAT_TCP_TW).map(|peak| peak.from);
    let most = run.facts(kernel.endpoint).tcp_max_tw_buckets;
    most.zip(at_start).is_some_and(|(most, at_start)| at_start >= most)
}

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
