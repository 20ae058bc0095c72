//! Values: numbers, times and rates, with the defaults of variables.

use std::time::Duration;

use throng_base::units::{show_count, show_duration, show_rate};

use super::context::Context;
use super::tree::{Expr, ExprKind, RATES, TIMES};
use crate::expected::near_or;
use crate::rate::show_whole;

/// A number, a time in seconds or a rate per second, and how a scenario writes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Amount {
    pub(super) value: f64,
    /// `20m`, or `$(time)`.
    pub(super) text: String,
}

/// A number, and the variable that it is the default of.
struct Number {
    value: f64,
    variable: Option<String>,
}

impl Amount {
    /// Returns a time.
    pub(super) fn seconds(value: f64) -> Self {
        Self { value, text: seconds_text(value) }
    }
}

impl Context<'_, '_> {
    /// Reads a number of users.
    pub(super) fn plain_count(&mut self, expr: &Expr, what: &str) -> Option<f64> {
        let value = self.number(expr, what)?.value;
        if value.fract() != 0.0 || !(1.0..=COUNT_MAX).contains(&value) {
            let label =
                format!("expected a whole number from 1 to {}", show_count(COUNT_MAX as u64));
            return self.translator.fail(&expr.span, format!("{what} is {value}"), label);
        }
        Some(value)
    }

    /// Reads a time, `10 sec`.
    pub(super) fn time(&mut self, expr: &Expr, what: &str) -> Option<Amount> {
        let (number, factor) = self.quantity(expr, what, &TIMES, "a time such as `10 sec`")?;
        let value = number.value * factor;
        if !(0.0..=TIME_MAX_S).contains(&value) {
            let label = "expected a time from 0 to a year";
            return self.translator.fail(&expr.span, format!("{what} is {value} s"), label);
        }
        let value = (value * 1e9).round() / 1e9;
        let variable = number.variable.filter(|_| value > 0.0);
        let text = self.param(variable.as_deref(), seconds_text(value));
        Some(Amount { value, text })
    }

    /// Reads a rate, `10 rps`.
    pub(super) fn rate(&mut self, expr: &Expr, what: &str) -> Option<Amount> {
        let (number, per) = self.quantity(expr, what, &RATES, "a rate such as `10 rps`")?;
        let value = number.value / per;
        if !(0.0..=RATE_MAX).contains(&value) || value > 0.0 && value < RATE_MIN {
            let label = "expected a rate from 0 to a thousand million a second";
            return self.translator.fail(&expr.span, format!("{what} is {value}/s"), label);
        }
        let variable = number.variable.filter(|_| value > 0.0);
        let text = self.param(variable.as_deref(), rate_text(value));
        Some(Amount { value, text })
    }

    /// Reads a number without a unit.
    pub(super) fn plain_number(&mut self, expr: &Expr, what: &str) -> Option<f64> {
        Some(self.number(expr, what)?.value)
    }

    /// Reads a number with one of these units. Returns it with the factor of its unit.
    fn quantity(
        &mut self,
        expr: &Expr,
        what: &str,
        units: &[(&str, f64)],
        expected: &str,
    ) -> Option<(Number, f64)> {
        if let ExprKind::Quantity(value, unit) = &expr.kind
            && let Some((_, factor)) = units.iter().find(|(known, _)| known == unit)
        {
            return Some((self.number(value, what)?, *factor));
        }
        let label = format!("expected {expected}, found {}", expr.describe());
        self.translator.fail(&expr.span, format!("{what} cannot be read"), label)
    }

    fn number(&mut self, expr: &Expr, what: &str) -> Option<Number> {
        if let ExprKind::Number(value) = expr.kind {
            return Some(Number { value, variable: None });
        }
        let (value, variable) = match self.variable(expr)? {
            Some((name, value)) => (value, Some(name)),
            None => (expr.clone(), None),
        };
        let number = match &value.kind {
            ExprKind::Number(value) => Some(*value),
            ExprKind::Text(text) => {
                text.trim().parse().ok().filter(|value: &f64| value.is_finite())
            }
            _ => None,
        };
        if number.is_none() {
            let label = format!("expected a number, found {}", value.describe());
            self.translator.mistake(&expr.span, format!("{what} cannot be read"), label);
        }
        Some(Number { value: number?, variable })
    }

    /// Returns the name and the value of a variable: `var("n", 1)`. `Some(None)` if the expression
    /// is none, and `None` after a mistake.
    pub(super) fn variable(&mut self, expr: &Expr) -> Option<Option<(String, Expr)>> {
        let Some(call) = expr.call().filter(|call| ["var", "numvar"].contains(&&*call.name)) else {
            return Some(None);
        };
        let Some(name) = call.arguments.first().and_then(Expr::text) else {
            let title = format!("`{}` names no variable", call.name);
            return self.translator.fail(
                &expr.span,
                title,
                "expected a name in quotes: `var(\"n\", 1)`",
            );
        };
        let default = self.defaults.get(name).or(call.arguments.get(1));
        if let Some(value) = default {
            if !self.translator.expansion.charge(&expr.span, value.span.len()) {
                return None;
            }
            return Some(Some((name.to_owned(), value.clone())));
        }
        let label = near_or(
            name,
            self.defaults.keys().map(String::as_str),
            format!("add `defaults(\"{name}\" = ...)`: `--env` is not known here"),
        );
        self.translator.fail(&expr.span, format!("the variable `{name}` has no value"), label)
    }
}

/// Returns a time as a scenario writes it.
pub(super) fn seconds_text(seconds: f64) -> String {
    show_duration(Duration::from_secs_f64(seconds.clamp(0.0, TIME_MAX_S)))
}

/// Returns a rate as a scenario writes it.
pub(super) fn rate_text(per_second: f64) -> String {
    show_whole(per_second).unwrap_or_else(|| show_rate(per_second))
}

/// Largest number of users, turns and bytes.
const COUNT_MAX: f64 = 1e9;

/// Longest time: a year.
pub(super) const TIME_MAX_S: f64 = 366.0 * 86_400.0;

/// Largest rate, per second.
pub(super) const RATE_MAX: f64 = 1e9;

/// Smallest rate above zero, per second: one turn in a year.
const RATE_MIN: f64 = 1.0 / TIME_MAX_S;
