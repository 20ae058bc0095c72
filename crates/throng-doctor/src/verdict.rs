//! The first line of a report: what was missed, what stopped the run, or that nothing did.

mod missed_with_cause;
#[cfg(test)]
mod tests;

use throng_measure::runfile::RunEndReason;
use throng_measure::{ErrorKind, Finding, Grade, Severity};
use throng_report::Summary;
use throng_report::render::{count, micros, rate};

use crate::counted::{connections, counted};
use crate::finding_machines::at_machines;
use crate::headroom::{Headroom, headroom};
use crate::impact::{FAILURES_ONE_IN, GAP_MS};
use crate::progress::failed_in_part;
use crate::rules::{FindingClass, RuleFinding, RuleTrait};
use crate::run_view::{LoadLevel, RunView};
use missed_with_cause::MissedWithCause;

/// The verdict of a run, whole and in its parts.
pub(crate) struct Verdict<'a> {
    /// Everything in a line.
    pub(crate) text: String,
    pub(crate) parts: VerdictParts,
    /// The finding that the verdict names as the cause of what was missed, or of what became of
    /// the run.
    pub(crate) cause: Option<&'a Finding>,
}

/// The parts of a verdict, for a screen that has a line for each.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct VerdictParts {
    /// The cause in a sentence, or that there is none.
    pub(crate) headline: String,
    /// What became of the run and at which load; empty if the headline says it.
    pub(crate) effect: String,
    /// What to do about the cause; empty if there is none.
    pub(crate) remedy: String,
}

/// Returns the verdict of a run, given its findings in order of gravity.
pub(crate) fn verdict<'a>(run: &RunView<'a>, found: &'a [RuleFinding]) -> Verdict<'a> {
    let is_caveat = |(rule, _): &&RuleFinding| rule.has(RuleTrait::OtherPrograms);
    let caveat = found.iter().find(is_caveat).map(|(_, finding)| finding);
    let gravest = found.first().filter(|(_, first)| first.severity > Severity::Noted);
    let missed = MissedWithCause::of(run, found);
    let first = missed.as_ref().map_or(gravest, |missed| missed.cause);
    let cause = first.map(|(_, cause)| cause);
    // A finding that is graver than the cause of the missed threshold.
    let graver = gravest.filter(|(_, gravest)| cause != Some(gravest));
    let leads = graver.filter(|(_, graver)| {
        missed.is_some() && graver.severity == Severity::Stopped && mostly_failed(run)
    });
    let (mut text, parts) = begin(run, found, missed.as_ref(), cause, leads, caveat);
    let mut remarks = Vec::new();
    // A caveat that follows from the cause, or is the cause, says nothing new.
    let is_new = |caveat: &&Finding| {
        caveat.follows_from.is_none() && !text.contains(&lower(caveat.first_sentence()))
    };
    if let Some(caveat) = caveat.filter(is_new) {
        remarks.push(format!("{}.", lower(caveat.first_sentence())));
    }
    let mut next = None;
    if let Some((_, graver)) = graver.filter(|_| leads.is_none()) {
        remarks.push(cause_and_remedy(run, graver));
    } else if let Some(beside) = first.and_then(|first| beside_delays(first, found)) {
        next = Some(cause_and_remedy(run, beside));
    } else if graver.is_none()
        && cause.is_none()
        && let Some((rule, other)) = found.iter().find(|found| !is_caveat(found))
    {
        match rule.class_of(other) {
            FindingClass::Note => remarks.push(cause_and_remedy(run, other)),
            FindingClass::Cause | FindingClass::Consequence => {
                next = Some(cause_and_remedy(run, other));
            }
        }
    }
    for (word, remark) in ["Besides,", "Also,"].into_iter().zip(remarks) {
        text += &format!(" {word} {remark}");
    }
    if let Some(next) = next {
        text += &format!(" Next: {next}");
    }
    Verdict { text, parts, cause }
}

/// Returns the verdict without its remarks, as a line and in its parts.
fn begin(
    run: &RunView<'_>,
    found: &[RuleFinding],
    missed: Option<&MissedWithCause<'_>>,
    cause: Option<&Finding>,
    leads: Option<&RuleFinding>,
    caveat: Option<&Finding>,
) -> (String, VerdictParts) {
    let alone = |text: String| {
        let parts = VerdictParts { headline: text.clone(), ..VerdictParts::default() };
        (text, parts)
    };
    let (text, mut parts) = match (missed, cause) {
        (Some(missed), Some(cause)) => {
            let missed = format!("Missed: {}{}", missed.describe(run), at_load(run, cause));
            let text = format!("{missed}: {}", cause_and_remedy(run, cause));
            (text, parts_of(run, cause, missed))
        }
        (Some(missed), None) => {
            let no_cause = no_cause(run, missed.is_about_errors());
            alone(format!("Missed: {}; {no_cause}", missed.describe(run)))
        }
        (None, Some(cause)) => {
            let became = became(run, &found[0]);
            (format!("{became}: {}", cause_and_remedy(run, cause)), parts_of(run, cause, became))
        }
        (None, None) => alone(nothing_stopped_it(run, caveat)),
    };
    // What most users got comes first, though a threshold is about the others.
    let Some(leads) = leads else { return (text, parts) };
    let became = became(run, leads);
    let whole = format!("{became}: {} {text}", cause_and_remedy(run, &leads.1));
    let missed = match parts.effect.strip_suffix('.') {
        Some(effect) => format!("{effect}: {}", lower(&parts.headline)),
        None => parts.headline,
    };
    parts = parts_of(run, &leads.1, became);
    parts.effect += &format!(" {missed}");
    (whole, parts)
}

/// Returns the parts of a verdict with a cause.
fn parts_of(run: &RunView<'_>, cause: &Finding, effect: String) -> VerdictParts {
    VerdictParts {
        headline: format!("{}{}.", cause.first_sentence(), at_machines(run, cause)),
        effect: format!("{effect}."),
        remedy: cause.remedy.clone(),
    }
}

/// Returns the first finding that has nothing to do with the delays of the generator or of other
/// programs, if the cause is one of these.
fn beside_delays<'a>((cause, _): &RuleFinding, found: &'a [RuleFinding]) -> Option<&'a Finding> {
    let is_delay = cause.has(RuleTrait::OwnDelays) || cause.has(RuleTrait::OtherPrograms);
    let beside = found.iter().find(|(rule, _)| rule.has(RuleTrait::NotOfDelays));
    beside.filter(|_| is_delay).map(|(_, finding)| finding)
}

/// Returns a phrase that says what became of the run, where, and at which load.
fn became(run: &RunView<'_>, found: &RuleFinding) -> String {
    let (_, cause) = found;
    let (did, at) = (what_became_of_it(run, found), at_load(run, cause));
    format!("{did} on the {} side{at}", cause.side)
}

/// Reports whether at least half of what users attempted failed.
fn mostly_failed(run: &RunView<'_>) -> bool {
    run.summary.errors.total() * 2 >= run.summary.attempts().max(1)
}

/// Returns the first words of a verdict: what became of a run with this finding.
fn what_became_of_it(run: &RunView<'_>, found: &RuleFinding) -> &'static str {
    let (rule, finding) = found;
    if rule.has(RuleTrait::HoldsUsers) {
        return "Held up";
    }
    match finding.severity {
        Severity::Slowed | Severity::Noted if rule.has(RuleTrait::LosesMessages) => {
            "Failed in part"
        }
        Severity::Slowed | Severity::Noted => "Slowed down",
        Severity::Stopped if !failed_in_part(run, found) => "Stopped",
        Severity::Stopped if something_failed(run) => "Failed in part",
        Severity::Stopped => "Disturbed",
    }
}

/// Reports whether an error was counted, or a delivery of a probe is missing.
fn something_failed(run: &RunView<'_>) -> bool {
    let summary = run.summary;
    let missing = summary.broadcast.as_ref().map_or(0, |broadcast| broadcast.counters.missing);
    let failed = summary.connect.failed.total() + summary.users.failed;
    summary.errors.total() + failed + missing > 0
}

/// Returns the first missed threshold, and names the others.
pub(crate) fn missed(run: &RunView<'_>) -> Option<String> {
    Some(MissedWithCause::of(run, &[])?.describe(run))
}

fn cause_and_remedy(run: &RunView<'_>, cause: &Finding) -> String {
    let at = at_machines(run, cause);
    format!("{}{at}; do: {}.", lower(cause.first_sentence()), cause.remedy)
}

/// Returns ` at ` and the load that the run had reached when the cause's first evidence was
/// recorded.
fn at_load(run: &RunView<'_>, cause: &Finding) -> String {
    let load = cause.began_ms().map(|at_ms| run.load_at(at_ms));
    let load = load.map(|load| show_load(load, run.summary)).filter(|load| !load.is_empty());
    load.map_or_else(String::new, |load| format!(" at {load}"))
}

/// Returns the end of a sentence about a missed threshold whose cause is unknown. One on errors is
/// missed by errors, however few, and not by what makes the run doubtful.
fn no_cause(run: &RunView<'_>, is_about_errors: bool) -> String {
    let headroom = headroom(run);
    let of = headroom.as_ref().map_or_else(String::new, |Headroom { of, .. }| format!(" ({of})"));
    let full = headroom
        .filter(|room| room.is_of_cpus && !room.is_others && room.share_free < HEADROOM_MIN);
    let errors = match is_about_errors {
        true => name_errors(run.summary),
        false => show_errors(run.summary),
    };
    match (errors, doubt(run)) {
        (Some(errors), _) => format!("{NO_CAUSE} for its {errors}{of}."),
        (None, Some(why)) => format!("{NO_CAUSE}, but {why}."),
        (None, None) => match full {
            Some(Headroom { of, .. }) => format!(
                "most likely for lack of CPU time: {of}; do: run it with less load, or on more \
                 CPUs."
            ),
            None => format!("{NO_CAUSE}{of}."),
        },
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

/// Returns a phrase about the errors, or `None` if there are too few errors to matter.
fn show_errors(summary: &Summary) -> Option<String> {
    let is_rare = summary.errors.total().saturating_mul(FAILURES_ONE_IN) < summary.attempts();
    name_errors(summary).filter(|_| !is_rare)
}

/// Returns a phrase about the errors that names the most frequent kind.
fn name_errors(summary: &Summary) -> Option<String> {
    let all = summary.errors.total();
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
        Some(RunEndReason::Unreached) => Some("every connect was refused, until the run gave up"),
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
    let kinds = summary.errors.0.iter().filter(|(kind, _)| *kind != ErrorKind::Connect.name());
    let kinds = kinds.chain(&summary.connect.failed.0);
    kinds.max_by_key(|(_, errors)| **errors).map(|(kind, errors)| (kind.as_str(), *errors))
}

/// The words of a verdict on a missed threshold that no finding explains.
const NO_CAUSE: &str = "no cause was found";

/// The share of free capacity below which a run counts as having none: the next user would be one
/// too many.
const HEADROOM_MIN: f64 = 0.05;

/// The largest share of connects that may be unanswered at the end. A run ends while a few connects
/// are in progress; above this share, most have waited for longer.
const UNANSWERED_SHARE_MAX: f64 = 0.05;

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
