//! The first line of a report: what was missed, what stopped the run, or that nothing did.

use throng_report::render::{count, micros, rate};
use throng_report::runfile::RunEndReason;
use throng_report::{Finding, Grade, Severity, Summary};

use crate::counted::{connections, counted};
use crate::diagnosis::RuleFinding;
use crate::headroom::{Headroom, headroom};
use crate::impact::{FAILURES_ONE_IN, GAP_MS};
use crate::progress::failed_in_part;
use crate::rules::{FindingClass, RuleTrait};
use crate::run_view::{LoadLevel, RunView};

/// Returns the verdict of a run, given its findings in order of gravity.
pub(crate) fn verdict(run: &RunView<'_>, found: &[RuleFinding]) -> String {
    let is_caveat = |(rule, _): &&RuleFinding| rule.has(RuleTrait::OtherPrograms);
    let caveat = found.iter().find(is_caveat).map(|(_, finding)| finding);
    let cause = found.first().map(|(_, first)| first).filter(|one| one.severity > Severity::Noted);
    let mut verdict = match (missed(run), cause) {
        (Some(missed), Some(cause)) => {
            format!("Missed: {missed}{}: {}", at_load(run, cause), cause_and_remedy(cause))
        }
        (Some(missed), None) => format!("Missed: {missed}; {}", no_cause(run)),
        (None, Some(cause)) => {
            let did = match cause.severity {
                Severity::Stopped if failed_in_part(run, &found[0]) => "Failed in part",
                Severity::Stopped => "Stopped",
                Severity::Slowed | Severity::Noted => "Slowed down",
            };
            let what = at_load(run, cause) + ": " + &cause_and_remedy(cause);
            format!("{did} on the {} side{what}", cause.side)
        }
        (None, None) => nothing_stopped_it(run, caveat),
    };
    // A caveat that follows from the cause, or is the cause, says nothing new.
    let is_new = |caveat: &&Finding| {
        caveat.follows_from.is_none() && !verdict.contains(&lower(caveat.first_sentence()))
    };
    if let Some(caveat) = caveat.filter(is_new) {
        verdict += &format!(" Besides, {}.", lower(caveat.first_sentence()));
    }
    if cause.is_none()
        && let Some((rule, next)) = found.iter().find(|found| !is_caveat(found))
    {
        let word = match rule.class_of(next) {
            FindingClass::Note => "Besides,",
            FindingClass::Cause | FindingClass::Consequence => "Next:",
        };
        verdict += &format!(" {word} {}", cause_and_remedy(next));
    }
    verdict
}

/// Returns the first missed threshold, and how many others were missed.
fn missed(run: &RunView<'_>) -> Option<String> {
    let (first, more) = run.thresholds.missed().split_first()?;
    Some(match more.len() {
        0 => first.describe(),
        1 => format!("{} (and one more threshold)", first.describe()),
        more => format!("{} (and {more} more thresholds)", first.describe()),
    })
}

fn cause_and_remedy(cause: &Finding) -> String {
    format!("{}; do: {}.", lower(cause.first_sentence()), cause.remedy)
}

/// Returns ` at ` and the load that the run had reached when the cause's first evidence was
/// recorded.
fn at_load(run: &RunView<'_>, cause: &Finding) -> String {
    let load = cause.began_ms().map(|at_ms| run.load_at(at_ms));
    let load = load.map(|load| show_load(load, run.summary)).filter(|load| !load.is_empty());
    load.map_or_else(String::new, |load| format!(" at {load}"))
}

/// Returns the end of a sentence about a missed threshold whose cause is unknown.
fn no_cause(run: &RunView<'_>) -> String {
    let of = headroom(run).map_or_else(String::new, |Headroom { of, .. }| format!(" ({of})"));
    match (show_errors(run.summary), doubt(run)) {
        (Some(errors), _) => format!("no cause was found for its {errors}{of}."),
        (None, Some(why)) => format!("no cause was found, but {why}."),
        (None, None) => format!("no cause was found{of}."),
    }
}

/// Returns the verdict of a run without a missed threshold and without a cause.
fn nothing_stopped_it(run: &RunView<'_>, caveat: Option<&Finding>) -> String {
    let headroom = headroom(run);
    let of = headroom.as_ref().map_or_else(String::new, |Headroom { of, .. }| format!(" ({of})"));
    if let Some(errors) = show_errors(run.summary) {
        return format!("No cause was found for its {errors}{of}.");
    }
    if let Some(why) = doubt(run) {
        return format!("No known cause stopped it, but {why}.");
    }
    // A run that was interrupted has neither met nor missed its plan.
    let is_over = run.summary.run.end != Some(RunEndReason::Interrupted);
    let (nothing, comma) = match (minor_errors(run.summary), is_over) {
        (Some(failed), true) => (format!("The plan was met but for {failed}"), ","),
        (Some(failed), false) => {
            (format!("The plan was met until the run was interrupted, but for {failed}"), ",")
        }
        (None, true) => ("Nothing stopped it: the plan was met".to_owned(), ""),
        (None, false) => ("Nothing stopped it before it was interrupted".to_owned(), ","),
    };
    match (headroom, caveat) {
        (Some(Headroom { is_others: true, .. }), Some(caveat)) => {
            format!("{nothing}, with no headroom: {}.", lower(caveat.first_sentence()))
        }
        (Some(Headroom { share_free, .. }), _) if share_free < HEADROOM_MIN => {
            format!("{nothing}, with hardly any headroom{of}.")
        }
        (Some(Headroom { share_free, .. }), _) => {
            format!("{nothing}{comma} with {:.0} % headroom{of}.", share_free * 100.0)
        }
        (None, _) => format!("{nothing}."),
    }
}

/// Returns a phrase about the errors that names the most frequent kind, or `None` if there are too
/// few errors to matter.
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

/// Returns a phrase about errors that are too few to matter.
fn minor_errors(summary: &Summary) -> Option<String> {
    let all = summary.errors.total().max(summary.users.failed);
    let kind = most_frequent_error(summary).map(|(kind, _)| kind);
    let kind = kind.map_or_else(String::new, |kind| format!(" ({kind})"));
    let of = counted(summary.attempts(), "attempt", "attempts");
    (all > 0).then(|| format!("{}{kind} in {of}", counted(all, "error", "errors")))
}

/// Returns a reason why a run without errors may still have missed its plan.
fn doubt(run: &RunView<'_>) -> Option<String> {
    let summary = run.summary;
    let ended = match summary.run.end {
        Some(RunEndReason::TargetLost) => Some("the target was lost before the run ended"),
        Some(RunEndReason::Failed) => Some("the generator failed before the run ended"),
        Some(RunEndReason::Unknown) => {
            Some("the run file's end reason is not known to this version")
        }
        Some(RunEndReason::Finished | RunEndReason::Interrupted) | None => None,
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
    if let Some(gap) = run.longest_gap().filter(|gap| gap.length_ms() >= GAP_MS) {
        return Some(format!(
            "no user got an answer for {}, from {:.1} s on",
            micros(gap.length_ms() * 1000),
            gap.from_ms as f64 / 1000.0
        ));
    }
    if let Some(missing) = summary.broadcast.as_ref().map(|broadcast| broadcast.counters.missing)
        && missing > 0
    {
        let what = counted(missing, "delivery of probes is", "deliveries of probes are");
        return Some(format!("{what} missing"));
    }
    if let Some(turns) = &summary.turns {
        let missed = turns.intended.saturating_sub(turns.started);
        if missed as f64 > UNSTARTED_SHARE_MAX * turns.intended as f64 {
            return Some(format!(
                "{} of its {} turns of `every` did not begin: their users waited for the server",
                count(missed as f64),
                count(turns.intended as f64)
            ));
        }
    }
    let connect = &summary.connect;
    if connect.intended == 0 {
        return Some("no user connected".to_owned());
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

/// Returns the most frequent kind of error and its count. Failed connects count by their own kinds.
fn most_frequent_error(summary: &Summary) -> Option<(&str, u64)> {
    let kinds = summary.errors.0.iter().filter(|(kind, _)| *kind != "connect");
    let kinds = kinds.chain(&summary.connect.failed.0);
    kinds.max_by_key(|(_, errors)| **errors).map(|(kind, errors)| (kind.as_str(), *errors))
}

/// The share of free capacity below which a run counts as having none: the next user would be one
/// too many.
const HEADROOM_MIN: f64 = 0.05;

/// The largest share of connects that may be unanswered at the end. A run ends while a few connects
/// are in progress; above this share, most have waited for longer.
const UNANSWERED_SHARE_MAX: f64 = 0.05;

/// The largest share of turns that may not have begun. Each user may end in the middle of a turn;
/// above this share, answers took longer than the plan has time for.
const UNSTARTED_SHARE_MAX: f64 = 0.2;

/// Formats a load, such as `12.0k connections and 3.20k/s connects`.
fn show_load(load: LoadLevel, summary: &Summary) -> String {
    let mut parts = Vec::new();
    if load.connections > 0 {
        parts.push(connections(load.connections));
    }
    let messages = format!("{}s", summary.unit_of_work());
    for (per_second, what) in [(load.connects_per_s, "connects"), (load.messages_per_s, &messages)]
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

/// Returns the sentence so that it can continue another one: its first letter is lower case, unless
/// it begins an acronym.
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
    use throng_report::{AnswerGap, Metric, ProcessMetric, Threshold};

    use super::*;
    use crate::diagnose;
    use crate::rules::fixture::Run;

    #[test]
    fn turns_that_did_not_begin_are_a_plan_that_was_not_met() {
        let turns = |started| {
            Run::quiet()
                .loaded(move |load, second| {
                    load.counters.turns_intended = 100 * second;
                    load.counters.turns_started = started * second;
                })
                .verdict()
        };
        assert!(turns(99).starts_with("Nothing stopped it: the plan was met"), "{}", turns(99));
        let expected =
            "No known cause stopped it, but 600 of its 1k turns of `every` did not begin";
        assert!(turns(40).starts_with(expected), "{}", turns(40));
    }

    #[test]
    fn the_verdict_names_cause_side_load_and_remedy() {
        let run = Run::quiet()
            .with(Metric::LISTENER_BACKLOG, 128)
            .growing(Metric::TCPEXT_LISTEN_OVERFLOWS, 0, 40, 2)
            .loaded(|load, second| load.connect_failed.add("timeout", u64::from(second > 8)));
        let verdict = run.verdict();
        let begin = "Failed in part on the server side at 600 connections, 200/s connects and 1k/s \
                     messages: the server's accept queue, which holds 129, overflowed 320 times; \
                     do: throng serve --backlog";
        assert!(verdict.starts_with(begin), "{verdict}");
        let stopped = run.loaded(|load, _| load.counters.connected = 600);
        assert!(stopped.verdict().starts_with("Stopped on the server side"));
    }

    #[test]
    fn a_plan_that_was_met_is_told_with_its_headroom() {
        assert_eq!(
            Run::quiet().verdict(),
            "Nothing stopped it: the plan was met with 85 % headroom (the CPUs of this machine \
             were busy for 15 % at most)."
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
            run.verdict()
        };
        let verdict = waiting(4_900_000);
        let begin = "Slowed down on the server side at 1k connections and 1k/s messages: the \
                     server was slow: 400 users were waiting for an answer when it ended, one of \
                     them for 4.90 s";
        assert!(verdict.starts_with(begin), "{verdict}");
        assert!(waiting(300_000).starts_with("Nothing stopped it"), "{}", waiting(300_000));
    }

    #[test]
    fn a_run_that_is_not_to_be_believed_is_not_praised() {
        let late = Run::quiet().loaded(|load, second| {
            load.counters.users_intended = 260 * second.min(5);
        });
        let verdict = late.verdict();
        assert!(
            verdict.starts_with(
                "No known cause stopped it, but the run is invalid: the generator did not start"
            ),
            "{verdict}"
        );
        let failed = Run::quiet().loaded(|load, second| {
            load.errors.add("send_failed", 3 * second);
            load.errors.add("not_joined", second);
        });
        let verdict = failed.verdict();
        assert!(
            verdict.starts_with(
                "No cause was found for its 40 errors, 30 of them send_failed (the CPUs"
            ),
            "{verdict}"
        );
    }

    #[test]
    fn what_ended_early_has_not_met_its_plan() {
        let (history, mut summary) = Run::quiet().whole();
        let mut check = |end, begin: &str| {
            summary.run.end = Some(end);
            let verdict = diagnose(&history, &summary, &[]).verdict;
            assert!(verdict.starts_with(begin), "{verdict}");
        };
        check(RunEndReason::Finished, "Nothing stopped it: the plan was met with 85 % headroom");
        check(
            RunEndReason::Interrupted,
            "Nothing stopped it before it was interrupted, with 85 % headroom",
        );
        check(
            RunEndReason::Failed,
            "No known cause stopped it, but the generator failed before the run ended.",
        );
        check(RunEndReason::TargetLost, "No known cause stopped it, but the target was lost");
    }

    #[test]
    fn unanswered_connects_are_reported() {
        let hanging = |each_second: u64| {
            Run::quiet()
                .loaded(|load, second| {
                    let hang = each_second * second.min(5);
                    load.counters.connects_ok -= hang;
                    load.counters.connected -= hang;
                })
                .verdict()
        };
        let met = "Nothing stopped it: the plan was met";
        assert!(hanging(10).starts_with(met), "under way: {}", hanging(10));
        let begin = "No known cause stopped it, but";
        let verdict = hanging(20);
        assert!(
            verdict.starts_with(&format!("{begin} 100 of its 1k connects had no answer")),
            "{verdict}"
        );
        let verdict = hanging(200);
        assert!(
            verdict.starts_with(&format!("{begin} 1k of its 1k connects had no answer")),
            "{verdict}"
        );
    }

    #[test]
    fn one_error_in_very_many_is_no_reason_to_say_nothing_else() {
        let failing = |errors: u64, messages: u64| {
            Run::quiet()
                .loaded(|load, second| {
                    load.counters.messages_sent = messages * second;
                    load.counters.messages_answered = messages * second;
                    load.errors.add("send_failed", if second == 10 { errors } else { 0 });
                })
                .verdict()
        };
        let verdict = failing(9, 1_000);
        assert!(
            verdict.starts_with(
                "The plan was met but for 9 errors (send_failed) in 11k attempts, with 85 % \
                 headroom"
            ),
            "{verdict}"
        );
        let verdict = failing(11, 1_000);
        assert!(
            verdict.starts_with("No cause was found for its 11 errors, 11 of them"),
            "{verdict}"
        );
        let verdict = failing(1, 0);
        assert!(
            verdict.starts_with("No cause was found for its only error, send_failed"),
            "{verdict}"
        );
    }

    /// Returns the verdict of a run that is judged by thresholds.
    fn judged(run: &Run, thresholds: &[&str]) -> String {
        let (history, summary) = run.whole();
        let judge = |text: &&str| text.parse::<Threshold>().unwrap().judge(&summary);
        let judgements: Vec<_> = thresholds.iter().map(judge).collect();
        diagnose(&history, &summary, &judgements).verdict
    }

    #[test]
    fn a_missed_threshold_comes_first_with_its_cause() {
        let slow =
            Run::quiet().growing(ProcessMetric::CPU_US.server, 0, 20_000, 0).loaded(|load, _| {
                load.message.clear();
                load.message.record_n(51_200, 1_000);
            });
        assert!(slow.verdict().starts_with("Nothing stopped it"), "below what a person notices");
        let verdict = judged(&slow, &["message.p99 < 10ms", "connect.p99 < 1s"]);
        let begin = "Missed: message.p99 51.2 ms, asked < 10ms at 200 connections, 200/s connects \
                     and 1k/s messages: the server was slow: messages took 51.2 ms (p99 of \
                     the worst interval) while the server used 0.02 of the 2 CPUs that it \
                     may use; do: find where";
        assert!(verdict.starts_with(begin), "{verdict}");
        let verdict =
            judged(&slow, &["message.p99 < 10ms", "message.p50 < 1ms", "message.max < 20ms"]);
        assert!(
            verdict.starts_with(
                "Missed: message.p99 51.2 ms, asked < 10ms (and 2 more thresholds) at"
            ),
            "{verdict}"
        );
        assert!(judged(&slow, &["message.p99 < 60ms"]).starts_with("Nothing stopped it"));
    }

    #[test]
    fn a_missed_threshold_without_a_cause_says_so() {
        let quiet = Run::quiet();
        assert_eq!(
            judged(&quiet, &["message.rate_mean > 5000/s"]),
            "Missed: message.rate_mean 1k/s, asked > 5000/s; no cause was found (the CPUs of this \
             machine were busy for 15 % at most)."
        );
        let verdict = judged(&quiet, &["push.p99 < 1s"]);
        assert!(
            verdict.starts_with("Missed: push.p99 could not be measured, asked < 1s; no cause"),
            "{verdict}"
        );
        let failing =
            Run::quiet().loaded(|load, second| load.errors.add("not_joined", second / 10));
        assert!(
            failing
                .verdict()
                .starts_with("The plan was met but for 1 error (not_joined) in 11k attempts")
        );
        let verdict = judged(&failing, &["errors == 0"]);
        assert!(
            verdict.starts_with("Missed: errors 1, asked == 0; no cause was found"),
            "{verdict}"
        );
    }

    #[test]
    fn a_second_without_any_answer_is_reported() {
        let run = Run::quiet().loaded(|load, second| {
            if second == 6 {
                // The generator was late too, so that no rule names a culprit.
                load.lag.record_n(1_200_000, 1);
                load.answer_gap = Some(AnswerGap { from_ms: 4_100, to_ms: 5_400 });
            }
        });
        let verdict = run.verdict();
        assert!(
            verdict.starts_with(
                "No known cause stopped it, but no user got an answer for 1.30 s, from 4.1 s on"
            ),
            "{verdict}"
        );
    }
}
