//! A control group's CPU quota kept a program from CPUs that were free.

use throng_measure::{Endpoint, Finding, ProcessMetric, Side};

use super::{Rule, RuleTrait};
use crate::cpus::whole_percent;
use crate::impact::impact_of_waiting;
use crate::run_view::{Growth, RunView};

pub(super) const RULE: Rule =
    Rule::new("cgroup_throttled", find).with(&[RuleTrait::TakesCpu, RuleTrait::OnlyDelays]);

/// The kernel sums the time for which runnable threads had to wait for the quota.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let impact = impact_of_waiting(run)?;
    let server = throttled(run, Endpoint::Server);
    let client = throttled(run, Endpoint::Client);
    let (whose, side, growth) = match (server, client) {
        // Equal numbers mean one group that holds both programs.
        (Some(server), Some(client)) if server.by() == client.by() => {
            ("generator and server", Side::Server, server)
        }
        (Some(server), Some(client)) if client.by() > server.by() => {
            ("the generator", Side::Client, client)
        }
        (Some(server), _) => ("the server", Side::Server, server),
        (None, Some(client)) => ("the generator", Side::Client, client),
        (None, None) => return None,
    };
    if growth.began_ms > impact.last_ms {
        return None;
    }
    let end = if side == Side::Server { Endpoint::Server } else { Endpoint::Client };
    let limit = run.facts(end).cpu_limit_millicpus;
    let quota =
        limit.map_or_else(String::new, |limit| format!(" of {:.2} CPUs", limit as f64 / 1000.0));
    let held_up = share_of_time(run, &growth);
    let text = format!(
        "The control group of {whose} reached its CPU quota{quota}, so its threads waited {:.1} s. \
         That is {} of the time, summed over its threads and CPUs, and {}.",
        growth.by() as f64 / 1e6,
        whole_percent(held_up),
        impact.what
    );
    let finding = Finding::new(RULE.id, side, text).with_severity(impact.severity)
        .with_evidence([growth])
        .with_evidence([impact.evidence])
        .remedied_by(
        "raise the quota (cpu.max, or cpu.cfs_quota_us; a container's --cpus), or lower the load",
    );
    Some(finding)
}

/// Returns the time that a program waited for its quota, if it was long enough to matter.
fn throttled(run: &RunView<'_>, end: Endpoint) -> Option<Growth> {
    let growth = run.growth(end, ProcessMetric::THROTTLED_US.of(end))?;
    (share_of_time(run, &growth) >= SHARE_MIN).then_some(growth)
}

/// Returns a growth in microseconds as a share of the run's time.
fn share_of_time(run: &RunView<'_>, growth: &Growth) -> f64 {
    let of =
        |sample: Option<&crate::history::Sample>| sample.map_or(0, |sample| sample.interval.at_ms);
    let span_ms = of(run.samples().last()) - of(run.samples().first());
    growth.by() as f64 / 1000.0 / span_ms.max(1) as f64
}

/// The smallest share of time that matters. A short burst reaches any quota now and then and waits
/// for the rest of a tenth of a second. Below one part in twenty of the time that explains nothing.
const SHARE_MIN: f64 = 0.05;

#[cfg(test)]
mod tests {
    use throng_measure::{Operation, Severity};

    use super::super::fixture::Run;
    use super::*;

    fn slow() -> Run {
        Run::quiet().loaded(|load, second| {
            if second > 4 {
                load.times[Operation::Message].record_n(300_000, 500);
            }
        })
    }

    #[test]
    fn a_quota_that_keeps_the_server_waiting_is_told_with_its_size() {
        let run = slow()
            .growing(ProcessMetric::THROTTLED_US.server, 5_000, 400_000, 2)
            .with(ProcessMetric::CPU_LIMIT_MILLICPUS.server, 500)
            .with(ProcessMetric::THROTTLED_US.client, 0);
        let found = run.speaks(&RULE);
        assert_eq!((found.side, found.severity), (Side::Server, Severity::Slowed));
        assert_eq!(
            found.first_sentence(),
            "The control group of the server reached its CPU quota of 0.50 CPUs, so its threads \
             waited 3.2 s"
        );
    }

    #[test]
    fn one_group_may_hold_both_ends_or_only_the_generator() {
        let both = slow().growing(ProcessMetric::THROTTLED_US.server, 0, 400_000, 2).growing(
            ProcessMetric::THROTTLED_US.client,
            0,
            400_000,
            2,
        );
        assert!(both.speaks(&RULE).text.contains("of generator and server"));
        let client = slow().growing(ProcessMetric::THROTTLED_US.client, 0, 400_000, 2);
        assert_eq!(client.speaks(&RULE).side, Side::Client);
    }

    #[test]
    fn refused_connects_are_no_work_of_a_quota() {
        let refused = Run::quiet().loaded(|load, second| {
            load.connect_failed.0.insert("ECONNREFUSED".into(), 100 * second);
        });
        refused.growing(ProcessMetric::THROTTLED_US.client, 0, 400_000, 2).is_silent(&RULE);
    }

    #[test]
    fn a_burst_that_waited_for_a_moment_and_a_run_that_felt_nothing_are_none() {
        slow().growing(ProcessMetric::THROTTLED_US.server, 0, 20_000, 5).is_silent(&RULE);
        Run::quiet().growing(ProcessMetric::THROTTLED_US.server, 0, 400_000, 2).is_silent(&RULE);
        slow().with(ProcessMetric::THROTTLED_US.server, 77_000_000).is_silent(&RULE);
    }
}
