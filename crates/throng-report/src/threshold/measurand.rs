//! What a threshold and a comparison measure: a metric and the unit of its values.

use std::ops::Range;

use throng_base::units::{self, UnitError};

use super::metric::{self, Measurement, Metric};
use super::unit::Unit;
use super::{Statistic, ThresholdError};
use crate::Summary;

/// A name that a threshold may begin with, and the unit of its values.
#[derive(Clone, Debug)]
pub struct Measurand {
    metric: Metric,
    unit: Unit,
}

impl Measurand {
    /// Returns the quantity `name`; `errors.share` is the share of the attempts. `span` is the
    /// place of the name in the text that the error points at.
    ///
    /// # Errors
    /// No threshold may begin with `name`.
    pub fn named(name: &str, span: &Range<usize>) -> Result<Self, ThresholdError> {
        if name == SHARE_OF_ERRORS {
            return Ok(Self { metric: Metric::Errors, unit: Unit::Share });
        }
        Ok(Self::of(metric::of_name(name, span)?, ""))
    }

    /// Returns the quantity of a metric in the unit in which `limit` is written.
    pub(super) fn of(metric: Metric, limit: &str) -> Self {
        let unit = metric.unit(limit);
        Self { metric, unit }
    }

    /// Returns the latency, `message` or `step.greeting`, and the statistic, if it is of a latency.
    pub fn latency(&self) -> Option<(String, Statistic)> {
        self.metric.latency()
    }

    /// Returns the value that a threshold compares: a latency includes the waits that no answer
    /// ended. `None` for what was not measured.
    pub fn measured(&self, summary: &Summary) -> Option<f64> {
        self.measurement(summary).value()
    }

    /// Returns what the run measured.
    pub(super) fn measurement(&self, summary: &Summary) -> Measurement {
        self.metric.measured(self.unit, summary)
    }

    /// Returns the name of the step or transaction that is measured.
    pub(super) fn step(&self) -> Option<&str> {
        self.metric.step()
    }

    /// Returns the name of the class whose users are measured.
    pub(super) fn class(&self) -> Option<&str> {
        self.metric.class()
    }

    /// Returns the unit of the values: `us`, `count`, `per_second`, `share` (1 is 100 %) or
    /// `bytes`.
    pub fn unit(&self) -> &'static str {
        self.unit.name()
    }

    /// Reads an amount in the unit of the values, such as `5ms`.
    ///
    /// # Errors
    /// `text` is no amount, or of another unit.
    pub fn parse_amount(&self, text: &str) -> Result<f64, UnitError> {
        self.unit.parse(text)
    }

    /// Returns a measurement as text, in the digits of a limit.
    pub(super) fn show_measurement(&self, measured: &Measurement) -> String {
        match measured {
            Measurement::Value(value) => self.unit.show(*value),
            Measurement::AtLeast(value) => format!("at least {}", self.unit.show(*value)),
            Measurement::Unanswered { count, us_most } => {
                let most = units::brief_micros(*us_most);
                format!("none of {count} was answered, the longest wait was {most}")
            }
            Measurement::Nothing => "nothing".to_owned(),
        }
    }

    /// Returns a value as text, in three digits.
    pub fn show(&self, value: f64) -> String {
        match self.unit {
            Unit::Count if value >= 0.0 => units::brief_count(value),
            Unit::Share => units::brief_share(value),
            unit => unit.show(value),
        }
    }

    /// Returns a difference of two values as text, with its sign. That of shares is in points.
    pub fn show_change(&self, change: f64) -> String {
        let sign = if change < 0.0 { "-" } else { "+" };
        let size = self.show(change.abs());
        match self.unit {
            Unit::Share => format!("{sign}{} pp", size.trim_end_matches(" %")),
            _ => format!("{sign}{size}"),
        }
    }
}

/// The name of the errors as a share of the attempts; a threshold writes `errors < 1%`.
const SHARE_OF_ERRORS: &str = "errors.share";
