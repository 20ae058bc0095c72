//! Messages to all users did not reach all users.

use throng_measure::{Finding, Severity, Side};
use throng_report::render::{count, percent};

use super::{FindingClass, Rule, RuleTrait, answers_missing};
use crate::loss_onset::{AskedInInterval, LossOnset};
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("deliveries_missing", find)
    .of_class(FindingClass::Consequence)
    .with(&[RuleTrait::GoesOn, RuleTrait::LosesMessages])
    .follows_from(&["server_restarted"]);

/// A probe expects a delivery at every subscribed user and recognises it by its mark. If there is
/// no delivery at all, the server either does not forward the probe, or sends another message
/// without the mark.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let counters = &run.summary.broadcast.as_ref()?.counters;
    if counters.missing == 0 || answers_missing::are_missing_deliveries(run) {
        return None;
    }
    let growth =
        run.growth_of("load.probe.missing", |sample| Some(sample.load()?.probe.missing as i64));
    let onset = onset(run);
    let share = percent(counters.missing as f64 / counters.expected.max(1) as f64);
    let (text, remedy) = match counters.delivered + counters.late {
        0 if messages_came(run, counters.expected) => (
            format!(
                "The server does not pass on the mark of the probes (throng_probe): messages \
                 arrived, and none of {} deliveries of {} probes could be recognised. It sends a \
                 message of its own in place of the probe.",
                count(counters.expected as f64),
                count(counters.sent as f64)
            ),
            "let the server keep the member throng_probe of a JSON object, or the end of a text; \
             or put the probe's text into a member that it passes on",
        ),
        0 => (
            format!(
                "None of {} deliveries of {} probes arrived. The server does not forward the probe \
                 to those users, or it sends a message of its own without the mark that identifies \
                 a delivery (throng_probe).",
                count(counters.expected as f64),
                count(counters.sent as f64)
            ),
            "check what the server sends to the other users: it must keep the member throng_probe \
             of a JSON object, or the end of a text",
        ),
        _ => (
            format!(
                "{} of {} deliveries of probes are missing ({share}): they did not arrive before \
                 the probe's time-out.{}{}",
                count(counters.missing as f64),
                count(counters.expected as f64),
                onset.map_or_else(String::new, |onset| format!(" It lost them {}.", onset.words())),
                match counters.late {
                    0 => String::new(),
                    late => format!(" {} of them arrived later.", count(late as f64)),
                }
            ),
            "look for messages that the server drops (a full queue, a slow reader, a lost \
             subscription), or give the probe a longer timeout",
        ),
    };
    let is_few = counters.missing.saturating_mul(MISSING_ONE_IN) < counters.expected;
    let severity = if is_few { Severity::Slowed } else { Severity::Stopped };
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_severity(severity)
        .with_confidence(0.8)
        .remedied_by(onset.map_or_else(String::new, LossOnset::look) + remedy);
    if growth.is_none() {
        // The probes ended while users left, after the last interval that could show it.
        let at_ms = run.samples().last()?.interval.at_ms;
        return Some(finding.shown_by("load.probe.missing", 0.0, counters.missing as f64, at_ms));
    }
    Some(finding.with_evidence(growth))
}

/// Returns the moment from which deliveries are lost, if none were before.
fn onset(run: &RunView<'_>) -> Option<LossOnset> {
    let intervals = run.steps().filter_map(|(before, now)| {
        let (from, to) = (&before.load()?.probe, &now.load()?.probe);
        Some(AskedInInterval {
            at_ms: now.interval.at_ms,
            span_ms: now.interval.span_ms,
            asked: to.expected.saturating_sub(from.expected),
            arrived: to.delivered.saturating_sub(from.delivered),
        })
    });
    LossOnset::of(&intervals.collect::<Vec<_>>())
}

/// Reports whether about as many messages came unasked as deliveries were due.
fn messages_came(run: &RunView<'_>, expected: u64) -> bool {
    let unasked = run.summary.message.unasked;
    expected > 0 && unasked.saturating_mul(10) >= expected.saturating_mul(9)
}

/// The share of missing deliveries, one in so many, from which the finding is grave.
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
    fn missing_deliveries_are_reported() {
        let found = probing(900, 100).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "1k of 10k deliveries of probes are missing (10.0 %): they did not arrive before the \
             probe's time-out"
        );
        assert_eq!((found.severity, found.began_ms()), (Severity::Stopped, Some(1_000)));
        assert_eq!(probing(5_000, 1).speaks(&RULE).severity, Severity::Slowed);
    }

    #[test]
    fn deliveries_that_are_lost_from_some_moment_on_are_dated() {
        let found = probing(900, 0)
            .loaded(|load, second| {
                load.probe.missing = 90 * second.saturating_sub(6);
                load.probe.expected = 900 * second;
                load.probe.delivered = load.probe.expected - load.probe.missing;
            })
            .speaks(&RULE);
        assert!(
            found.text.contains("It lost them from 6.0 s on and hardly any before."),
            "{found}"
        );
        assert!(found.remedy.starts_with("look for what began at 6.0 s"), "{found}");
        assert!(!probing(900, 90).speaks(&RULE).text.contains("hardly any"));
    }

    #[test]
    fn where_none_came_the_mark_may_be_lost() {
        let found = probing(0, 60).speaks(&RULE);
        assert_eq!(found.first_sentence(), "None of 600 deliveries of 10 probes arrived");
        assert!(found.text.contains("throng_probe"), "{found}");
    }

    #[test]
    fn where_messages_came_the_mark_is_lost() {
        let run =
            probing(0, 60).loaded(|load, second| load.counters.messages_unasked = 60 * second);
        assert_eq!(
            run.speaks(&RULE).first_sentence(),
            "The server does not pass on the mark of the probes (throng_probe): messages arrived, \
             and none of 600 deliveries of 10 probes could be recognised"
        );
    }

    #[test]
    fn probes_that_reached_all_users_are_no_finding() {
        probing(900, 0).is_silent(&RULE);
        Run::quiet().is_silent(&RULE);
    }
}
