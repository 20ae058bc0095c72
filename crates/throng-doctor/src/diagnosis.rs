//! The step from the findings of all rules to one verdict.

use std::cmp::Reverse;

use throng_measure::{Diagnosis, Finding, Severity, Side};
use throng_report::{Judgement, Summary};

use crate::finding_machines::with_machines;
use crate::history::History;
use crate::import_verdict::verdict_of_import;
use crate::missed_thresholds::MissedThresholds;
use crate::rules::{FindingClass, RULES, Rule, RuleFinding, RuleTrait};
use crate::run_view::RunView;
use crate::verdict::{Verdict, VerdictParts, verdict};

/// Returns what stopped the run, or that nothing did, and which of its thresholds were missed.
///
/// Findings are ranked: the gravest first. Among equally grave ones, what the generator's delays do
/// not explain comes before these, and a cause before its consequences; then they come by class,
/// then the higher confidence, then the order of [`RULES`]. Other programs never come before a
/// fault of the server itself, nor before the cause of such a fault. An effect of the server whose
/// cause no rule knows follows from the gravest cause that the run felt: one cause is enough.
///
/// The log of another tool does not say what the generator, the server and their kernels did. So a
/// run that was imported from one has no findings.
pub fn diagnose(history: &History, summary: &Summary, judgements: &[Judgement]) -> Diagnosis {
    let thresholds = MissedThresholds::of(judgements);
    let run = RunView::judged(history, summary, &thresholds);
    if let Some(imported) = &history.header.imported {
        let verdict = verdict_of_import(&run, imported);
        let headline = verdict.clone();
        return Diagnosis { verdict, headline, ..Diagnosis::default() };
    }
    let found = RULES.iter().filter_map(|rule| Some((rule, with_machines(&run, rule.find(&run)?))));
    let found = ranked(found.collect());
    let Verdict { text: verdict, parts, cause } = verdict(&run, &found);
    let VerdictParts { headline, effect, remedy } = parts;
    let cause = cause.map(|cause| cause.id.clone());
    let (findings, unseen) = (without_rules(found), unseen(history));
    Diagnosis { verdict, headline, effect, remedy, cause, findings, unseen }
}

/// Returns what the rules find that need no data from a generator, in the same order.
pub fn diagnose_without_load(history: &History) -> Vec<Finding> {
    let (summary, thresholds) = (Summary::default(), MissedThresholds::default());
    let run = RunView::judged(history, &summary, &thresholds);
    let rules = RULES.iter().filter(|rule| rule.has(RuleTrait::WithoutLoad));
    without_rules(ranked(rules.filter_map(|rule| Some((rule, rule.find(&run)?))).collect()))
}

fn without_rules(found: Vec<RuleFinding>) -> Vec<Finding> {
    found.into_iter().map(|(_, finding)| finding).collect()
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
fn ranked(mut found: Vec<RuleFinding>) -> Vec<RuleFinding> {
    let explains = |(rule, finding): &&RuleFinding| rule.class_of(finding) != FindingClass::Note;
    let causes: Vec<(&Rule, Option<u64>)> =
        found.iter().filter(explains).map(|(rule, finding)| (*rule, finding.began_ms())).collect();
    for (rule, finding) in &mut found {
        let own_ms = finding.began_ms();
        let cause =
            causes.iter().find(|(cause, began_ms)| cause.is_cause_of(*began_ms, rule, own_ms));
        finding.follows_from = cause.map(|(cause, _)| cause.id.to_owned());
    }
    follow_from_the_gravest(&mut found);
    let is_contended = found.iter().any(|(rule, _)| rule.has(RuleTrait::OtherPrograms));
    let key = |(rule, finding): &RuleFinding| {
        let follow =
            || found.iter().filter(|(_, other)| other.follows_from.as_deref() == Some(&finding.id));
        // A cause is as grave as the gravest of what follows from it.
        let grave = follow().map(|(_, other)| other.severity).fold(finding.severity, Ord::max);
        // A fault that the run did not feel is not told before what it felt.
        let is_not_of_others = grave > Severity::Noted
            && (rule.has(RuleTrait::ServerFault)
                || rule.has(RuleTrait::NotOfDelays)
                || follow().any(|(other, _)| other.has(RuleTrait::ServerFault)));
        // What the generator's delays do not explain is not hidden by them.
        let is_beside = rule.has(RuleTrait::OwnDelays)
            && found.iter().any(|(other, finding)| {
                other.has(RuleTrait::NotOfDelays) && finding.severity >= grave
            });
        let sure = (finding.confidence * 1000.0) as u64;
        let follows = finding.follows_from.is_some();
        let waits = is_contended && !is_not_of_others;
        (waits, Reverse(grave), is_beside, follows, rule.class_of(finding), Reverse(sure))
    };
    let keys: Vec<_> = found.iter().map(key).collect();
    let mut sorted: Vec<_> = keys.into_iter().zip(found).collect();
    sorted.sort_by_key(|(key, _)| *key);
    sorted
        .into_iter()
        .map(|((_, Reverse(grave), ..), (rule, finding))| (rule, finding.with_severity(grave)))
        .collect()
}

/// Lets effects of the server without a known cause follow from its gravest cause, if that is as
/// grave.
fn follow_from_the_gravest(found: &mut [RuleFinding]) {
    let is_root = |(rule, finding): &&RuleFinding| {
        let is_cause = rule.class_of(finding) == FindingClass::Cause;
        let is_felt = finding.severity > Severity::Noted && finding.follows_from.is_none();
        is_cause && is_felt && finding.side == Side::Server && !rule.has(RuleTrait::OtherPrograms)
    };
    // Of several that are as grave, the first.
    let root = found.iter().rev().filter(is_root).max_by_key(|(_, finding)| finding.severity);
    let Some((root, grave)) = root.map(|(rule, finding)| (rule.id, finding.severity)) else {
        return;
    };
    for (rule, finding) in found {
        let is_effect = rule.class == FindingClass::Consequence && finding.side == Side::Server;
        if is_effect && finding.severity <= grave && finding.follows_from.is_none() {
            finding.follows_from = Some(root.to_owned());
        }
    }
}

/// The most sentences about what could not be read: a source may report a new one each second.
const UNSEEN_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use throng_measure::{ErrorKind, Metric};

    use super::*;
    use crate::rules::fixture::Run;

    #[test]
    fn a_class_outranks_confidence_among_equally_grave_findings() {
        const CAUSE: Rule = Rule::new("cause", |_| None);
        const CONSEQUENCE: Rule =
            Rule::new("consequence", |_| None).of_class(FindingClass::Consequence);
        const NOTE: Rule = Rule::new("note", |_| None).of_class(FindingClass::Note);
        let check = |severities: [Severity; 3], expected: [&str; 3]| {
            let found = [(&NOTE, 1.0), (&CONSEQUENCE, 0.8), (&CAUSE, 0.6)];
            let found = found.into_iter().zip(severities).map(|((rule, sure), severity)| {
                let finding = Finding::new(rule.id, Side::Server, "It happened.");
                (rule, finding.with_confidence(sure).with_severity(severity))
            });
            let ids: Vec<_> =
                ranked(found.collect()).into_iter().map(|(rule, _)| rule.id).collect();
            assert_eq!(ids, expected, "{severities:?}");
        };
        check([Severity::Noted; 3], ["cause", "consequence", "note"]);
        // A note that the run felt is a cause.
        check([Severity::Slowed; 3], ["note", "cause", "consequence"]);
        let of_note = [Severity::Slowed, Severity::Stopped, Severity::Noted];
        check(of_note, ["consequence", "note", "cause"]);
    }

    #[test]
    fn an_effect_follows_from_the_gravest_cause_that_is_as_grave() {
        const LOST: Rule = Rule::new("lost", |_| None);
        const LEAKS: Rule = Rule::new("leaks", |_| None);
        const LATE: Rule = Rule::new("late", |_| None).of_class(FindingClass::Consequence);
        let cause_of_late = |severities: [Severity; 3], side| {
            let found =
                [&LOST, &LEAKS, &LATE].into_iter().zip(severities).map(|(rule, severity)| {
                    let side = if rule.id == "late" { side } else { Side::Server };
                    (rule, Finding::new(rule.id, side, "It happened.").with_severity(severity))
                });
            let ranked = ranked(found.collect());
            ranked.into_iter().find(|(rule, _)| rule.id == "late").unwrap().1.follows_from
        };
        let (noted, slowed, stopped) = (Severity::Noted, Severity::Slowed, Severity::Stopped);
        let lost = || Some("lost".to_owned());
        assert_eq!(cause_of_late([stopped, slowed, slowed], Side::Server), lost());
        assert_eq!(cause_of_late([slowed, slowed, slowed], Side::Server), lost());
        assert_eq!(cause_of_late([noted, noted, slowed], Side::Server), None);
        assert_eq!(cause_of_late([slowed, slowed, stopped], Side::Server), None);
        assert_eq!(cause_of_late([stopped, slowed, slowed], Side::Client), None);
    }

    #[test]
    fn a_note_explains_only_what_the_run_felt_with_it() {
        const NOTE: Rule =
            Rule::new("note", |_| None).of_class(FindingClass::Note).with(&[RuleTrait::TakesCpu]);
        const SLOW: Rule = Rule::new("slow", |_| None).with(&[RuleTrait::LacksCpu]);
        const LATE: Rule = Rule::new("late", |_| None).follows_from(&["note"]);
        let causes = |severity| {
            let finding = |rule: &'static Rule| {
                (rule, Finding::new(rule.id, Side::Server, "").with_severity(severity))
            };
            let found = ranked([&NOTE, &SLOW, &LATE].map(finding).into());
            found.iter().filter(|(_, finding)| finding.follows_from.is_some()).count()
        };
        assert_eq!((causes(Severity::Noted), causes(Severity::Slowed)), (0, 2));
    }

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
                load.connect_failed.add(ErrorKind::ConnectTimeout, u64::from(second > 8));
            },
        );
        late.check_all(&["accept_queue_overflow", "generator_saturated"]);
    }
}
