//! The figures of a step with a name, or of a transaction: `step.greeting.errors`.

use super::unit::Unit;

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
