//! `assert`: thresholds, where throng measures the same.

use super::context::Context;
use super::tree::{Call, Expr, ExprKind};

/// Reads an `assert(always, condition)`.
pub(super) fn read(cx: &mut Context<'_, '_>, statement: &Expr, call: &Call) {
    let [moment, condition] = &call.arguments[..] else {
        let label = "expected `assert(always, \"request.error\" < 10)`";
        cx.translator.mistake(&statement.span, "`assert` takes a time and a condition", label);
        return;
    };
    let is_always = moment.word() == Some("always");
    if !is_always && cx.time(moment, "the time of `assert`").is_none() {
        return;
    }
    let mut thresholds = Vec::new();
    match compare(cx, condition, &mut thresholds) {
        Ok(differs) => {
            let difference = match (is_always, differs) {
                (false, _) => Some("the condition is judged once, at the end of the run"),
                (true, true) => Some(
                    "MZBench judges the condition all the time; the scenario judges the whole run \
                     at its end",
                ),
                (true, false) => None,
            };
            match difference {
                None => cx.translator.translated(&statement.span, "assert"),
                Some(how) => cx.translator.approximated(&statement.span, "assert", how),
            }
            cx.thresholds.extend(thresholds);
        }
        Err(Some(remedy)) => cx.translator.not_supported(&statement.span, "assert", remedy),
        // It was a mistake.
        Err(None) => {}
    }
}

/// Appends the thresholds of a condition. Returns whether they differ from it while the run goes
/// on, or what to do if throng has none.
fn compare(
    cx: &mut Context<'_, '_>,
    condition: &Expr,
    thresholds: &mut Vec<String>,
) -> Result<bool, Option<String>> {
    let (operator, operands) = match &condition.kind {
        ExprKind::Operation(operator, operands) => (&**operator, &operands[..]),
        _ => {
            let label = format!("expected a comparison, found {}", condition.describe());
            cx.translator.mistake(&condition.span, "this is not a condition", label);
            return Err(None);
        }
    };
    match (operator, operands) {
        ("and", [left, right]) => {
            let left = compare(cx, left, thresholds)?;
            Ok(compare(cx, right, thresholds)? || left)
        }
        ("or" | "not", _) => {
            Err(Some("all thresholds must hold: write one for each condition that must".to_owned()))
        }
        (operator, [left, right]) => {
            let metric = |expr: &Expr| match &expr.kind {
                ExprKind::Text(name) => Some(name.clone()),
                _ => None,
            };
            let (name, number, operator) = match (metric(left), metric(right)) {
                (Some(name), None) => (name, right, operator),
                (None, Some(name)) => (name, left, turned(operator)),
                _ => {
                    let remedy = "a threshold compares one metric with one number";
                    return Err(Some(remedy.to_owned()));
                }
            };
            let number = cx.plain_number(number, "the number of `assert`").ok_or(None)?;
            let sign = sign(operator).ok_or_else(|| {
                Some("throng has `<`, `<=`, `==`, `>=` and `>`: write one of these".to_owned())
            })?;
            let Some((measured, only_grows)) = measured(&name, number) else {
                let remedy = format!(
                    "throng does not measure `{name}`; choose a threshold of docs/scenario.md"
                );
                return Err(Some(remedy));
            };
            let (metric, number) = measured;
            thresholds.push(format!("{metric} {sign} {number}"));
            // What only grows is below a number all the time if it is at the end.
            Ok(!(only_grows && sign.starts_with('<')))
        }
        _ => Err(Some("a threshold compares one metric with one number".to_owned())),
    }
}

/// Returns what throng calls a metric of the tcp_worker, the number in its unit, and whether it
/// never falls.
fn measured(name: &str, number: f64) -> Option<((String, String), bool)> {
    let count = (number >= 0.0 && number.fract() == 0.0).then(|| format!("{number}"));
    let rate = (number >= 0.0).then(|| format!("{number}/s"));
    let counter = |metric: &str| Some(((metric.to_owned(), count.clone()?), true));
    let pace = |metric: &str| Some(((metric.to_owned(), rate.clone()?), false));
    let parts: Vec<&str> = name.split('.').collect();
    match &parts[..] {
        ["request", "ok"] => counter("message.answered"),
        ["request", "error"] => counter("message.failed"),
        ["request", "ok", "rps"] => pace("message.rate_mean"),
        ["workers", _, "started"] => counter("users.started"),
        ["workers", _, "ended"] => counter("users.finished"),
        ["workers", _, "failed"] => counter("users.failed"),
        ["latency", part @ ..] => {
            let metric = match part {
                ["max"] => "max".to_owned(),
                ["mean"] => "mean".to_owned(),
                ["median"] => "p50".to_owned(),
                [digits] if (2..=4).contains(&digits.len()) && is_digits(digits) => {
                    // 999 is 99.9.
                    let (whole, rest) = digits.split_at(2);
                    format!("p{whole}{}{rest}", if rest.is_empty() { "" } else { "." })
                }
                _ => return None,
            };
            let number = (0.0..=1e9).contains(&number).then(|| format!("{number}ms"))?;
            Some(((format!("message.{metric}"), number), false))
        }
        _ => None,
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the operator for operands in the other order.
fn turned(operator: &str) -> &str {
    match operator {
        "lt" => "gt",
        "gt" => "lt",
        "lte" => "gte",
        "gte" => "lte",
        other => other,
    }
}

fn sign(operator: &str) -> Option<&'static str> {
    let signs = [("lt", "<"), ("gt", ">"), ("lte", "<="), ("gte", ">="), ("eq", "==")];
    signs.iter().find(|(known, _)| *known == operator).map(|(_, sign)| *sign)
}
