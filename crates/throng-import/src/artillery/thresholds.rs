//! `ensure`: the goals of the run.

use throng_load::scenario::YamlNode;

use crate::expected::RATE_OF_ANSWERS;
use crate::source::Span;
use crate::translator::Translator;

use super::engine::Engine;
use crate::fields::{Fields, number, one_or_more};

/// What the scenarios of a file do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) engine: Engine,
    /// Whether a step waits for the answer to a message.
    pub(super) has_answers: bool,
}

/// Reads `config.ensure`, or `plugins.ensure`, which has the same keys.
pub(super) fn read(translator: &mut Translator<'_>, node: &YamlNode, kind: Kind) -> Vec<String> {
    let mut out = Vec::new();
    let Some(fields) = Fields::read_any(translator, node, "`ensure`") else { return out };
    for (key, span, node) in fields.iter() {
        match key {
            "thresholds" => {
                for node in one_or_more(node) {
                    let entries = Fields::read_any(translator, node, "a threshold");
                    for (metric, span, node) in entries.iter().flat_map(Fields::iter) {
                        let most = number(translator, node, metric, (0.0, VALUE_MAX));
                        let comparison = most.map(|most| (metric, "<", most));
                        out.extend(goal(translator, &span, metric, comparison, kind));
                    }
                }
            }
            "conditions" => {
                for node in one_or_more(node) {
                    let fields = Fields::read_any(translator, node, "a condition");
                    let expression =
                        fields.as_ref().and_then(|fields| fields.get("expression")).unwrap_or(node);
                    let text = expression.scalar().unwrap_or_default();
                    for part in text.split(" and ") {
                        let compared = comparison(part);
                        out.extend(goal(translator, &expression.span, part, compared, kind));
                    }
                }
            }
            "maxErrorRate" => {
                if let Some(percent) = number(translator, node, key, (0.0, 100.0)) {
                    let how = "Artillery counts users that failed; the scenario counts errors \
                               among all connects, messages and requests";
                    translator.approximated(&span, "ensure maxErrorRate", how);
                    out.push(format!("errors <= {percent}%"));
                }
            }
            _ => {
                let metric = format!("http.response_time.{key}");
                let most = number(translator, node, key, (0.0, VALUE_MAX));
                let comparison = most.map(|most| (&*metric, "<", most));
                out.extend(goal(translator, &span, &metric, comparison, kind));
            }
        }
    }
    out
}

/// Parses `http.response_time.p99 < 100`.
fn comparison(text: &str) -> Option<(&str, &str, f64)> {
    let text = text.trim().trim_start_matches('(').trim_end_matches(')');
    for sign in ["<=", ">=", "==", "<", ">"] {
        if let Some((metric, value)) = text.split_once(sign) {
            return Some((metric.trim(), sign, value.trim().parse().ok()?));
        }
    }
    None
}

/// Returns the threshold of a comparison. Reports a metric that throng does not have.
fn goal(
    translator: &mut Translator<'_>,
    span: &Span,
    construct: &str,
    comparison: Option<(&str, &str, f64)>,
    kind: Kind,
) -> Option<String> {
    let construct = format!("ensure {}", construct.trim());
    let is_of_answers = comparison.is_some_and(|(metric, ..)| metric == "http.responses");
    let threshold = comparison.and_then(|(metric, sign, value)| {
        let (name, unit) = ours(metric, kind)?;
        Some(format!("{name} {sign} {value}{unit}"))
    });
    if threshold.is_none() {
        let remedy = match comparison {
            Some((SEND_RATE, ..)) if kind.engine == Engine::Ws => RATE_OF_ANSWERS,
            _ => "throng has no such measure; see the thresholds in docs/scenario.md",
        };
        translator.not_checked(span, construct, remedy);
        return None;
    }
    if is_of_answers {
        let how = "the scenario counts the answers that its steps expect";
        translator.approximated(span, construct, how);
    } else {
        translator.translated(span, construct);
    }
    threshold
}

/// Returns the name of a metric in a scenario, and the unit of its values.
fn ours(metric: &str, kind: Kind) -> Option<(String, &'static str)> {
    let engine = kind.engine;
    if let Some(percentile) = metric.strip_prefix("http.response_time.") {
        let percentile = match percentile {
            "median" => "p50",
            "p50" | "p75" | "p90" | "p95" | "p99" | "p999" | "max" | "mean" => percentile,
            _ => return None,
        };
        return (engine == Engine::Http).then(|| (format!("http.{percentile}"), "ms"));
    }
    let (name, unit) = match (metric, engine) {
        ("vusers.failed", _) => ("users.failed", ""),
        ("vusers.created", _) => ("users.started", ""),
        ("vusers.completed", _) => ("users.finished", ""),
        ("http.requests", Engine::Http) => ("http.started", ""),
        ("http.responses", Engine::Http) => ("http.ok", ""),
        ("http.request_rate", Engine::Http) => ("http.rate_mean", "/s"),
        ("websocket.messages_sent", Engine::Ws) => ("message.sent", ""),
        (SEND_RATE, Engine::Ws) if !kind.has_answers => ("message.rate_mean", "/s"),
        _ => return None,
    };
    Some((name.to_owned(), unit))
}

/// Messages that users send, a second.
const SEND_RATE: &str = "websocket.send_rate";

/// The largest value of a threshold.
const VALUE_MAX: f64 = 1e9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_a_comparison() {
        let expected = Some(("http.response_time.p99", "<", 100.0));
        assert_eq!(comparison("(http.response_time.p99 < 100)"), expected);
        assert_eq!(comparison("http.requests"), None);
        assert_eq!(comparison("a < b"), None);
    }
}
