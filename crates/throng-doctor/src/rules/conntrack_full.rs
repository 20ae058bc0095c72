//! The connection tracking table is full, and the kernel drops every packet that would add an
//! entry.

use throng_measure::{Limit, Metric};

use super::kernel_row::KernelRow;
use super::{Rule, RuleTrait};

/// Drops alone have other causes, and a table that is nearly full has done no harm yet: the rule
/// needs both. Failed inserts do not count: as a rule they are two packets of one connection that
/// arrive at the same time.
pub(super) const RULE: Rule = Rule::row(
    "conntrack_full",
    &KernelRow {
        counters: &[Metric::CONNTRACK_DROPPED, Metric::CONNTRACK_EARLY_DROPPED],
        limit: |facts| facts.conntrack_max,
        gauge: Some(Metric::CONNTRACK_COUNT),
        full: Some(FULL),
        text: "Connection tracking on {whose} is full with{limit} entries: {drops} packets were \
               dropped. Their senders try again a second later, and again.",
        remedy: "{raise}, or `notrack` for the port in a raw chain of nftables",
        raises: Some(Limit::CONNTRACK),
        // One entry a connection, and entries of closed connections stay for two minutes.
        wanted_each_user: 2,
        ..KernelRow::ANY
    },
)
.with(&[RuleTrait::WithoutLoad])
.explains(&["retransmits", "server_slow", "half_open"]);

/// The share of the limit that counts as full: the kernel drops at the limit itself, and a sample a
/// second may just miss it.
const FULL: f64 = 0.95;

#[cfg(test)]
mod tests {
    use throng_measure::Severity;

    use super::super::fixture::Run;
    use super::*;

    fn tracking(count: i64) -> Run {
        Run::quiet().with(Metric::CONNTRACK_MAX, 200).with(Metric::CONNTRACK_COUNT, count)
    }

    #[test]
    fn a_full_table_that_drops_is_told_with_its_size() {
        let run =
            tracking(200).growing(Metric::CONNTRACK_DROPPED, 0, 280, 2).loaded(|load, second| {
                load.counters.connects_started += if second > 2 { 300 } else { 0 };
            });
        let found = run.speaks(&RULE);
        assert_eq!(found.severity, Severity::Stopped);
        assert_eq!(
            found.first_sentence(),
            "Connection tracking on this machine is full with 200 entries: 2.24k packets were \
             dropped"
        );
    }

    #[test]
    fn drops_that_nobody_felt_are_noted() {
        let found = tracking(200).growing(Metric::CONNTRACK_DROPPED, 0, 2, 2).speaks(&RULE);
        assert_eq!(found.severity, Severity::Noted);
    }

    #[test]
    fn a_table_with_room_that_drops_and_a_full_one_that_does_not_are_silent() {
        tracking(100).growing(Metric::CONNTRACK_DROPPED, 0, 280, 2).is_silent(&RULE);
        tracking(200).is_silent(&RULE);
        tracking(200).growing(Metric::CONNTRACK_INSERT_FAILED, 0, 9, 2).is_silent(&RULE);
    }
}
