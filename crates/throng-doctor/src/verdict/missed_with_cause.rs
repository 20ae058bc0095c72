//! The step from the missed thresholds to the one that a finding explains.

use throng_measure::{ErrorKind, Finding, Severity, is_of_family};
use throng_report::Summary;

use crate::counted::counted;
use crate::impact::is_time_out;
use crate::missed_thresholds::MissedThreshold;
use crate::rules::{RuleFinding, RuleTrait};
use crate::run_view::RunView;

/// A missed threshold and the gravest finding that explains it.
pub(super) struct MissedWithCause<'a> {
    missed: &'a MissedThreshold,
    /// `None` if no finding explains it.
    pub(super) cause: Option<&'a RuleFinding>,
}

impl<'a> MissedWithCause<'a> {
    /// Returns the first threshold that the gravest finding explains. If it explains none, another
    /// finding may explain the first threshold.
    pub(super) fn of(run: &RunView<'a>, found: &'a [RuleFinding]) -> Option<Self> {
        let all = run.thresholds.missed();
        let summary = run.summary;
        let mut causes = found.iter().filter(|(_, finding)| finding.severity > Severity::Noted);
        let gravest = causes.clone().next();
        let of_gravest =
            gravest.and_then(|cause| all.iter().find(|missed| explains(cause, missed, summary)));
        if let Some(missed) = of_gravest {
            return Some(Self { missed, cause: gravest });
        }
        let missed = all.first()?;
        Some(Self { missed, cause: causes.find(|cause| explains(cause, missed, summary)) })
    }

    /// Reports whether the threshold is on errors.
    pub(super) fn is_about_errors(&self) -> bool {
        self.missed.is_about_errors()
    }

    /// Describes the threshold, and names the others that were missed.
    pub(super) fn describe(&self, run: &RunView<'_>) -> String {
        let others = run.thresholds.missed().iter().filter(|other| *other != self.missed);
        let names: Vec<_> = others.map(|other| other.name.as_str()).collect();
        let shown = names.get(..OTHERS_SHOWN).unwrap_or(&names);
        match (names.len(), names.len() - shown.len()) {
            (0, _) => self.missed.describe(),
            (_, 0) => format!("{} (missed too: {})", self.missed.describe(), shown.join(", ")),
            (_, more) => format!(
                "{} (missed too: {} and {})",
                self.missed.describe(),
                shown.join(", "),
                counted(more as u64, "other", "others")
            ),
        }
    }
}

/// Reports whether a finding can be the cause: a latency is missed by what delays answers, errors
/// by what makes them fail. A count or a rate is missed by either.
fn explains((rule, finding): &RuleFinding, missed: &MissedThreshold, summary: &Summary) -> bool {
    if missed.latency.is_some() && missed.value.is_some() {
        return !rule.has(RuleTrait::DelaysNothing);
    }
    if missed.is_about_status_share() {
        return !rule.has(RuleTrait::OnlyDelays);
    }
    if !missed.is_about_errors() {
        return true;
    }
    let limited = LimitedFailures::of(missed, summary);
    match rule.has(RuleTrait::OnlyDelays) {
        true => limited.are_time_outs(),
        false => limited.can_be_of(finding),
    }
}

/// The failures of a run that a threshold limits, by kind.
struct LimitedFailures<'a> {
    by_kind: Vec<(&'a str, u64)>,
    /// True if the threshold names a kind.
    is_of_kind: bool,
}

impl<'a> LimitedFailures<'a> {
    fn of(missed: &MissedThreshold, summary: &'a Summary) -> Self {
        let name = missed.name.as_str();
        let of_connects =
            ["connect.failed", "errors.connect"].iter().find_map(|all| name.strip_prefix(all));
        let kind = match of_connects {
            Some(rest) => rest.strip_prefix('.'),
            None => name.strip_prefix("errors."),
        };
        // Failed connects are one kind of errors there.
        let errors = summary.errors.0.iter().filter(|(kind, _)| *kind != ErrorKind::Connect.name());
        let errors = errors.filter(|_| of_connects.is_none());
        let all = errors.chain(&summary.connect.failed.0);
        let limits = |one: &str| kind.is_none_or(|kind| is_of_family(one, kind));
        let by_kind = all.filter(|(one, _)| limits(one)).map(|(one, n)| (one.as_str(), *n));
        Self { by_kind: by_kind.collect(), is_of_kind: kind.is_some() }
    }

    /// Reports whether at least half of them are waits that were given up: no delay makes others.
    fn are_time_outs(&self) -> bool {
        let total = |is_one: fn(&str) -> bool| {
            let counted = self.by_kind.iter().filter(|(kind, _)| is_one(kind));
            counted.map(|(_, count)| count).sum::<u64>()
        };
        let given_up = total(is_time_out);
        given_up > 0 && given_up * 2 >= total(|_| true)
    }

    /// Reports whether a finding can be about them: its evidence names no kinds, or one of theirs.
    fn can_be_of<'f>(&self, finding: &'f Finding) -> bool {
        let kind = |counter: &'f str| {
            counter.strip_prefix("errors.").or(counter.strip_prefix("connect_failed."))
        };
        let counters = finding.evidence.iter().map(|evidence| evidence.counter.as_str());
        let mut named = counters.filter_map(kind).peekable();
        let is_theirs = |name| self.by_kind.iter().any(|(kind, _)| *kind == name);
        !self.is_of_kind || named.peek().is_none() || named.any(is_theirs)
    }
}

/// The most names of other missed thresholds.
const OTHERS_SHOWN: usize = 3;
