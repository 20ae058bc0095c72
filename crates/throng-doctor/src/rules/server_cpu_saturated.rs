//! The server had no CPU left.

use throng_report::{Finding, Severity, Side};

use super::Rule;
use crate::cpus::{CpuUse, FULL_SHARE, ProcessCpus, lasting, mean, shares, whole_percent};
use crate::impact::impact;
use crate::run_view::{Endpoint, RunView};

pub(super) const RULE: Rule =
    Rule { id: "server_cpu_saturated", explains: &["server_slow", "slow_consumers"], find };

/// Either all CPUs that it may use are its own and busy, or its machine is full and it waits for its share. A run that fills the
/// machine by itself, and feels nothing, is told what would come next.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let uses = CpuUse::of(run, Endpoint::Server);
    let intervals = uses.len();
    let full = lasting(uses, |used| is_held(used) || is_full(run, used))?;
    let used = mean(&full)?;
    let impact = impact(run).filter(|impact| used.at_ms <= impact.last_ms);
    let own =
        [used.server, used.client].into_iter().flatten().map(|process| process.taken).sum::<f64>();
    let fills_it =
        full.len() * 2 > intervals && (is_held(&used) || own > used.cpus * OWN_SHARE_MIN);
    if impact.is_none() && !fills_it {
        return None;
    }
    let what = match used.server.filter(|_| is_held(&used)) {
        Some(server) => format!(
            "The server may use {:.0} of {:.0} CPUs and kept them busy for {}",
            server.allowed,
            used.cpus,
            whole_percent(server.taken / server.allowed)
        ),
        None => format!(
            "The server's machine had no CPU left: {} of {:.0} were busy",
            whole_percent(used.taken_share()),
            used.cpus
        ),
    };
    let felt =
        impact.as_ref().map_or_else(String::new, |impact| format!(" Meanwhile {}.", impact.what));
    let text = format!("{what}. Who had the CPUs: {}.{felt}", shares(run, &used));
    let mut found = Finding::new(RULE.id, Side::Server, text)
        .with_severity(impact.as_ref().map_or(Severity::Noted, |impact| impact.severity))
        .with_confidence(if used.server.is_some() { 0.85 } else { 0.6 });
    let busy = run.growth_of("machine.cpu_busy_us", |moment| {
        Some(run.machine(Endpoint::Server, moment)?.cpu_busy_us as i64)
    });
    let taken = run.growth(Endpoint::Server, "process.server.cpu_us");
    let growths = [busy, taken].into_iter().flatten();
    found.evidence.extend(growths.map(|growth| growth.evidence_from(used.at_ms)));
    found.evidence.extend(impact.map(|impact| impact.evidence));
    Some(found.remedied_by(remedy(run, &used)))
}

fn is_held(used: &CpuUse) -> bool {
    used.server.is_some_and(|server| {
        server.allowed < used.cpus && server.taken > server.allowed * FULL_SHARE
    })
}

/// A server that hardly runs, or that gets a CPU whenever it wants one, is not what a full machine stops. Where it cannot be seen, a
/// machine of its own is full of it, and one that it shares is full of anybody.
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

fn remedy(run: &RunView<'_>, used: &CpuUse) -> &'static str {
    let generator = used.client.map_or(0.0, |client| client.taken);
    match () {
        () if is_held(used) => {
            "let it use more CPUs (taskset, cpuset), or make it do less for each message"
        }
        () if run.header.target_is_here && generator > used.busy * 0.3 => {
            "move the generator to a machine of its own; then give the server more CPUs, or less to do"
        }
        () => "give the server more CPUs, or less to do for each connection and message",
    }
}

/// The share of all CPUs that the two ends have when it is they who fill the machine, with the kernel's work for them beside it.
const OWN_SHARE_MIN: f64 = 0.80;

/// The least part of the busy CPUs that the server has when it is the server that is stopped.
const SERVER_PART_MIN: f64 = 0.25;

/// The share of the time that one of its threads waits for a CPU, at least, when there is none left.
const DELAYED_MIN: f64 = 0.10;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;

    /// Messages that take long, on two CPUs that are full; the server takes so much of each second.
    fn full(server_us: i64) -> Run {
        Run::quiet()
            .growing("process.server.cpu_us", 0, server_us, 0)
            .with("process.server.most_delayed_thread_permille", 300)
            .loaded(|load, second| {
                load.message.record_n(400_000, 500);
                load.process.cpu_user_us = (1_900_000 - server_us as u64) * second;
            })
            .changed(|interval, second| {
                let machine = interval.machine.as_mut().unwrap();
                (machine.cpu_busy_us, machine.cpu_idle_us) = (1_960_000 * second, 40_000 * second);
            })
    }

    #[test]
    fn a_machine_without_a_cpu_left_is_told_with_who_had_them() {
        let found = full(1_000_000).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server's machine had no CPU left: 98 % of 2 were busy"
        );
        assert!(found.text.contains("the server 50 %, the generator 45 %, others 3 %"), "{found}");
        assert!(found.remedy.starts_with("move the generator"), "{found}");
    }

    #[test]
    fn a_server_that_is_held_to_one_cpu_is_full_when_that_one_is() {
        let run =
            full(990_000).with("process.server.cpus_allowed", 1).changed(|interval, second| {
                let machine = interval.machine.as_mut().unwrap();
                (machine.cpu_busy_us, machine.cpu_idle_us) = (1_300_000 * second, 700_000 * second);
            });
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server may use 1 of 2 CPUs and kept them busy for 99 %"
        );
    }

    #[test]
    fn a_server_that_hardly_runs_or_never_waits_is_not_what_is_full() {
        full(200_000).is_silent(&RULE);
        full(1_000_000).with("process.server.most_delayed_thread_permille", 20).is_silent(&RULE);
    }

    #[test]
    fn a_server_that_cannot_be_seen_is_blamed_on_a_machine_of_its_own_alone() {
        let mut unseen = full(1_000_000).changed(|interval, _| {
            interval.kernel.remove("process.server.cpu_us");
            interval.server_machine = interval.machine.clone();
        });
        unseen.is_silent(&RULE);
        unseen.header.target_is_here = false;
        unseen.speaks(&RULE);
    }

    #[test]
    fn a_full_machine_on_which_all_went_well_is_what_comes_next() {
        let well = full(1_000_000).loaded(|load, _| load.message.clear());
        assert_eq!(well.speaks(&RULE).severity, Severity::Noted);
        // Unless it was others who filled it.
        well.loaded(|load, second| load.process.cpu_user_us = 100_000 * second).is_silent(&RULE);
    }
}
