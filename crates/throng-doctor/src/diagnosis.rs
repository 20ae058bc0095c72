//! The step from the findings of all rules to one verdict.

use std::cmp::Reverse;

use throng_report::{Diagnosis, Finding, Judgement, Severity, Summary};

use crate::history::History;
use crate::missed_thresholds::MissedThresholds;
use crate::rules::{CAVEAT, CONTENTION, RULES, SERVER_FAULTS};
use crate::run_view::RunView;
use crate::verdict::verdict;

/// Returns what stopped the run, or that nothing did, and which of its thresholds were missed.
///
/// Findings are ranked: the gravest first. Among equally grave ones, a cause comes before its
/// consequences, then the higher confidence, then the order of [`RULES`]. Other programs never come
/// before a fault of the server itself, nor before the cause of such a fault.
pub fn diagnose(history: &History, summary: &Summary, judgements: &[Judgement]) -> Diagnosis {
    let thresholds = MissedThresholds::of(judgements);
    let run = RunView::judged(history, summary, &thresholds);
    let findings = ranked(RULES.iter().filter_map(|rule| (rule.find)(&run)).collect());
    Diagnosis { verdict: verdict(&run, &findings), findings, unseen: unseen(history) }
}

/// Returns what could not be read, and until when if that was not the whole run.
fn unseen(history: &History) -> Vec<String> {
    let mut found: Vec<(&str, Option<u64>)> = Vec::new();
    for sample in history.samples() {
        let Some(now) = &sample.interval.unseen else { continue };
        for (what, until_ms) in &mut found {
            if !now.iter().any(|sentence| sentence == what) {
                until_ms.get_or_insert(sample.interval.at_ms);
            }
        }
        for what in now {
            match found.iter().position(|(known, _)| known == what) {
                Some(at) => found[at].1 = None,
                None if found.len() < UNSEEN_MAX => found.push((what, None)),
                None => {}
            }
        }
    }
    let words = |(what, until_ms): (&str, Option<u64>)| match until_ms {
        Some(ms) => format!("{what} (until second {:.0})", ms as f64 / 1000.0),
        None => what.to_owned(),
    };
    found.into_iter().map(words).collect()
}

/// Sorts findings by the order that [`diagnose`] describes.
fn ranked(mut findings: Vec<Finding>) -> Vec<Finding> {
    // A caveat explains nothing.
    let is_cause = |finding: &&Finding| finding.id != CAVEAT || finding.severity > Severity::Noted;
    let found: Vec<_> =
        findings.iter().filter(is_cause).map(|finding| finding.id.clone()).collect();
    for finding in &mut findings {
        let cause = RULES.iter().find(|rule| {
            rule.explains.contains(&finding.id.as_str()) && found.iter().any(|id| id == rule.id)
        });
        finding.follows_from = cause.map(|rule| rule.id.to_owned());
    }
    // A cause is as grave as the gravest of what follows from it.
    let severity = |finding: &Finding| {
        let consequences =
            findings.iter().filter(|other| other.follows_from.as_deref() == Some(&finding.id));
        consequences.map(|other| other.severity).chain([finding.severity]).max()
    };
    let is_one_of = |ids: &[&str], finding: &Finding| ids.contains(&finding.id.as_str());
    let is_contended = findings.iter().any(|finding| is_one_of(CONTENTION, finding));
    let is_server_fault = |finding: &Finding| {
        let is_cause = |other: &Finding| other.follows_from.as_deref() == Some(&finding.id);
        is_one_of(SERVER_FAULTS, finding)
            || findings.iter().any(|other| is_one_of(SERVER_FAULTS, other) && is_cause(other))
    };
    let keys: Vec<_> = findings
        .iter()
        .map(|finding| {
            let sure = (finding.confidence * 1000.0) as u64;
            let waits = is_contended && !is_server_fault(finding);
            (waits, Reverse(severity(finding)), finding.follows_from.is_some(), Reverse(sure))
        })
        .collect();
    let mut order: Vec<_> = (0..findings.len()).collect();
    order.sort_by_key(|n| keys[*n]);
    for (finding, (_, Reverse(grave), ..)) in findings.iter_mut().zip(&keys) {
        finding.severity = grave.unwrap_or(finding.severity);
    }
    let mut sorted: Vec<Option<Finding>> = findings.into_iter().map(Some).collect();
    order.into_iter().filter_map(|n| sorted[n].take()).collect()
}

/// The most sentences about what could not be read: a source may report a new one each second.
const UNSEEN_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use throng_report::Metric;

    use super::*;
    use crate::rules::fixture::Run;

    #[test]
    fn what_could_be_seen_again_was_unseen_for_a_while_only() {
        let run = Run::quiet().changed(|interval, second| {
            let sentences =
                |all: &[&str]| Some(all.iter().map(|what| (*what).to_owned()).collect());
            interval.unseen = match second {
                1 => sentences(&["slabs: refused"]),
                3 => sentences(&["slabs: refused", "the watch has ended"]),
                6 => sentences(&["slabs: refused"]),
                _ => None,
            };
        });
        let (history, summary) = run.whole();
        let unseen = diagnose(&history, &summary, &[]).unseen;
        assert_eq!(unseen, ["slabs: refused", "the watch has ended (until second 6)"]);
    }

    #[test]
    fn the_gravest_comes_first() {
        let late = Run::quiet().growing(Metric::TCPEXT_LISTEN_OVERFLOWS, 0, 40, 2).loaded(
            |load, second| {
                load.lag.record_n(30_000, 900);
                load.connect_failed.add("timeout", u64::from(second > 8));
            },
        );
        late.check_all(&["accept_queue_overflow", "generator_saturated"]);
    }
}
