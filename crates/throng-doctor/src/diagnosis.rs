//! From what the rules say to one sentence.

use std::cmp::Reverse;

use throng_report::render::{count, rate};
use throng_report::runfile::EndReason;
use throng_report::{Diagnosis, Finding, Grade, Severity, Summary};

use crate::case::{Case, Load};
use crate::harm::FAILURES_ONE_IN;
use crate::headroom::{Headroom, headroom};
use crate::history::History;
use crate::rules::RULES;

/// What stopped the run, or that nothing did.
///
/// Findings are ranked: the gravest first; of those that are as grave, causes before what follows from them, then the surer, then in
/// the order of [`RULES`].
pub fn diagnose(history: &History, summary: &Summary) -> Diagnosis {
    let case = Case::new(history, summary);
    let findings = ranked(RULES.iter().filter_map(|rule| (rule.find)(&case)).collect());
    Diagnosis { verdict: verdict(&case, &findings), findings, unseen: unseen(history) }
}

/// What could not be looked at, and until when where that was not the whole run.
fn unseen(history: &History) -> Vec<String> {
    let mut found: Vec<(&str, Option<u64>)> = Vec::new();
    for moment in history.moments() {
        let Some(now) = &moment.interval.unseen else { continue };
        for (what, until_ms) in &mut found {
            if !now.iter().any(|sentence| sentence == what) {
                until_ms.get_or_insert(moment.interval.at_ms);
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

fn ranked(mut findings: Vec<Finding>) -> Vec<Finding> {
    let found: Vec<_> = findings.iter().map(|finding| finding.id.clone()).collect();
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
    let keys: Vec<_> = findings
        .iter()
        .map(|finding| {
            let sure = (finding.confidence * 1000.0) as u64;
            (Reverse(severity(finding)), finding.follows_from.is_some(), Reverse(sure))
        })
        .collect();
    let mut order: Vec<_> = (0..findings.len()).collect();
    order.sort_by_key(|n| keys[*n]);
    let mut sorted: Vec<Option<Finding>> = findings.into_iter().map(Some).collect();
    order.into_iter().filter_map(|n| sorted[n].take()).collect()
}

/// The first line of every report.
fn verdict(case: &Case<'_>, findings: &[Finding]) -> String {
    let Some(first) = findings.first() else { return nothing_stopped_it(case) };
    let did = match first.severity {
        Severity::Stopped => "Stopped",
        Severity::Slowed => "Slowed down",
        Severity::Noted => {
            return format!(
                "{} Next: {}; do: {}.",
                nothing_stopped_it(case),
                lower(first.first_sentence()),
                first.remedy
            );
        }
    };
    let load = first.began_ms().map(|at_ms| show_load(case.load_at(at_ms)));
    let at =
        load.filter(|load| !load.is_empty()).map_or_else(String::new, |load| format!(" at {load}"));
    format!(
        "{did} on the {} side{at}: {}; do: {}.",
        first.side,
        lower(first.first_sentence()),
        first.remedy
    )
}

fn nothing_stopped_it(case: &Case<'_>) -> String {
    let headroom = headroom(case);
    let of = headroom.as_ref().map_or_else(String::new, |Headroom { of, .. }| format!(" ({of})"));
    if let Some(errors) = show_errors(case.summary) {
        return format!("No cause was found for its {errors}{of}.");
    }
    if let Some(why) = doubt(case.summary) {
        return format!("Nothing that is known stopped it, but {why}.");
    }
    // What was ended early has not met its plan, and has not missed it.
    let (nothing, comma) = match case.summary.run.end {
        Some(EndReason::Interrupted) => ("Nothing stopped it before it was ended", ","),
        _ => ("Nothing stopped it: the plan was met", ""),
    };
    match headroom {
        Some(Headroom { share_free, .. }) if share_free < HEADROOM_MIN => {
            format!("{nothing}, with hardly any headroom{of}.")
        }
        Some(Headroom { share_free, .. }) => {
            format!("{nothing}{comma} with {:.0} % headroom{of}.", share_free * 100.0)
        }
        None => format!("{nothing}."),
    }
}

/// Its errors in words, with the kind of which there are most; none where they are too few to be harm.
fn show_errors(summary: &Summary) -> Option<String> {
    let all = summary.errors.total();
    if all.saturating_mul(FAILURES_ONE_IN) < summary.attempts() {
        return None;
    }
    let (kind, errors) = most_frequent_error(summary)?;
    Some(match all {
        1 => format!("only error, {kind}"),
        _ => format!("{} errors, {} of them {kind}", count(all as f64), count(errors as f64)),
    })
}

/// Why a run without errors may have missed its plan all the same.
fn doubt(summary: &Summary) -> Option<String> {
    let ended = match summary.run.end {
        Some(EndReason::TargetLost) => Some("its target was gone before the end"),
        Some(EndReason::Failed) => Some("the generator could not go on"),
        Some(EndReason::Unknown) => Some("this version does not know how it ended"),
        Some(EndReason::Finished | EndReason::Interrupted) | None => None,
    };
    if let Some(ended) = ended {
        return Some(ended.to_owned());
    }
    if let Some(overdue) = summary.overdue() {
        return Some(overdue);
    }
    let validity = &summary.validity;
    if validity.grade != Grade::Valid {
        let why = validity.reasons.first().map_or("", String::as_str);
        return Some(format!("the run is {}: {why}", validity.grade));
    }
    let connect = &summary.connect;
    if connect.intended == 0 {
        return Some("nobody connected".to_owned());
    }
    let unanswered = connect.intended.saturating_sub(connect.ok + connect.failed.total());
    (unanswered as f64 > UNANSWERED_SHARE_MAX * connect.intended as f64).then(|| {
        format!(
            "{} of its {} connects had no answer by the end",
            count(unanswered as f64),
            count(connect.intended as f64)
        )
    })
}

/// The kind of which there are most, and how many; failed connects by their own kinds.
fn most_frequent_error(summary: &Summary) -> Option<(&str, u64)> {
    let kinds = summary.errors.0.iter().filter(|(kind, _)| *kind != "connect");
    let kinds = kinds.chain(&summary.connect.failed.0);
    kinds.max_by_key(|(_, errors)| **errors).map(|(kind, errors)| (kind.as_str(), *errors))
}

/// Less is none: the next user would be one too many.
const HEADROOM_MIN: f64 = 0.05;

/// Sentences about what could not be seen, from a watch that has a new one each time.
const UNSEEN_MAX: usize = 64;

/// A run ends while a few connects are under way. Of more than this share, most have been waiting for longer.
const UNANSWERED_SHARE_MAX: f64 = 0.05;

/// `12.0k connections and 3.20k/s connects`.
fn show_load(load: Load) -> String {
    let mut parts = Vec::new();
    if load.connections > 0 {
        parts.push(format!("{} connections", count(load.connections as f64)));
    }
    for (per_second, what) in [(load.connects_per_s, "connects"), (load.messages_per_s, "messages")]
    {
        if per_second >= 1.0 {
            parts.push(format!("{} {what}", rate(per_second)));
        }
    }
    match parts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => parts.concat(),
    }
}

/// The sentence as it continues another: its first letter small, unless it is of an acronym.
fn lower(sentence: &str) -> String {
    let mut chars = sentence.chars();
    match (chars.next(), chars.clone().next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => sentence.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::fixture::Run;

    fn verdict_of(run: &Run) -> String {
        let (history, summary) = run.whole();
        diagnose(&history, &summary).verdict
    }

    #[test]
    fn the_verdict_names_cause_side_load_and_remedy() {
        let run = Run::quiet()
            .with("listener.backlog", 128)
            .growing("TcpExt.ListenOverflows", 0, 40, 2)
            .loaded(|load, second| load.connect_failed.add("timeout", u64::from(second > 8)));
        let said = verdict_of(&run);
        let begin = "Stopped on the server side at 600 connections, 200/s connects and 1k/s messages: the server's accept queue, \
                     which holds 128, overflowed 320 times; do: throng serve --backlog";
        assert!(said.starts_with(begin), "{said}");
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
        let unseen = diagnose(&history, &summary).unseen;
        assert_eq!(unseen, ["slabs: refused", "the watch has ended (until second 6)"]);
    }

    #[test]
    fn a_plan_that_was_met_is_told_with_its_headroom() {
        assert_eq!(
            verdict_of(&Run::quiet()),
            "Nothing stopped it: the plan was met with 85 % headroom (the CPUs of this machine were busy for 15 % at most)."
        );
    }

    #[test]
    fn a_target_that_stood_still_at_the_end_is_not_praised() {
        let waiting = |us: u64| {
            let run = Run::quiet().loaded(|load, second| {
                let ends = u64::from(second >= 9);
                load.counters.users_waiting = 400 * ends;
                load.counters.users_waiting_us_most = us * ends;
            });
            verdict_of(&run)
        };
        let said = waiting(4_900_000);
        let begin = "Slowed down on the server side at 1k connections and 1k/s messages: the server took its time: 400 users were waiting \
                     for an answer when it ended, one of them for 4.90 s";
        assert!(said.starts_with(begin), "{said}");
        assert!(waiting(300_000).starts_with("Nothing stopped it"), "{}", waiting(300_000));
    }

    #[test]
    fn a_run_that_is_not_to_be_believed_is_not_praised() {
        let late = Run::quiet().loaded(|load, second| {
            load.counters.users_intended = 260 * second.min(5);
        });
        let said = verdict_of(&late);
        assert!(said.starts_with("Nothing that is known stopped it, but the run is invalid: the generator did not start"), "{said}");
        let failed = Run::quiet().loaded(|load, second| {
            load.errors.add("expect_mismatch", 3 * second);
            load.errors.add("not_joined", second);
        });
        let said = verdict_of(&failed);
        assert!(
            said.starts_with(
                "No cause was found for its 40 errors, 30 of them expect_mismatch (the CPUs"
            ),
            "{said}"
        );
    }

    #[test]
    fn what_ended_early_has_not_met_its_plan() {
        let (history, mut summary) = Run::quiet().whole();
        let mut check = |end, begin: &str| {
            summary.run.end = Some(end);
            let said = diagnose(&history, &summary).verdict;
            assert!(said.starts_with(begin), "{said}");
        };
        check(EndReason::Finished, "Nothing stopped it: the plan was met with 85 % headroom");
        check(EndReason::Interrupted, "Nothing stopped it before it was ended, with 85 % headroom");
        check(
            EndReason::Failed,
            "Nothing that is known stopped it, but the generator could not go on.",
        );
        check(EndReason::TargetLost, "Nothing that is known stopped it, but its target was gone");
    }

    #[test]
    fn connects_that_nobody_answered_are_said() {
        let hanging = |each_second: u64| {
            verdict_of(&Run::quiet().loaded(|load, second| {
                let hang = each_second * second.min(5);
                load.counters.connects_ok -= hang;
                load.counters.connected -= hang;
            }))
        };
        let met = "Nothing stopped it: the plan was met";
        assert!(hanging(10).starts_with(met), "under way: {}", hanging(10));
        let begin = "Nothing that is known stopped it, but";
        let said = hanging(20);
        assert!(
            said.starts_with(&format!("{begin} 100 of its 1k connects had no answer")),
            "{said}"
        );
        let said = hanging(200);
        assert!(
            said.starts_with(&format!("{begin} 1k of its 1k connects had no answer")),
            "{said}"
        );
    }

    #[test]
    fn one_error_in_very_many_is_no_reason_to_say_nothing_else() {
        let failing = |errors: u64, messages: u64| {
            verdict_of(&Run::quiet().loaded(|load, second| {
                load.counters.messages_sent = messages * second;
                load.counters.messages_answered = messages * second;
                load.errors.add("expect_mismatch", if second == 10 { errors } else { 0 });
            }))
        };
        let said = failing(9, 1_000);
        assert!(said.starts_with("Nothing stopped it: the plan was met"), "9 in 11,000: {said}");
        let said = failing(11, 1_000);
        assert!(said.starts_with("No cause was found for its 11 errors, 11 of them"), "{said}");
        let said = failing(1, 0);
        assert!(
            said.starts_with("No cause was found for its only error, expect_mismatch"),
            "{said}"
        );
    }

    #[test]
    fn the_gravest_comes_first() {
        let late =
            Run::quiet().growing("TcpExt.ListenOverflows", 0, 40, 2).loaded(|load, second| {
                load.lag.record_n(30_000, 900);
                load.connect_failed.add("timeout", u64::from(second > 8));
            });
        late.check_all(&["accept_queue_overflow", "generator_saturated"]);
    }
}
