//! The first lines of every report of a run.

use std::fmt::Write as _;

use throng_measure::Diagnosis;

use super::outcome::{measurement, outcome};
use crate::summary::Summary;
use crate::threshold::Judgement;

/// Returns the first lines of every report: the cause or that there is none, what became of the
/// run, the measurement's grade with at most `reasons_max` reasons, the result, and what to do.
pub(super) fn head(
    summary: &Summary,
    judgements: &[Judgement],
    diagnosis: Option<&Diagnosis>,
    reasons_max: usize,
) -> String {
    let mut text = String::new();
    let mut said = "";
    if let Some(diagnosis) = diagnosis {
        if let Some(why) = &summary.run.incomplete {
            _ = write!(text, "Incomplete: {why}. ");
        }
        let Diagnosis { verdict, headline, effect, .. } = diagnosis;
        said = if headline.is_empty() { verdict } else { headline };
        _ = writeln!(text, "{said}");
        if !effect.is_empty() {
            _ = writeln!(text, "{effect}");
        }
    }
    if let Some(measurement) = measurement(summary, reasons_max, said) {
        _ = writeln!(text, "{measurement}");
    }
    _ = writeln!(text, "{}", outcome(summary, judgements));
    if let Some(Diagnosis { remedy, .. }) = diagnosis.filter(|it| !it.remedy.is_empty()) {
        _ = writeln!(text, "Do: {remedy}");
    }
    text
}
