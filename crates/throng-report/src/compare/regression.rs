//! Regressions: `connect.p99 > +10%`, `errors > +0`, `message.rate < -5%`.
//!
//! A regression is the name of a figure, a comparison, and a change with its sign: in per cent of
//! the baseline, or in the unit of the figure. A change beyond it is a regression. A figure that
//! was not measured on one side is one, too.

use std::ops::Range;
use std::str::FromStr;

use serde::Serialize;

use super::estimate::{Difference, Estimate, compare};
use super::figure::FigureReader;
use super::percent::{digits, factor};
use crate::threshold::{ConditionParts, ThresholdError};

/// A change that is too much. Parsed with [`str::parse`].
#[derive(Clone, Debug)]
pub struct Regression {
    text: String,
    reader: FigureReader,
    is_above: bool,
    or_equal: bool,
    limit: Limit,
}

/// The ends of an interval.
type Ends = (f64, f64);

#[derive(Clone, Copy, Debug)]
enum Limit {
    /// The ratio to the baseline.
    Ratio(f64),
    /// The difference to the baseline.
    Difference(f64),
}

/// The result of a regression for one side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegressionResult {
    /// The regression as it was written.
    pub regression: String,
    /// The side that was compared with the baseline.
    pub side: String,
    /// Whether the change is beyond the limit.
    pub beyond: bool,
    /// Whether the whole interval is on that side of the limit; `null` without an interval.
    pub certain: Option<bool>,
    /// What was measured, as a sentence.
    pub text: String,
}

impl Regression {
    pub(super) fn reader(&self) -> &FigureReader {
        &self.reader
    }

    /// Compares a side with the baseline.
    pub(super) fn judge(
        &self,
        side: &str,
        before: &Estimate,
        after: &Estimate,
    ) -> RegressionResult {
        let compared = compare(before, after, self.reader.precision());
        let show = |estimate: &Estimate| match estimate.value {
            Some(value) => self.reader.quantity.show(value),
            None => "not measured".to_owned(),
        };
        let values = format!("{} → {}", show(before), show(after));
        let Some((change, interval, limit)) = self.change(before, &compared) else {
            return RegressionResult {
                regression: self.text.clone(),
                side: side.to_owned(),
                beyond: true,
                certain: None,
                text: format!("{values}: cannot be compared, which counts as a regression"),
            };
        };
        let beyond = self.is_beyond(change, limit);
        let certain = interval.map(|(low, high)| {
            self.is_beyond(low, limit) == beyond && self.is_beyond(high, limit) == beyond
        });
        let because = match (beyond, certain) {
            (_, None) => "there is no interval",
            (true, Some(true)) => "the whole 95 % interval is beyond",
            (true, Some(false)) => "but the 95 % interval is not all beyond: it may be chance",
            (false, Some(true)) => "the whole 95 % interval is within",
            (false, Some(false)) => "but the 95 % interval reaches beyond",
        };
        RegressionResult {
            regression: self.text.clone(),
            side: side.to_owned(),
            beyond,
            certain,
            text: format!("{values} ({}); {because}", self.show(change)),
        }
    }

    /// Returns the change in the limit's terms, its interval, and the limit.
    fn change(&self, before: &Estimate, compared: &Difference) -> Option<(f64, Option<Ends>, f64)> {
        let difference = compared.difference?;
        match self.limit {
            Limit::Difference(limit) => Some((difference, compared.difference_interval, limit)),
            Limit::Ratio(limit) => {
                let is_from_zero = before.value == Some(0.0) && difference != 0.0;
                let ratio = if is_from_zero { f64::INFINITY } else { compared.ratio? };
                Some((ratio, compared.ratio_interval, limit))
            }
        }
    }

    fn is_beyond(&self, change: f64, limit: f64) -> bool {
        // 1.1 has no exact form: a change of exactly the limit is within it.
        let slack = if self.or_equal { -1e-9 } else { 1e-9 } * limit.abs().max(1.0);
        if self.is_above { change > limit + slack } else { change < limit - slack }
    }

    fn show(&self, change: f64) -> String {
        match self.limit {
            Limit::Ratio(_) if change.is_infinite() => "from nothing".to_owned(),
            Limit::Ratio(_) => match factor(change) {
                Some(factor) => format!("×{factor}"),
                None => format!("{} %", signed(100.0 * (change - 1.0))),
            },
            Limit::Difference(_) => self.reader.quantity.show_change(change),
        }
    }
}

/// Returns a number with its sign.
fn signed(n: f64) -> String {
    let text = digits(n);
    let is_plain = text.starts_with('-') || text == "0";
    format!("{}{text}", if is_plain { "" } else { "+" })
}

impl FromStr for Regression {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        let ConditionParts { name, sign, amount } = ConditionParts::of(text);
        let reader = FigureReader::named(&text[name.clone()], name.start)?;
        let (is_above, or_equal) = match &text[sign.clone()] {
            ">" => (true, false),
            ">=" | "≥" => (true, true),
            "<" => (false, false),
            "<=" | "≤" => (false, true),
            other => {
                let problem = match other {
                    "" => "the comparison is missing".to_owned(),
                    _ => format!("`{other}` is not a comparison of changes"),
                };
                return Err(error(sign, problem, "one of >, >=, <, <="));
            }
        };
        let negative = match text[amount.clone()].chars().next() {
            Some('+') => false,
            Some('-') => true,
            _ => {
                let problem = "the sign of the change is missing".to_owned();
                return Err(error(amount, problem, EXPECTED));
            }
        };
        let Range { start, end } = amount;
        let number = text[start + 1..end].trim();
        let from = end - number.len();
        let with_sign = |value: f64| if negative { -value } else { value };
        let limit = if let Some(percent) = number.strip_suffix('%') {
            let percent = percent.trim_end().parse::<f64>().ok();
            let percent = percent.filter(|percent| percent.is_finite() && *percent >= 0.0);
            let percent = percent.ok_or_else(|| {
                error(from..end, format!("`{number}` is not a percentage"), "a change such as +10%")
            })?;
            Limit::Ratio(1.0 + with_sign(percent) / 100.0)
        } else {
            let value = reader.quantity.parse_amount(number).map_err(|bad| ThresholdError {
                span: from + bad.span.start..from + bad.span.end,
                problem: bad.problem.to_string(),
                expected: format!("{}, or a change in per cent such as +10%", bad.expected),
                suggestion: None,
            })?;
            Limit::Difference(with_sign(value))
        };
        Ok(Self { text: text.trim().to_owned(), reader, is_above, or_equal, limit })
    }
}

const EXPECTED: &str = "a change with its sign, such as +10%, -5% or +0";

fn error(span: Range<usize>, problem: String, expected: &str) -> ThresholdError {
    ThresholdError { span, problem, expected: expected.to_owned(), suggestion: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(value: f64) -> Estimate {
        Estimate { value: Some(value), spread: None }
    }

    #[track_caller]
    fn check(text: &str, before: f64, after: f64, beyond: bool) {
        let regression: Regression = text.parse().unwrap();
        let result = regression.judge("B", &side(before), &side(after));
        assert_eq!(result.beyond, beyond, "{result:?}");
    }

    #[test]
    fn a_change_beyond_its_limit_is_a_regression() {
        check("connect.p99 > +10%", 1_000.0, 1_101.0, true);
        check("connect.p99 > +10%", 1_000.0, 1_100.0, false);
        check("connect.p99>=+10%", 1_000.0, 1_100.0, true);
        check("connect.p99.9 > +5ms", 1_000.0, 6_001.0, true);
        check("connect.p99.9 > +5ms", 1_000.0, 6_000.0, false);
        check("message.rate < -5%", 100.0, 94.0, true);
        check("message.rate < -5%", 100.0, 95.0, false);
        check("message.rate_most < -10/s", 100.0, 80.0, true);
        check("errors > +0", 3.0, 3.0, false);
        check("errors > +0", 3.0, 4.0, true);
        check("errors > +50%", 0.0, 1.0, true);
        check("errors > +50%", 0.0, 0.0, false);
        check("connect.p99 > -5%", 100.0, 96.0, true);
    }

    #[test]
    fn what_one_side_did_not_measure_is_a_regression() {
        let regression: Regression = "join.p99 > +10%".parse().unwrap();
        let result = regression.judge("B", &side(3.0), &Estimate::default());
        assert!(result.beyond && result.text.contains("3 µs → not measured"), "{result:?}");
    }

    #[test]
    fn a_mistake_is_pointed_at() {
        let check = |text: &str, span: Range<usize>, suggestion: Option<&str>| {
            let error = text.parse::<Regression>().unwrap_err();
            assert_eq!((error.span, error.suggestion.as_deref()), (span, suggestion), "{text}");
        };
        check("conect.p99 > +10%", 0..10, Some("connect.p99"));
        check("connect.p99 10%", 12..12, None);
        check("connect.p99 == +1%", 12..14, None);
        check("connect.p99 > 10%", 14..17, None);
        check("connect.p99 > +x%", 15..17, None);
        check("connect.p99 > +10", 15..17, None);
        check("connect.p99 > ", 14..14, None);
        check("connect.p99 > +", 15..15, None);
        check("", 0..0, None);
        check("errors > +é", 10..12, None);
    }
}
