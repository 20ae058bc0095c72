//! The kernel reset connections that were closed and still had data to send.

use throng_report::render::count;
use throng_report::{Endpoint, Finding, Metric, Severity};

use super::Rule;
use crate::kernels::{Kernel, kernels};
use crate::run_view::RunView;

pub(super) const RULE: Rule =
    Rule::cause("orphans_aborted", find).explains(&["server_closes_early", "retransmits"]);

/// A closed connection with undelivered data is an orphan: no process owns it. Above a number of
/// orphans, or without memory, the kernel resets them, and their data is lost. The program that
/// closed the connection gets no error.
fn find(run: &RunView<'_>) -> Option<Finding> {
    kernels(run).iter().find_map(|kernel| of_kernel(run, kernel))
}

/// Looks for resets of orphans in one kernel.
fn of_kernel(run: &RunView<'_>, kernel: &Kernel) -> Option<Finding> {
    let aborted = run.growth(kernel.endpoint, Metric::TCPEXT_TCP_ABORT_ON_MEMORY)?;
    let orphans = run.peak(kernel.endpoint, Metric::SOCKSTAT_TCP_ORPHAN);
    // Without orphans the cause is memory, which is another finding.
    let is_memory = run.growth(kernel.endpoint, Metric::TCPEXT_TCP_MEMORY_PRESSURES).is_some()
        || is_pressed(run, kernel.endpoint);
    let last = &run.samples().last()?.load()?.counters;
    let closed = last.connects_ok.saturating_sub(last.connected);
    if aborted.by() < ABORTED_MIN || is_memory || aborted.by() > closed.saturating_mul(SOCKETS_EACH)
    {
        return None;
    }
    let most = run.facts(kernel.endpoint).tcp_max_orphans;
    let limit = most.map_or_else(String::new, |most| format!(" {}", count(most as f64)));
    let text = format!(
        "The kernel of {} reset {} of {} closed connections before their data was delivered: too \
         many orphaned sockets (net.ipv4.tcp_max_orphans{limit}). No program owns such a \
         connection any more, so no program sees the loss.",
        kernel.whose,
        count(aborted.by() as f64),
        count(closed as f64),
    );
    let mut found = Finding::new(RULE.id, kernel.side, text)
        .with_severity(Severity::Stopped)
        .with_confidence(0.8);
    found.evidence.push(aborted.evidence());
    found.evidence.extend(
        run.growth(kernel.endpoint, Metric::TCP_ESTAB_RESETS).map(|growth| growth.evidence()),
    );
    found.evidence.extend(orphans.map(|peak| peak.evidence()));
    let wanted = most.unwrap_or(0).saturating_mul(4).max(WANTED);
    Some(found.remedied_by(format!(
        "sysctl -w net.ipv4.tcp_max_orphans={wanted}, or wait for the last answer before `close` \
         in the scenario"
    )))
}

/// Reports whether sockets hold so much memory that the kernel reclaims some.
fn is_pressed(run: &RunView<'_>, end: Endpoint) -> bool {
    let pages = run.peak(end, Metric::SOCKSTAT_TCP_MEM_PAGES);
    let from = run.facts(end).tcp_mem_pressure_pages;
    pages.zip(from).is_some_and(|(pages, from)| pages.value >= from)
}

/// Client and server of a connection may be in one kernel.
const SOCKETS_EACH: u64 = 2;

/// The fewest resets that count: fewer are the tail of something else.
const ABORTED_MIN: u64 = 10;

/// The kernel's default on a machine with 16 GB.
const WANTED: i64 = 65_536;

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
