//! The connection tracking table is full, and the kernel drops every packet that would add an
//! entry.

use throng_report::render::count;
use throng_report::{Finding, Metric, Severity};

use super::{Rule, RuleTrait, retransmission};
use crate::kernels::{Kernel, kernels};
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::cause("conntrack_full", find)
    .with(&[RuleTrait::WithoutLoad])
    .explains(&["retransmits", "server_slow", "half_open"]);

fn find(run: &RunView<'_>) -> Option<Finding> {
    kernels(run).iter().find_map(|kernel| of_kernel(run, kernel))
}

/// Drops alone have other causes, and a table that is nearly full has done no harm yet: the rule
/// needs both. Failed inserts do not count: as a rule they are two packets of one connection that
/// arrive at the same time.
fn of_kernel(run: &RunView<'_>, kernel: &Kernel) -> Option<Finding> {
    let dropped = run
        .growth(kernel.endpoint, Metric::CONNTRACK_DROPPED)
        .or_else(|| run.growth(kernel.endpoint, Metric::CONNTRACK_EARLY_DROPPED))?;
    let max = run.facts(kernel.endpoint).conntrack_max?;
    let full = run.peak(kernel.endpoint, Metric::CONNTRACK_COUNT)?;
    if (full.value as f64) < FULL * max as f64 {
        return None;
    }
    let symptom = retransmission::by_anything(run);
    let severity = symptom.as_ref().map_or(Severity::Noted, |symptom| symptom.severity);
    let mut found = Finding::new(
        RULE.id,
        kernel.side,
        format!(
            "Connection tracking on {} is full with {} entries: {} packets were dropped. Their \
             senders try again a second later, and again.",
            kernel.whose,
            count(max as f64),
            count(dropped.by() as f64)
        ),
    )
    .with_severity(severity);
    found.evidence.push(dropped.evidence());
    found.evidence.push(full.evidence());
    found.evidence.extend(symptom.map(|symptom| symptom.evidence));
    // One entry a connection, and entries of closed connections stay for two minutes.
    let wanted = (run.header.users_planned.saturating_mul(2) as i64).max(max.saturating_mul(4));
    Some(found.remedied_by(format!(
        "sysctl -w net.netfilter.nf_conntrack_max={wanted}, or `notrack` for the port in a raw \
         chain of nftables"
    )))
}

/// The share of the limit that counts as full: the kernel drops at the limit itself, and a sample a
/// second may just miss it.
const FULL: f64 = 0.95;

#[cfg(test)]
mod tests {
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
