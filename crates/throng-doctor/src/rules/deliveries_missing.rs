//! Messages to everybody did not reach everybody.

use throng_report::render::{count, percent};
use throng_report::{Finding, Severity, Side};

use super::Rule;
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule { id: "deliveries_missing", explains: &[], find };

/// A probe is counted on at every user that could hear it, and each delivery is known by its mark. Where none at all came, either
/// nothing is passed on, or what is passed on is another message, without the mark.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let counters = &run.summary.broadcast.as_ref()?.counters;
    if counters.missing == 0 {
        return None;
    }
    let growth =
        run.growth_of("load.probe.missing", |moment| Some(moment.load()?.probe.missing as i64));
    let share = percent(counters.missing as f64 / counters.expected.max(1) as f64);
    let (text, remedy) = match counters.delivered + counters.late {
        0 => (
            format!(
                "None of {} deliveries of {} probes came. The server passes nothing on to those users, or it makes a message of its \
                 own of it, without the mark by which a delivery is known (throng_probe).",
                count(counters.expected as f64),
                count(counters.sent as f64)
            ),
            "see what the server sends to the others: it must keep the member throng_probe of a JSON object, or the end of a text",
        ),
        _ => (
            format!(
                "{} of {} deliveries of probes are missing ({share}): they did not come before the probe's time-out.{}",
                count(counters.missing as f64),
                count(counters.expected as f64),
                match counters.late {
                    0 => String::new(),
                    late => format!(" {} of them came later.", count(late as f64)),
                }
            ),
            "look for messages that the server drops (a full queue, a slow reader, a lost subscription), or give the probe a longer \
             timeout",
        ),
    };
    let is_few = counters.missing.saturating_mul(MISSING_ONE_IN) < counters.expected;
    let severity = if is_few { Severity::Slowed } else { Severity::Stopped };
    let mut found =
        Finding::new(RULE.id, Side::Server, text).with_severity(severity).with_confidence(0.8);
    found.evidence.extend(growth.map(|growth| growth.evidence()));
    if found.evidence.is_empty() {
        // They were given up while everybody left.
        let at_ms = run.samples().last()?.interval.at_ms;
        found = found.shown_by("load.probe.missing", 0.0, counters.missing as f64, at_ms);
    }
    Some(found.remedied_by(remedy))
}

/// Of so many deliveries one that is missing is a blemish.
const MISSING_ONE_IN: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;

    fn probing(delivered: u64, missing: u64) -> Run {
        Run::quiet().loaded(move |load, second| {
            load.probe.intended = second;
            load.probe.sent = second;
            load.probe.delivered = delivered * second;
            load.probe.missing = missing * second;
            load.probe.expected = load.probe.delivered + load.probe.missing;
        })
    }

    #[test]
    fn deliveries_that_did_not_come_are_told() {
        let found = probing(900, 100).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "1k of 10k deliveries of probes are missing (10.0 %): they did not come before the probe's time-out"
        );
        assert_eq!((found.severity, found.began_ms()), (Severity::Stopped, Some(1_000)));
        assert_eq!(probing(5_000, 1).speaks(&RULE).severity, Severity::Slowed);
    }

    #[test]
    fn where_none_came_the_mark_may_be_lost() {
        let found = probing(0, 60).speaks(&RULE);
        assert_eq!(found.first_sentence(), "None of 600 deliveries of 10 probes came");
        assert!(found.text.contains("throng_probe"), "{found}");
    }

    #[test]
    fn probes_that_reached_everybody_are_none() {
        probing(900, 0).is_silent(&RULE);
        Run::quiet().is_silent(&RULE);
    }
}
