//! Packets arrived faster than a CPU took them from its queue.

use throng_report::render::count;
use throng_report::{Finding, Metric};

use super::{Rule, retransmission};
use crate::kernels::{Kernel, kernels};
use crate::run_view::RunView;

pub(super) const RULE: Rule =
    Rule::cause("softnet_drops", find).explains(&["retransmits", "server_slow"]);

fn find(run: &RunView<'_>) -> Option<Finding> {
    kernels(run).iter().find_map(|kernel| of_kernel(run, kernel))
}

/// The counter covers all CPUs and all namespaces, so the dropped packets may belong to another
/// program. Hence the rule requires a share of the packets and a symptom in the run.
fn of_kernel(run: &RunView<'_>, kernel: &Kernel) -> Option<Finding> {
    let dropped = run.growth(kernel.endpoint, Metric::SOFTNET_DROPPED)?;
    let processed =
        run.growth(kernel.endpoint, Metric::SOFTNET_PROCESSED).map_or(0, |growth| growth.by());
    if dropped.by() < DROPPED_MIN || dropped.by().saturating_mul(DROPPED_ONE_IN) < processed {
        return None;
    }
    let symptom = retransmission::by_anything(run)?;
    let most = run.facts(kernel.endpoint).netdev_max_backlog;
    let room = most.map_or(String::new(), |most| format!(", which holds {},", count(most as f64)));
    let mut found = Finding::new(
        RULE.id,
        kernel.side,
        format!(
            "The packet queue of a CPU on {}{room} was full: {} packets of {} were dropped. Their \
             senders wait, and send them again.",
            kernel.whose,
            count(dropped.by() as f64),
            count((processed + dropped.by()) as f64)
        ),
    )
    .with_severity(symptom.severity);
    found.evidence.push(dropped.evidence());
    found.evidence.push(symptom.evidence);
    let wanted = most.unwrap_or(0).saturating_mul(4).max(WANTED);
    Some(found.remedied_by(format!(
        "sysctl -w net.core.netdev_max_backlog={wanted}, and spread the packets over more CPUs \
         (RSS, RPS: rps_cpus of the interface)"
    )))
}

/// The fewest drops that count: a burst of another program loses as many.
const DROPPED_MIN: u64 = 10;

/// The smallest share that counts: less than one packet in ten thousand changes no percentile.
const DROPPED_ONE_IN: u64 = 10_000;

/// A queue ten times as long as the kernel's default.
const WANTED: i64 = 10_000;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;

    fn slow(run: Run) -> Run {
        run.loaded(|load, second| load.message.record_n(210_000, u32::from(second > 5)))
    }

    fn dropping(each_second: i64) -> Run {
        Run::quiet()
            .with(Metric::SYSCTL_NET_CORE_NETDEV_MAX_BACKLOG, 1_000)
            .growing(Metric::SOFTNET_PROCESSED, 50_000_000, 100_000, 0)
            .growing(Metric::SOFTNET_DROPPED, 77, each_second, 5)
    }

    #[test]
    fn drops_with_a_symptom_are_reported_with_their_share() {
        let found = slow(dropping(100)).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The packet queue of a CPU on this machine, which holds 1k, was full: 500 packets of \
             1M were dropped"
        );
    }

    #[test]
    fn drops_of_others_and_a_few_of_many_are_silent() {
        dropping(100).is_silent(&RULE);
        slow(dropping(1)).is_silent(&RULE);
        slow(Run::quiet().growing(Metric::SOFTNET_TIME_SQUEEZE, 0, 900, 0)).is_silent(&RULE);
    }
}
