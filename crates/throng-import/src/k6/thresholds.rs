//! `thresholds`: the goals of the run.

use crate::expected::RATE_OF_ANSWERS;
use crate::source::Span;
use crate::translator::Translator;

use super::syntax::{Expression, ExpressionKind};

/// What a script does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kinds {
    pub(super) requests: bool,
    pub(super) sessions: bool,
    /// A session that waits for an answer.
    pub(super) answers: bool,
}

/// Reads `options.thresholds` of a script that does `kinds`.
pub(super) fn read(
    translator: &mut Translator<'_>,
    thresholds: &Expression,
    kinds: Kinds,
) -> Vec<String> {
    let Some(metrics) = thresholds.object() else {
        let label = "expected `{ http_req_duration: ['p(95)<500'] }`";
        return translator.fail(&thresholds.span, "`thresholds` is no object", label);
    };
    let mut out = Vec::new();
    for (metric, goals) in metrics {
        let goals = match &goals.kind {
            ExpressionKind::List(goals) => &**goals,
            _ => std::slice::from_ref(goals),
        };
        for goal in goals {
            let members = goal.object().unwrap_or_default();
            let of_object = members.iter().find(|(key, _)| key == "threshold");
            let text = of_object.map_or(goal, |(_, goal)| goal).text();
            let Some((value, sign, limit)) = text.and_then(split) else {
                let label = "expected a text such as 'p(95)<500'";
                translator.mistake(&goal.span, format!("`{metric}` has no goal"), label);
                continue;
            };
            out.extend(one(translator, &goal.span, metric, (&value, sign, limit), kinds));
        }
    }
    out
}

/// Returns the threshold of one goal.
fn one(
    translator: &mut Translator<'_>,
    span: &Span,
    metric: &str,
    (value, sign, limit): (&str, &str, f64),
    kinds: Kinds,
) -> Option<String> {
    let construct = format!("threshold {metric}");
    if matches!((metric, value), ("http_req_failed" | "checks", "rate")) && kinds.requests {
        // `checks` counts what is right, `errors` what is wrong.
        let (sign, share) = match metric {
            "checks" => (turned(sign), 1.0 - limit),
            _ => (sign, limit),
        };
        let how = "the scenario counts errors among all connects, messages and requests";
        translator.approximated(span, construct, how);
        let percent = (share * 1e8).round() / 1e6;
        return Some(format!("errors {sign} {percent}%"));
    }
    let threshold = ours(metric, value, kinds);
    match threshold {
        Some((name, unit)) => {
            translator.translated(span, construct);
            Some(format!("{name} {sign} {limit}{unit}"))
        }
        None => {
            let remedy = match metric.split('_').next() {
                Some("http") if !kinds.requests => {
                    "the script sends no requests: k6 has no values for it either"
                }
                Some("ws") if !kinds.sessions => {
                    "the script opens no sessions: k6 has no values for it either"
                }
                _ if (metric, value) == ("ws_msgs_sent", "rate") => RATE_OF_ANSWERS,
                _ if (metric, value) == ("checks", "rate") => CHECKS_OF_SESSIONS,
                _ => "throng has no such measure; see the thresholds in docs/scenario.md",
            };
            translator.not_checked(span, construct, remedy);
            None
        }
    }
}

/// Returns the sign between the shares that are left of those that `sign` stands between.
fn turned(sign: &str) -> &str {
    match sign {
        ">" => "<",
        ">=" => "<=",
        "<" => ">",
        "<=" => ">=",
        same => same,
    }
}

/// Why a script without requests has no threshold of `checks`.
const CHECKS_OF_SESSIONS: &str = "the scenario does not check what a session receives; \
                                  `errors < 1%` is a share of connects and messages";

/// Splits `p(95) < 500`.
fn split(text: &str) -> Option<(String, &str, f64)> {
    for sign in ["<=", ">=", "===", "==", "<", ">"] {
        if let Some((value, limit)) = text.split_once(sign) {
            let limit = limit.trim().parse::<f64>().ok().filter(|limit| limit.is_finite())?;
            let sign = if sign == "===" { "==" } else { sign };
            return Some((value.trim().to_owned(), sign, limit));
        }
    }
    None
}

/// Returns the name of a measure in a scenario, and the unit of its values.
fn ours(metric: &str, value: &str, kinds: Kinds) -> Option<(String, &'static str)> {
    let Kinds { requests, sessions, answers } = kinds;
    let latency = match metric {
        "http_req_duration" if requests => Some("http"),
        "ws_connecting" if sessions => Some("connect"),
        _ => None,
    };
    if let Some(latency) = latency {
        let percentile = value.strip_prefix("p(").and_then(|value| value.strip_suffix(')'));
        let value = match (percentile, value) {
            (Some(percentile), _) => {
                let number = percentile.parse::<f64>().ok()?;
                (0.0..=100.0).contains(&number).then(|| format!("p{number}"))?
            }
            (None, "avg") => "mean".to_owned(),
            (None, "med") => "p50".to_owned(),
            (None, "max") => "max".to_owned(),
            _ => return None,
        };
        return Some((format!("{latency}.{value}"), "ms"));
    }
    let (name, unit) = match (metric, value) {
        ("http_reqs", "count") if requests => ("http.started", ""),
        ("http_reqs", "rate") if requests => ("http.rate_mean", "/s"),
        ("iterations", "count") => ("users.iterations", ""),
        ("ws_sessions", "count") if sessions => ("connect.ok", ""),
        ("ws_msgs_sent", "count") if sessions => ("message.sent", ""),
        ("ws_msgs_sent", "rate") if sessions && !answers => ("message.rate_mean", "/s"),
        ("ws_msgs_received", "count") if sessions => ("message.received", ""),
        _ => return None,
    };
    Some((name.to_owned(), unit))
}
