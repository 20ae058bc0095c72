//! The figures of a step with a name, or of a transaction: `step.greeting.errors`.

use super::metric::{Measurement, Unit};
use crate::Summary;
use crate::summary::StepSummary;

/// A figure of the steps of a name that is no latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepFigure {
    Ok,
    Errors,
    Unanswered,
    Waiting,
    RateMean,
}

impl StepFigure {
    pub(super) fn named(name: &str) -> Option<Self> {
        STEP_FIGURES.iter().find(|(known, _)| *known == name).map(|(_, figure)| *figure)
    }

    /// Returns the unit, which for errors depends on how the limit is written.
    pub(super) fn unit(self, limit: &str) -> Unit {
        match self {
            Self::RateMean => Unit::Rate,
            Self::Errors if limit.ends_with('%') => Unit::Share,
            Self::Ok | Self::Errors | Self::Unanswered | Self::Waiting => Unit::Count,
        }
    }

    pub(super) fn measured(self, unit: Unit, step: Option<&StepSummary>) -> Measurement {
        let Some(step) = step else { return Measurement::Nothing };
        let count = match self {
            Self::RateMean => return step.rate_mean.into(),
            Self::Errors if unit == Unit::Share => return step.error_share().into(),
            Self::Ok => step.ok,
            Self::Errors => step.errors,
            Self::Unanswered => step.unanswered_us.count,
            Self::Waiting => step.waiting,
        };
        Measurement::Value(count as f64)
    }
}

/// Returns the steps of this name in a summary.
pub(super) fn step_of<'a>(summary: &'a Summary, name: &str) -> Option<&'a StepSummary> {
    summary.steps.iter().find(|step| step.name == name)
}

/// Divides `step.greeting.p95` into the name of the step and its figure.
pub(super) fn divide(name: &str) -> Option<(&str, &str)> {
    let (step, figure) = name.strip_prefix("step.")?.split_once('.')?;
    (!step.is_empty()).then_some((step, figure))
}

/// The figures by name.
pub(super) const STEP_FIGURES: [(&str, StepFigure); 5] = [
    ("ok", StepFigure::Ok),
    ("errors", StepFigure::Errors),
    ("unanswered", StepFigure::Unanswered),
    ("waiting", StepFigure::Waiting),
    ("rate_mean", StepFigure::RateMean),
];
