//! Packets arrived faster than a CPU took them from its queue.

use throng_measure::{Limit, Metric};

use super::Rule;
use super::kernel_row::KernelRow;

/// The counter covers all CPUs and all namespaces, so the dropped packets may belong to another
/// program. Hence the rule requires a share of the packets and a symptom in the run.
pub(super) const RULE: Rule = Rule::row(
    "softnet_drops",
    &KernelRow {
        counters: &[Metric::SOFTNET_DROPPED],
        // A burst of another program loses as many.
        at_least: 10,
        // Less than one packet in ten thousand changes no percentile.
        share: Some((Metric::SOFTNET_PROCESSED, 10_000)),
        limit: |facts| facts.netdev_max_backlog,
        without_symptom: None,
        text: "The packet queue of a CPU on {whose}{room} was full: {drops} packets of {all} were \
               dropped. Their senders wait, and send them again.",
        remedy: "{raise}, and spread the packets over more CPUs (RSS, RPS: rps_cpus of the \
                 interface)",
        raises: Some(Limit::PACKET_BACKLOG),
        // Ten times as long as the kernel's default.
        wanted_min: 10_000,
        ..KernelRow::ANY
    },
)
.explains(&["retransmits", "server_slow"]);

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;
    use throng_measure::Operation;

    fn slow(run: Run) -> Run {
        run.loaded(|load, second| {
            load.times[Operation::Message].record_n(210_000, u32::from(second > 5))
        })
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
