//! A control group's quota kept one of the programs from CPUs that were there.

use throng_report::{Finding, Side};

use super::{Rule, SLOW_FOR_WANT_OF_CPUS};
use crate::cpus::whole_percent;
use crate::impact::impact;
use crate::run_view::{Endpoint, Growth, RunView};

pub(super) const RULE: Rule =
    Rule { id: "cgroup_throttled", explains: SLOW_FOR_WANT_OF_CPUS, find };

/// The kernel adds up for how long threads that could have run were not allowed to.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let impact = impact(run)?;
    let server = throttled(run, Endpoint::Server, "process.server.throttled_us");
    let client = throttled(run, Endpoint::Client, "process.client.throttled_us");
    let (whose, side, growth) = match (server, client) {
        // The same numbers of both are those of one group that both are in.
        (Some(server), Some(client)) if server.by() == client.by() => {
            ("both ends", Side::Server, server)
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
    let label = if side == Side::Server { "server" } else { "client" };
    let limit = run.constant(end, &format!("process.{label}.cpu_limit_millicpus"));
    let quota =
        limit.map_or_else(String::new, |limit| format!(" of {:.2} CPUs", limit as f64 / 1000.0));
    let held_up = share_of_time(run, &growth);
    let text = format!(
        "The control group of {whose} was held to its CPU quota{quota}, which kept threads waiting {:.1} s. That is {} of the time, \
         summed over its threads and CPUs, and {}.",
        growth.by() as f64 / 1e6,
        whole_percent(held_up),
        impact.what
    );
    let mut found = Finding::new(RULE.id, side, text).with_severity(impact.severity);
    found.evidence.push(growth.evidence());
    found.evidence.push(impact.evidence);
    Some(found.remedied_by(
        "raise the quota (cpu.max, or cpu.cfs_quota_us; a container's --cpus), or ask for less",
    ))
}

/// How long the quota kept a program waiting, where that was enough to be felt.
fn throttled(run: &RunView<'_>, end: Endpoint, counter: &str) -> Option<Growth> {
    let growth = run.growth(end, counter)?;
    (share_of_time(run, &growth) >= SHARE_MIN).then_some(growth)
}

fn share_of_time(run: &RunView<'_>, growth: &Growth) -> f64 {
    let of =
        |moment: Option<&crate::history::Sample>| moment.map_or(0, |moment| moment.interval.at_ms);
    let span_ms = of(run.samples().last()) - of(run.samples().first());
    growth.by() as f64 / 1000.0 / span_ms.max(1) as f64
}

/// A short burst runs into any quota now and then and waits for the rest of a tenth of a second. Below one part in twenty of the
/// time that is no reason for anything.
const SHARE_MIN: f64 = 0.05;

#[cfg(test)]
mod tests {
    use throng_report::Severity;

    use super::super::fixture::Run;
    use super::*;

    fn slow() -> Run {
        Run::quiet().loaded(|load, second| {
            if second > 4 {
                load.message.record_n(300_000, 500);
            }
        })
    }

    #[test]
    fn a_quota_that_keeps_the_server_waiting_is_told_with_its_size() {
        let run = slow()
            .growing("process.server.throttled_us", 5_000, 400_000, 2)
            .with("process.server.cpu_limit_millicpus", 500)
            .with("process.client.throttled_us", 0);
        let found = run.speaks(&RULE);
        assert_eq!((found.side, found.severity), (Side::Server, Severity::Slowed));
        assert_eq!(
            found.first_sentence(),
            "The control group of the server was held to its CPU quota of 0.50 CPUs, which kept threads waiting 3.2 s"
        );
    }

    #[test]
    fn one_group_may_hold_both_ends_or_only_the_generator() {
        let both = slow().growing("process.server.throttled_us", 0, 400_000, 2).growing(
            "process.client.throttled_us",
            0,
            400_000,
            2,
        );
        assert!(both.speaks(&RULE).text.contains("of both ends"));
        let client = slow().growing("process.client.throttled_us", 0, 400_000, 2);
        assert_eq!(client.speaks(&RULE).side, Side::Client);
    }

    #[test]
    fn a_burst_that_waited_for_a_moment_and_a_run_that_felt_nothing_are_none() {
        slow().growing("process.server.throttled_us", 0, 20_000, 5).is_silent(&RULE);
        Run::quiet().growing("process.server.throttled_us", 0, 400_000, 2).is_silent(&RULE);
        slow().with("process.server.throttled_us", 77_000_000).is_silent(&RULE);
    }
}
