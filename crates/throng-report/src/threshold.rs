//! Thresholds: `connect.p99 < 100ms`, `errors < 0.01%`, `connected_most >= 100k`.
//!
//! A threshold is a name from the summary, a comparison, and a value in the unit of the name
//! ([`names`] lists them). A latency has any percentile: `p95`, `p99.99`. `errors` is compared as a
//! count, or with `%` as a share of all attempted connects and messages. A value that was not
//! measured meets no threshold.

mod class_name;
mod error_names;
mod measurand;
mod metric;
mod mistake;
mod statistic;
mod step_metric;
mod unit;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use throng_measure::http_status::StatusRange;
use throng_measure::is_of_family;

use crate::Summary;
use metric::Measurement;

pub use measurand::Measurand;
pub use metric::{names, value};
pub use statistic::Statistic;

/// A condition that a run should meet. Parsed with [`str::parse`].
#[derive(Clone, Debug)]
pub struct Threshold {
    text: String,
    measurand: Measurand,
    comparison: Comparison,
    limit: f64,
}

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
        self.measurand.latency()
    }

    /// Returns the name of the step or transaction that the threshold is about.
    pub fn step(&self) -> Option<&str> {
        self.measurand.step()
    }

    /// Returns the name of the class whose users the threshold is about; `None` if it is about all.
    pub fn class(&self) -> Option<&str> {
        self.measurand.class()
    }

    /// Returns the name of the compared value without that of the class, such as `http.p99` of
    /// `class.api.http.p99`.
    pub fn name_without_class(&self) -> &str {
        let class = self.class().map_or(0, |class| class_name::CLASS.len() + class.len() + 1);
        &self.name()[class..]
    }

    /// Returns the name of the compared value, `message.p99`.
    pub fn name(&self) -> &str {
        self.split().0
    }

    /// Returns the comparison and its limit as they were written: `< 10ms`.
    pub fn condition(&self) -> &str {
        self.split().1
    }

    /// Returns the unit of the value: `us`, `count`, `per_second`, `share` (1 is 100 %) or `bytes`.
    pub fn unit(&self) -> &'static str {
        self.measurand.unit()
    }

    /// Returns the value that the measured one is compared with.
    pub fn limit(&self) -> f64 {
        self.limit
    }

    /// Returns the name of the latency that must stay below the limit, `message`, and the limit in
    /// microseconds. `None` if the threshold is not an upper limit of a latency.
    pub fn latency_most(&self) -> Option<(&str, u64)> {
        let is_upper = matches!(self.comparison, Comparison::Less | Comparison::AtMost);
        let (of, _) = self.measurand.latency().filter(|_| is_upper)?;
        let of = self.name().get(..of.len())?;
        Some((of, self.limit as u64))
    }

    /// Reports whether a run that measured this value, and so missed the threshold, measured too
    /// little.
    pub fn asks_for_more_than(&self, value: f64) -> bool {
        match self.comparison {
            Comparison::Less | Comparison::AtMost => false,
            Comparison::AtLeast | Comparison::Greater => true,
            Comparison::Equal => value < self.limit,
        }
    }

    /// Reports whether the threshold limits failures: errors, failed connects, failed users, the
    /// errors of a step, or answers with a status of 300 or more.
    pub fn limits_failures(&self) -> bool {
        let name = self.name_without_class();
        if let Some(statuses) = name.strip_prefix("http.").and_then(StatusRange::named) {
            return statuses.is_no_success() && !self.asks_for_more_than(f64::INFINITY);
        }
        let is_of_step = name.starts_with("step.") && name.ends_with(".errors");
        is_of_step || FAILURES.iter().any(|failures| is_of_family(name, failures))
    }

    fn split(&self) -> (&str, &str) {
        split(&self.text)
    }

    /// Compares the threshold with the measurements of a run.
    pub fn judge(&self, summary: &Summary) -> Judgement {
        let measured = self.measurand.measurement(summary);
        let value = measured.value();
        Judgement {
            threshold: self.text.clone(),
            met: value.is_some_and(|value| self.comparison.holds(value, self.limit)),
            value,
            measured: self.measurand.show_measurement(&measured),
        }
    }

    /// Returns the measured value as a share of the limit: less than 1 while the threshold is met.
    /// `None` if it is no such share, as with `== 0`, or if nothing was measured.
    pub fn usage(&self, summary: &Summary) -> Option<f64> {
        let value = self.measurand.measurement(summary).value()?;
        let usage = match self.comparison {
            Comparison::Less | Comparison::AtMost => value / self.limit,
            Comparison::AtLeast | Comparison::Greater => self.limit / value,
            Comparison::Equal => return None,
        };
        usage.is_finite().then_some(usage)
    }

    /// Reports whether the run has measured nothing that could be compared: no value, and no wait.
    pub fn is_unmeasured(&self, summary: &Summary) -> bool {
        self.measurand.measurement(summary) == Measurement::Nothing
    }
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        let ConditionParts { name, sign, amount } = ConditionParts::of(text);
        let metric = metric::of_name(&text[name.clone()], &name)?;
        let written = &text[sign.clone()];
        let comparison = Comparison::of(written).ok_or_else(|| ThresholdError {
            span: sign,
            problem: match written {
                "" => "the comparison is missing".to_owned(),
                _ => format!("`{written}` is not a comparison"),
            },
            expected: "one of <, <=, ==, >=, >".to_owned(),
            suggestion: (written == "=").then(|| "==".to_owned()),
        })?;
        let value = &text[amount.clone()];
        let measurand = Measurand::of(metric, value);
        let limit = measurand.parse_amount(value).map_err(|error| ThresholdError {
            span: amount.start + error.span.start..amount.start + error.span.end,
            problem: error.problem.to_string(),
            expected: error.expected.to_owned(),
            suggestion: None,
        })?;
        Ok(Self { text: text.trim().to_owned(), measurand, comparison, limit })
    }
}

impl ThresholdError {
    /// Returns what to write instead: the name that was probably meant, or what was expected.
    pub fn hint(&self) -> String {
        match &self.suggestion {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("expected {}", self.expected),
        }
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

/// Returns the name and the condition of the text of a threshold.
pub(crate) fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| c.is_whitespace() || SIGNS.contains(c));
    let (name, condition) = text.split_at(end.unwrap_or(text.len()));
    (name, condition.trim_start())
}

/// The places of the parts of a condition: a name, a comparison and an amount.
pub(crate) struct ConditionParts {
    pub(crate) name: Range<usize>,
    pub(crate) sign: Range<usize>,
    pub(crate) amount: Range<usize>,
}

impl ConditionParts {
    pub(crate) fn of(text: &str) -> Self {
        let token = |from: usize, belongs: fn(char) -> bool| {
            let start = text.len() - text[from..].trim_start().len();
            let end = text[start..].find(|c| !belongs(c)).map_or(text.len(), |end| start + end);
            start..end
        };
        let name = token(0, |c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'));
        let sign = token(name.end, |c| SIGNS.contains(c));
        let amount = token(sign.end, |_| true);
        let end = text.trim_end().len().max(amount.start);
        Self { name, sign, amount: amount.start..end }
    }
}

/// The names of failures, with the kinds below them.
const FAILURES: [&str; 7] = [
    "errors",
    "connect.failed",
    "users.failed",
    "join.failed",
    "push.failed",
    "http.failed",
    "http.retried",
];

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

#[cfg(test)]
mod tests;
