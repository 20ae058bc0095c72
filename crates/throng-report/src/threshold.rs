//! Thresholds: `connect.p99 < 100ms`, `errors < 0.01%`, `connected_most >= 100k`.
//!
//! A threshold is a name from the summary, a comparison, and a value in the unit of the name
//! ([`names`] lists them). A latency has any percentile: `p95`, `p99.99`. `errors` is compared as a
//! count, or with `%` as a share of all attempted connects and messages. A value that was not
//! measured meets no threshold.

mod error_kinds;
mod metric;
mod mistake;
mod statistic;
mod step_metric;
mod unit;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use throng_base::units::{self, UnitError};

use crate::Summary;
use metric::{LATENCIES, Measurement, Metric};
use mistake::NameMistake;
use unit::Unit;

pub use metric::{names, value};
pub use statistic::Statistic;

/// A condition that a run should meet. Parsed with [`str::parse`].
#[derive(Clone, Debug)]
pub struct Threshold {
    text: String,
    metric: Metric,
    unit: Unit,
    comparison: Comparison,
    limit: f64,
}

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
        let metric = named(name, span)?;
        let unit = metric.unit("");
        Ok(Self { metric, unit })
    }

    /// Returns the latency, `message` or `step.greeting`, and the statistic, if it is of a latency.
    pub fn latency(&self) -> Option<(String, Statistic)> {
        self.metric.latency()
    }

    /// Returns the value that a threshold compares: a latency includes the waits that no answer
    /// ended. `None` for what was not measured.
    pub fn measured(&self, summary: &Summary) -> Option<f64> {
        self.metric.measured(self.unit, summary).value()
    }

    /// Returns the unit of the values: `us`, `count`, `per_second`, `share` (1 is 100 %) or
    /// `bytes`.
    pub fn unit(&self) -> &'static str {
        match self.unit {
            Unit::Micros => "us",
            Unit::Count => "count",
            Unit::Rate => "per_second",
            Unit::Share => "share",
            Unit::Bytes => "bytes",
        }
    }

    /// Reads an amount in the unit of the values, such as `5ms`.
    ///
    /// # Errors
    /// `text` is no amount, or of another unit.
    pub fn parse_amount(&self, text: &str) -> Result<f64, UnitError> {
        self.unit.parse(text)
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

/// The result of comparing a run with a threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The threshold as it was written.
    pub threshold: String,
    /// Whether the threshold was met.
    pub met: bool,
    /// The measured value: microseconds, bytes, a count, a rate per second or a share (1 = 100 %).
    /// `null` if nothing was measured.
    pub value: Option<f64>,
    /// The measured value as text: `3.40 ms`.
    pub measured: String,
}

/// The reason why a text is not a threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThresholdError {
    /// The bytes of the text at fault.
    pub span: Range<usize>,
    /// The problem with these bytes.
    pub problem: String,
    /// The text that would be valid.
    pub expected: String,
    /// The name that was probably meant.
    pub suggestion: Option<String>,
}

impl Threshold {
    /// Returns the threshold as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the latency, `message` or `step.greeting`, and the statistic that the threshold
    /// compares, if it compares a latency.
    pub fn latency(&self) -> Option<(String, Statistic)> {
        self.metric.latency()
    }

    /// Returns the name of the step or transaction that the threshold is about.
    pub fn step(&self) -> Option<&str> {
        self.metric.step()
    }

    /// Returns the name of the compared value, `message.p99`.
    pub fn name(&self) -> &str {
        self.split().0
    }

    /// Returns the comparison and its limit as they were written: `< 10ms`.
    pub fn condition(&self) -> &str {
        self.split().1
    }

    /// Returns the name of the latency that must stay below the limit, `message`, and the limit in
    /// microseconds. `None` if the threshold is not an upper limit of a latency.
    pub fn latency_most(&self) -> Option<(&str, u64)> {
        let is_upper = matches!(self.comparison, Comparison::Less | Comparison::AtMost);
        let (of, _) = self.metric.latency().filter(|_| is_upper)?;
        let of = self.name().get(..of.len())?;
        Some((of, self.limit as u64))
    }

    fn split(&self) -> (&str, &str) {
        let end = self.text.find(|c: char| c.is_whitespace() || SIGNS.contains(c));
        let (name, condition) = self.text.split_at(end.unwrap_or(self.text.len()));
        (name, condition.trim_start())
    }

    /// Compares the threshold with the measurements of a run.
    pub fn judge(&self, summary: &Summary) -> Judgement {
        let measured = self.metric.measured(self.unit, summary);
        let value = measured.value();
        Judgement {
            threshold: self.text.clone(),
            met: value.is_some_and(|value| self.comparison.holds(value, self.limit)),
            value,
            measured: self.show(&measured),
        }
    }

    /// Reports whether the run has measured nothing that could be compared: no value, and no wait.
    pub fn is_unmeasured(&self, summary: &Summary) -> bool {
        self.metric.measured(self.unit, summary) == Measurement::Nothing
    }

    fn show(&self, measured: &Measurement) -> String {
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
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        let name_from = text.len() - text.trim_start().len();
        let name_len = text[name_from..]
            .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '-')))
            .unwrap_or(text.len() - name_from);
        let name_span = name_from..name_from + name_len;
        let metric = named(&text[name_span.clone()], &name_span)?;

        let rest = &text[name_span.end..];
        let sign_from = name_span.end + rest.len() - rest.trim_start().len();
        let sign_len = text[sign_from..]
            .chars()
            .take_while(|c| SIGNS.contains(*c))
            .map(char::len_utf8)
            .sum::<usize>();
        let sign_span = sign_from..sign_from + sign_len;
        let comparison =
            Comparison::of(&text[sign_span.clone()]).ok_or_else(|| ThresholdError {
                span: sign_span.clone(),
                problem: match sign_len {
                    0 => "the comparison is missing".to_owned(),
                    _ => format!("`{}` is not a comparison", &text[sign_span.clone()]),
                },
                expected: "one of <, <=, ==, >=, >".to_owned(),
                suggestion: (&text[sign_span.clone()] == "=").then(|| "==".to_owned()),
            })?;

        let rest = &text[sign_span.end..];
        let value = rest.trim();
        let value_from = sign_span.end + rest.len() - rest.trim_start().len();
        let unit = metric.unit(value);
        let limit = unit.parse(value).map_err(|error| ThresholdError {
            span: value_from + error.span.start..value_from + error.span.end,
            problem: error.problem.to_string(),
            expected: error.expected.to_owned(),
            suggestion: None,
        })?;
        Ok(Self { text: text.trim().to_owned(), metric, unit, comparison, limit })
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.met { "met   " } else { "missed" };
        write!(f, "{verdict}  {}  (measured {})", self.threshold, self.measured)
    }
}

impl fmt::Display for ThresholdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (expected {})", self.problem, self.expected)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, "; did you mean `{suggestion}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ThresholdError {}

fn named(name: &str, span: &Range<usize>) -> Result<Metric, ThresholdError> {
    Metric::named(name).ok_or_else(|| {
        let latencies = LATENCIES.each_ref().map(|latency| latency.name);
        let NameMistake { problem, expected, suggestion } =
            NameMistake::of(name, &names(), &latencies);
        ThresholdError { span: span.clone(), problem, expected: expected.to_owned(), suggestion }
    })
}

/// The characters of a comparison.
const SIGNS: &str = "<>=!≤≥";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Less,
    AtMost,
    Equal,
    AtLeast,
    Greater,
}

impl Comparison {
    fn of(sign: &str) -> Option<Self> {
        Some(match sign {
            "<" => Self::Less,
            "<=" | "≤" => Self::AtMost,
            "==" => Self::Equal,
            ">=" | "≥" => Self::AtLeast,
            ">" => Self::Greater,
            _ => return None,
        })
    }

    fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Less => value < limit,
            Self::AtMost => value <= limit,
            Self::Equal => value == limit,
            Self::AtLeast => value >= limit,
            Self::Greater => value > limit,
        }
    }
}

impl Unit {
    fn parse(self, text: &str) -> Result<f64, UnitError> {
        Ok(match self {
            Self::Micros => units::parse_duration(text)?.as_nanos() as f64 / 1000.0,
            Self::Count => units::parse_count(text)? as f64,
            Self::Rate => units::parse_rate(text)?,
            Self::Share => units::parse_share(text)?,
            Self::Bytes => units::parse_bytes(text)? as f64,
        })
    }

    fn show(self, value: f64) -> String {
        match self {
            Self::Micros if value < 100.0 && value.fract() != 0.0 => format!("{value:.1} µs"),
            Self::Micros => units::brief_micros(value.round() as u64),
            Self::Count => format!("{value}"),
            Self::Rate => units::brief_rate(value),
            Self::Share => units::show_share((value * 1e6).round() / 1e6),
            Self::Bytes => units::brief_bytes(value),
        }
    }
}

#[cfg(test)]
mod tests;
