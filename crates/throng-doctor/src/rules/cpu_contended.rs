//! Programs that have nothing to do with the run took CPUs that it needed.

use throng_report::{Evidence, Finding};

use super::Rule;
use crate::case::{Case, End};
use crate::cpus::{CpuUse, ProcessCpus, lasting, mean, shares, whole_percent};
use crate::harm::harm;
use crate::kernels::machines;

pub(super) const RULE: Rule = Rule {
    id: "cpu_contended",
    explains: &[
        "generator_saturated",
        "server_cpu_saturated",
        "hot_core",
        "server_slow",
        "slow_consumers",
        "accept_queue_overflow",
    ],
    find,
};

/// Others are heavy *and* threads of the run wait for a CPU: a neighbour that takes only what is idle (`nice`) harms nobody.
fn find(case: &Case<'_>) -> Option<Finding> {
    let harm = harm(case)?;
    let machines = machines(case);
    let (machine, used) =
        machines.iter().find_map(|machine| Some((machine, contended(case, machine.end)?)))?;
    if used.at_ms > harm.last_ms {
        return None;
    }
    let others = used.others(case).unwrap_or(0.0) / used.cpus;
    let text = format!(
        "Other programs on {} took {} of its {:.0} CPUs, and the run had to wait for them. Who had the CPUs: {}. Meanwhile {}.",
        machine.whose,
        whole_percent(others),
        used.cpus,
        shares(case, &used),
        harm.what
    );
    let mut found =
        Finding::new(RULE.id, machine.side, text).with_severity(harm.severity).with_confidence(0.9);
    found.evidence.extend(evidence(case, machine.end, used.at_ms));
    found.evidence.push(harm.evidence);
    Some(found.remedied_by(
        "stop what else runs there (see it with: top -o %CPU), or use a machine that does nothing else",
    ))
}

/// The mean over the intervals in which it was so.
fn contended(case: &Case<'_>, end: End) -> Option<CpuUse> {
    let is_so = |used: &CpuUse| {
        let strangers = used.strangers(case).unwrap_or(0.0);
        let waits = |process: Option<ProcessCpus>| {
            process.is_some_and(|process| process.most_delayed.unwrap_or(0.0) > DELAYED_MIN)
        };
        strangers > (used.cpus * STRANGERS_SHARE_MIN).max(STRANGERS_CPUS_MIN)
            && used.wanted() < used.cpus * WANTED_MOST
            && (waits(used.client) || waits(used.server))
    };
    mean(&lasting(CpuUse::of(case, end), is_so)?)
}

/// How long threads of the run waited, and how busy the machine was.
fn evidence(case: &Case<'_>, end: End, at_ms: u64) -> Vec<Evidence> {
    let delays = [(End::Client, "client"), (End::Server, "server")]
        .into_iter()
        .filter_map(|(end, label)| {
            case.peak(end, &format!("process.{label}.most_delayed_thread_permille"))
        })
        .map(|peak| peak.evidence());
    let busy = case.growth_of("machine.cpu_busy_us", |moment| {
        Some(case.machine(end, moment)?.cpu_busy_us as i64)
    });
    delays.chain(busy.map(|growth| growth.evidence_from(at_ms))).collect()
}

/// Two ends with a thread for each CPU want twice the CPUs at most, however long others keep them waiting. Whoever wants more than
/// that would fill the machine alone.
const WANTED_MOST: f64 = 2.5;

/// A thread that waits a fifth of the time for a CPU runs behind by that.
const DELAYED_MIN: f64 = 0.20;

/// What the rest of a machine does anyway: below this, it is not others who fill it.
const STRANGERS_SHARE_MIN: f64 = 0.10;
/// On a small machine.
const STRANGERS_CPUS_MIN: f64 = 0.25;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;

    /// A machine of two CPUs that is full: the server takes 0.2, the generator 0.05, and the generator is late.
    fn beside(delayed: i64) -> Run {
        Run::quiet()
            .growing("process.server.cpu_us", 0, 200_000, 0)
            .with("process.client.most_delayed_thread_permille", delayed)
            .loaded(|load, second| load.lag.record_n(30_000, if second > 5 { 900 } else { 0 }))
            .changed(|interval, second| {
                let machine = interval.machine.as_mut().unwrap();
                (machine.cpu_busy_us, machine.cpu_idle_us) = (1_980_000 * second, 20_000 * second);
            })
    }

    #[test]
    fn others_that_take_what_the_run_waits_for_are_the_cause() {
        let found = beside(600).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "Other programs on this machine took 86 % of its 2 CPUs, and the run had to wait for them"
        );
        beside(600).check_all(&["cpu_contended", "generator_saturated"]);
    }

    #[test]
    fn others_that_take_only_what_is_idle_are_not() {
        beside(30).is_silent(&RULE);
    }

    #[test]
    fn a_machine_that_the_run_fills_itself_is_not_contended() {
        beside(600).growing("process.server.cpu_us", 0, 1_800_000, 0).is_silent(&RULE);
    }

    #[test]
    fn threads_that_would_fill_the_machine_many_times_are_not_held_up_by_others() {
        let wanting = |us| beside(600).growing("process.server.run_delay_us", 0, us, 0);
        wanting(3_000_000).speaks(&RULE);
        wanting(40_000_000).is_silent(&RULE);
    }

    #[test]
    fn where_the_server_cannot_be_seen_it_might_be_the_server() {
        let unseen = beside(600).changed(|interval, _| {
            interval.kernel.remove("process.server.cpu_us");
        });
        unseen.is_silent(&RULE);
    }

    #[test]
    fn a_run_that_felt_nothing_has_nothing_to_complain_of() {
        beside(600).loaded(|load, _| load.lag.clear()).is_silent(&RULE);
    }

    #[test]
    fn the_kernels_own_work_on_packets_is_nobody_elses() {
        beside(600).growing("cpu.softirq_us", 0, 1_700_000, 0).is_silent(&RULE);
    }
}
