//! The step from the missed thresholds to the one that a finding explains.

use throng_report::{Severity, Tally};

use crate::counted::counted;
use crate::impact::is_time_out;
use crate::missed_thresholds::MissedThreshold;
use crate::rules::{Rule, RuleFinding, RuleTrait};
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
        let errors = &run.summary.errors;
        let mut causes = found.iter().filter(|(_, finding)| finding.severity > Severity::Noted);
        let gravest = causes.clone().next();
        let of_gravest =
            gravest.and_then(|(rule, _)| all.iter().find(|missed| explains(rule, missed, errors)));
        if let Some(missed) = of_gravest {
            return Some(Self { missed, cause: gravest });
        }
        let missed = all.first()?;
        Some(Self { missed, cause: causes.find(|(rule, _)| explains(rule, missed, errors)) })
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

/// Reports whether a finding of `rule` can be the cause: a latency is missed by what delays
/// answers, errors by what makes them fail. A count or a rate is missed by either.
fn explains(rule: &Rule, missed: &MissedThreshold, errors: &Tally) -> bool {
    if missed.latency.is_some() && missed.value.is_some() {
        return !rule.has(RuleTrait::DelaysNothing);
    }
    if !missed.is_about_errors() && !missed.is_about_status_share() {
        return true;
    }
    let is_limited = |kind: &str| match missed.name.strip_prefix("errors.") {
        Some(limited) => kind == limited,
        None => true,
    };
    let gave_up = || errors.0.keys().any(|kind| is_time_out(kind) && is_limited(kind));
    !rule.has(RuleTrait::OnlyDelays) || (!missed.is_about_status_share() && gave_up())
}

/// The most names of other missed thresholds.
const OTHERS_SHOWN: usize = 3;
