//! The kernel reset connections that were closed and still had data to send.

use throng_measure::{Endpoint, Limit, Metric, Severity};

use super::Rule;
use super::kernel_row::KernelRow;
use crate::run_view::RunView;

/// A closed connection with undelivered data is an orphan: no process owns it. Above a number of
/// orphans, or without memory, the kernel resets them, and their data is lost. The program that
/// closed the connection gets no error. Without orphans the cause is memory, which is another
/// finding.
pub(super) const RULE: Rule = Rule::row(
    "orphans_aborted",
    &KernelRow {
        counters: &[Metric::TCPEXT_TCP_ABORT_ON_MEMORY],
        at_least: 10,
        of_closed: true,
        is_other: |run, kernel| {
            run.growth(kernel.endpoint, Metric::TCPEXT_TCP_MEMORY_PRESSURES).is_some()
                || is_pressed(run, kernel.endpoint)
        },
        limit: |facts| facts.tcp_max_orphans,
        gauge: Some(Metric::SOCKSTAT_TCP_ORPHAN),
        also: Some(Metric::TCP_ESTAB_RESETS),
        // No program sees the loss.
        symptom: |_| None,
        without_symptom: Some((Severity::Stopped, 0.8)),
        text: "The kernel of {whose} reset {drops} of {closed} closed connections before their \
               data was delivered: too many orphaned sockets (net.ipv4.tcp_max_orphans{limit}). No \
               program owns such a connection any more, so no program sees the loss.",
        remedy: "{raise}, or wait for the last answer before `close` in the scenario",
        raises: Some(Limit::ORPHANS),
        // The kernel's default on a machine with 16 GB.
        wanted_min: 65_536,
        ..KernelRow::ANY
    },
)
.explains(&["server_closes_early", "retransmits"]);

/// Reports whether sockets hold so much memory that the kernel reclaims some.
fn is_pressed(run: &RunView<'_>, end: Endpoint) -> bool {
    let pages = run.peak(end, Metric::SOCKSTAT_TCP_MEM_PAGES);
    let from = run.facts(end).tcp_mem_pressure_pages;
    pages.zip(from).is_some_and(|(pages, from)| pages.value >= from)
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
    fn orphans_that_the_kernel_reset_are_reported_with_their_number() {
        let run = churn()
            .growing(Metric::TCPEXT_TCP_ABORT_ON_MEMORY, 0, 90, 2)
            .growing(Metric::TCP_ESTAB_RESETS, 3, 90, 2)
            .with(Metric::SYSCTL_NET_IPV4_TCP_MAX_ORPHANS, 50)
            .with(Metric::SOCKSTAT_TCP_ORPHAN, 50);
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The kernel of this machine reset 720 of 1k closed connections before their data was \
             delivered: too many orphaned sockets (net.ipv4.tcp_max_orphans 50)"
        );
        assert_eq!((found.severity, found.began_ms()), (Severity::Stopped, Some(0)));
        run.check_all(&["orphans_aborted"]);
    }

    #[test]
    fn what_ran_out_of_memory_and_what_others_closed_are_none() {
        let aborting = |run: Run| run.growing(Metric::TCPEXT_TCP_ABORT_ON_MEMORY, 0, 90, 2);
        aborting(churn()).growing(Metric::TCPEXT_TCP_MEMORY_PRESSURES, 0, 1, 3).is_silent(&RULE);
        aborting(Run::quiet()).is_silent(&RULE);
        churn().growing(Metric::TCPEXT_TCP_ABORT_ON_MEMORY, 0, 1, 2).is_silent(&RULE);
        churn().is_silent(&RULE);
    }
}
