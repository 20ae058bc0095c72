//! The server had no CPU time left.

use throng_measure::{Endpoint, Finding, ProcessMetric, Severity, Side};

use super::cpu_cause::CpuCause;
use super::{Rule, RuleTrait};
use crate::cpus::{CpuUse, FULL_SHARE, ProcessCpus, lasting, mean, shares, whole_percent};
use crate::impact::impact_of_server;
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("server_cpu_saturated", find)
    .with(&[RuleTrait::LacksCpu])
    .explains(&["server_slow", "slow_consumers"]);

/// Either the server keeps all CPUs that it may use busy, or its machine is full and the server
/// waits for its share. A run that fills the machine by itself and shows no symptom gets the
/// finding as its next bottleneck.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let uses = CpuUse::of(run, Endpoint::Server);
    let intervals = uses.len();
    let full = lasting(uses, |used| is_held(used) || is_full(run, used))?;
    let used = mean(&full)?;
    let impact = impact_of_server(run).filter(|impact| used.at_ms <= impact.last_ms);
    let own =
        [used.server, used.client].into_iter().flatten().map(|process| process.taken).sum::<f64>();
    let fills_it =
        full.len() * 2 > intervals && (is_held(&used) || own > used.cpus * OWN_SHARE_MIN);
    if impact.is_none() && !fills_it {
        return None;
    }
    let what = match used.server.filter(|_| is_held(&used)) {
        Some(server) => format!(
            "The server may use {:.0} of {:.0} CPUs and kept them busy for {} of the time",
            server.allowed,
            used.cpus,
            whole_percent(server.taken / server.allowed)
        ),
        None => format!(
            "The server's machine had no CPU time left: {} of its {:.0} CPUs were busy",
            whole_percent(used.taken_share()),
            used.cpus
        ),
    };
    let symptom =
        impact.as_ref().map_or_else(String::new, |impact| format!(" Meanwhile {}.", impact.what));
    let cause = CpuCause::of(run, &full);
    let begin = cause.as_ref().map_or_else(String::new, |cause| format!("{}. ", cause.sentence));
    let text = format!("{begin}{what}. CPU use: {}.{symptom}", shares(run, &used));
    let busy = run.growth_of("machine.cpu_busy_us", |sample| {
        Some(run.machine(Endpoint::Server, sample)?.cpu_busy_us as i64)
    });
    let taken = run.growth(Endpoint::Server, ProcessMetric::CPU_US.server);
    let growths = [busy, taken].into_iter().flatten();
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_severity(impact.as_ref().map_or(Severity::Noted, |impact| impact.severity))
        .with_confidence(if used.server.is_some() { 0.85 } else { 0.6 })
        .with_evidence(growths.map(|growth| growth.evidence_from(used.at_ms)))
        .with_evidence(impact)
        .with_evidence(cause.iter().flat_map(|cause| cause.evidence.clone()))
        .remedied_by(cause.map_or_else(|| remedy(run, &used).to_owned(), |cause| cause.remedy));
    Some(finding)
}

/// Reports whether the server keeps all CPUs busy that it may use, which are not all of the
/// machine's.
fn is_held(used: &CpuUse) -> bool {
    used.server.is_some_and(|server| {
        server.allowed < used.cpus && server.taken > server.allowed * FULL_SHARE
    })
}

/// Reports whether a full machine stops the server. A server that hardly runs, or that gets a CPU
/// whenever it needs one, is not stopped by it. If the server's process cannot be read, a full
/// machine of its own is full of the server; one that it shares may be full of any program.
fn is_full(run: &RunView<'_>, used: &CpuUse) -> bool {
    if used.taken_share() < FULL_SHARE {
        return false;
    }
    match used.server {
        Some(ProcessCpus { taken, most_delayed, .. }) => {
            taken > used.busy * SERVER_PART_MIN
                && most_delayed.is_none_or(|delayed| delayed > DELAYED_MIN)
        }
        None => !run.header.target_is_here,
    }
}

/// Returns the remedy for the program that uses the CPUs.
fn remedy(run: &RunView<'_>, used: &CpuUse) -> &'static str {
    let generator = used.client.map_or(0.0, |client| client.taken);
    if is_held(used) {
        "let it use more CPUs (taskset, cpuset), or reduce its work for each message"
    } else if run.header.target_is_here && generator > used.busy * 0.3 {
        "move the generator to a machine of its own; then give the server more CPUs, or less work"
    } else {
        "give the server more CPUs, or reduce its work for each connection and message"
    }
}

/// The share of all CPUs that generator and server use when they fill the machine themselves; the
/// rest is the kernel's work for them.
const OWN_SHARE_MIN: f64 = 0.80;

/// The smallest part of the busy CPUs that the server uses if the full machine stops the server.
const SERVER_PART_MIN: f64 = 0.25;

/// The smallest share of time for which a thread of the server waits for a CPU when none is left.
const DELAYED_MIN: f64 = 0.10;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;
    use throng_measure::Operation;

    /// A run with slow answers on two full CPUs, where the server uses `server_us` of each second.
    fn full(server_us: i64) -> Run {
        Run::quiet()
            .growing(ProcessMetric::CPU_US.server, 0, server_us, 0)
            .with(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.server, 300)
            .loaded(|load, second| {
                load.times[Operation::Message].record_n(400_000, 500);
                load.process.cpu_user_us = (1_900_000 - server_us as u64) * second;
            })
            .changed(|interval, second| {
                let machine = interval.machine.as_mut().unwrap();
                (machine.cpu_busy_us, machine.cpu_idle_us) = (1_960_000 * second, 40_000 * second);
            })
    }

    #[test]
    fn a_full_machine_is_reported_with_its_cpu_use() {
        let found = full(1_000_000).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server's machine had no CPU time left: 98 % of its 2 CPUs were busy"
        );
        assert!(found.text.contains("the server 50 %, the generator 45 %, others 3 %"), "{found}");
        assert!(found.remedy.starts_with("move the generator"), "{found}");
    }

    #[test]
    fn a_server_that_is_held_to_one_cpu_is_full_when_that_one_is() {
        let run = full(990_000).with(ProcessMetric::CPUS_ALLOWED.server, 1).changed(
            |interval, second| {
                let machine = interval.machine.as_mut().unwrap();
                (machine.cpu_busy_us, machine.cpu_idle_us) = (1_300_000 * second, 700_000 * second);
            },
        );
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server may use 1 of 2 CPUs and kept them busy for 99 % of the time"
        );
    }

    #[test]
    fn a_collector_that_takes_the_cpus_needs_memory() {
        let run = full(1_600_000).with(ProcessMetric::COLLECTOR_PERMILLE.server, 1_500);
        let found = run.speaks(&RULE);
        assert!(found.text.starts_with("The server's garbage collector used 1.50 CPUs"), "{found}");
        assert!(found.text.contains("no CPU time left"), "{found}");
        assert!(found.remedy.contains("larger heap"), "{found}");
    }

    #[test]
    fn a_server_that_hardly_runs_or_never_waits_is_not_what_is_full() {
        full(200_000).is_silent(&RULE);
        full(1_000_000)
            .with(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.server, 20)
            .is_silent(&RULE);
    }

    #[test]
    fn a_server_that_cannot_be_seen_is_blamed_on_a_machine_of_its_own_alone() {
        let mut unseen = full(1_000_000).changed(|interval, _| {
            interval.kernel.remove(ProcessMetric::CPU_US.server);
            interval.server_machine = interval.machine.clone();
        });
        unseen.is_silent(&RULE);
        unseen.header.target_is_here = false;
        unseen.speaks(&RULE);
    }

    #[test]
    fn a_full_machine_on_which_all_went_well_is_what_comes_next() {
        let well = full(1_000_000).loaded(|load, _| load.times[Operation::Message].clear());
        assert_eq!(well.speaks(&RULE).severity, Severity::Noted);
        // Unless other programs filled it.
        well.loaded(|load, second| load.process.cpu_user_us = 100_000 * second).is_silent(&RULE);
    }
}
