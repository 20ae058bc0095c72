//! A proxy in front of the server was at the end of its only thread.

use throng_measure::{Endpoint, Finding, Metric, Severity, Side};

use super::{Rule, RuleTrait, hot_core};
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("proxy_saturated", find)
    .with(&[RuleTrait::LacksCpu])
    .explains(&["hot_core", "server_cpu_saturated", "server_slow", "accept_queue_overflow"]);

/// The busy thread is that of the program that listens. If this program opens one more connection
/// for each of a user, the server behind it is not what is busy.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let hot = hot_core::RULE.find(run).filter(|hot| hot.severity > Severity::Noted)?;
    if !passes_on(run) || hot_core::has_cause(run) {
        return None;
    }
    let program = run.server_program().map_or_else(String::new, |program| format!(", {program},"));
    let busy = hot.first_sentence().split(':').next().unwrap_or_default();
    let busy = busy.replacen("One thread of the server", "one of its threads", 1);
    let text = format!(
        "A proxy is at its end: what listens there{program} passes each connection on, and {busy}. \
         The machine has two connections for each of a user. {}",
        hot.text.split_once(". ").map_or("", |(_, rest)| rest)
    );
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_severity(hot.severity)
        .with_confidence(0.9)
        .with_evidence(run.peak(Endpoint::Server, Metric::TCP_CURR_ESTAB))
        .with_evidence(hot.evidence)
        .remedied_by(
            "give the proxy more workers or threads (worker_processes, nbthread), or take work \
             from it (TLS, compression, logs); test the server behind it by itself (--target)",
        );
    Some(finding)
}

/// Reports whether the server's machine has one more connection for each of a user: the program
/// that listens opens one to another program there.
pub(super) fn passes_on(run: &RunView<'_>) -> bool {
    let open = |sample| run.value(Endpoint::Server, sample, Metric::TCP_CURR_ESTAB);
    let Some(first) = run.samples().first() else { return false };
    let of = |sample: &crate::history::Sample| {
        sample.load().map_or(0, |load| load.counters.connected as i64)
    };
    let Some(before) = open(first) else { return false };
    // Both ends of each connection count where generator and server share a kernel.
    let ends = if run.shares_kernel() { 2 } else { 1 };
    let looks = run.samples().iter().filter(|sample| of(sample) >= CONNECTIONS_MIN);
    let (mut all, mut double) = (0, 0);
    for sample in looks {
        let Some(open) = open(sample) else { continue };
        let each = (open - before) as f64 / ends as f64 / (of(sample) - of(first)).max(1) as f64;
        all += 1;
        double += usize::from((DOUBLE_MIN..=DOUBLE_MOST).contains(&each));
    }
    all >= LOOKS_MIN && double * 4 >= all * 3
}

/// The fewest connections of users that say something.
const CONNECTIONS_MIN: i64 = 10;

/// The connections of the machine for each of a user, if one more is opened for each.
const DOUBLE_MIN: f64 = 1.8;
const DOUBLE_MOST: f64 = 2.2;

/// The fewest intervals that say something.
const LOOKS_MIN: usize = 3;

#[cfg(test)]
mod tests {
    use throng_measure::{Operation, ProcessMetric};

    use super::super::fixture::Run;
    use super::*;

    /// A run with a hot thread, where the machine has so many ends of connections for each user.
    fn proxied(ends: u64) -> Run {
        Run::quiet()
            .growing(ProcessMetric::CPU_US.server, 0, 980_000, 0)
            .with(ProcessMetric::BUSIEST_THREAD_PERMILLE.server, 950)
            .with(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.server, 10)
            .with(ProcessMetric::THREADS.server, 1)
            .loaded(|load, _| load.times[Operation::Message].record_n(400_000, 500))
            .changed(move |interval, second| {
                let machine = interval.machine.as_mut().unwrap();
                (machine.cpu_busy_us, machine.cpu_idle_us) = (1_400_000 * second, 600_000 * second);
                let open = ends * 200 * second.min(5) + 3;
                interval.kernel.set(Metric::TCP_CURR_ESTAB, open as i64);
            })
    }

    #[test]
    fn a_busy_thread_of_a_program_that_passes_connections_on_is_a_proxys() {
        let found = proxied(4).speaks(&RULE);
        assert!(
            found.text.starts_with(
                "A proxy is at its end: what listens there passes each connection on, and one of \
                 its threads was busy for 95 % of the time"
            ),
            "{found}"
        );
        proxied(4).check_all(&["proxy_saturated", "hot_core"]);
    }

    #[test]
    fn a_server_by_itself_and_a_proxy_that_was_in_time_are_none() {
        proxied(2).is_silent(&RULE);
        proxied(4).loaded(|load, _| load.times[Operation::Message].clear()).is_silent(&RULE);
        // More workers would not help one that has idle ones.
        let with_idle = proxied(4).with(ProcessMetric::WORKERS.server, 4);
        with_idle.with(ProcessMetric::WORKERS_IDLE.server, 3).is_silent(&RULE);
    }
}
