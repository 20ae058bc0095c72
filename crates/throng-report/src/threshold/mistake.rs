//! What is wrong with a name that no threshold may begin with, and which one was probably meant.

use throng_base::units::nearest;
use throng_measure::{Operation, Percentile};

use super::class_name::{CLASS, divisions, is_of_class};
use super::error_names::error_kinds;
use super::statistic::USUAL;
use super::step_metric::{STEP_FIGURES, divide};

/// What is wrong with a name.
pub(super) struct NameMistake {
    pub(super) problem: String,
    pub(super) expected: &'static str,
    /// The name that was probably meant.
    pub(super) suggestion: Option<String>,
}

impl NameMistake {
    /// Returns what is wrong with `name`. `known` are the names that there are, `latencies` those
    /// of the kinds of latencies.
    pub(super) fn of(name: &str, known: &[String], latencies: &[&str]) -> Self {
        if let Some(rest) = name.strip_prefix(CLASS) {
            return of_class(rest, known, latencies);
        }
        if let Some(mistake) = of_status(name) {
            return mistake;
        }
        if let Some((of, statistic)) = of_latency(name, latencies) {
            let suggestion = suggested_statistic(statistic, &USUAL);
            return Self {
                problem: format!("`{statistic}` is no statistic of `{of}`"),
                expected: "any percentile such as p95 or p99.99, max or mean",
                suggestion: suggestion.map(|statistic| format!("{of}.{statistic}")),
            };
        }
        if let Some(mistake) = of_step(name) {
            return mistake;
        }
        Self {
            problem: match name {
                "" => "the name of a measurement is missing".to_owned(),
                _ => format!("unknown measurement `{name}`"),
            },
            expected: "a name such as connect.p99, message.p99.9, step.login.p95, errors or \
                       connect.rate_most",
            suggestion: suggested(name, known),
        }
    }
}

/// Divides `message.p9999` into the latency and what is meant to be a percentile.
fn of_latency<'n>(name: &'n str, latencies: &[&'n str]) -> Option<(&'n str, &'n str)> {
    let (of, statistic) = latencies.iter().find_map(|latency| {
        let statistic = name.strip_prefix(latency)?.strip_prefix('.')?;
        Some((*latency, statistic))
    })?;
    let number = statistic.strip_prefix(['p', 'P']).unwrap_or(statistic);
    number.starts_with(|c: char| c.is_ascii_digit()).then_some((of, statistic))
}

/// Returns what is wrong with `api.htp.p99`, the measurement of a class.
fn of_class(name: &str, known: &[String], latencies: &[&str]) -> NameMistake {
    let expected = "class.NAME. and a measurement of connect, tcp, message, join, push or http, \
                    such as class.api.http.p99";
    let Some((class, of)) = divisions(name).next() else {
        let problem = match name.trim_matches('.') {
            "" => "the name of a class is missing".to_owned(),
            class => format!("the measurement of the class `{class}` is missing"),
        };
        return NameMistake { problem, expected, suggestion: None };
    };
    if known.iter().any(|name| name == of) {
        let problem = format!("`{of}` is not measured by class");
        return NameMistake { problem, expected, suggestion: None };
    }
    let NameMistake { problem, suggestion, .. } = NameMistake::of(of, known, latencies);
    let operation = |near: &str| Operation::named(near.split('.').next()?);
    let near = suggestion.filter(|near| operation(near).is_some_and(is_of_class));
    let suggestion = near.map(|near| format!("{CLASS}{class}.{near}"));
    NameMistake { problem, expected, suggestion }
}

fn of_step(name: &str) -> Option<NameMistake> {
    let rest = name.strip_prefix("step").filter(|rest| rest.is_empty() || rest.starts_with('.'));
    let Some(rest) = rest else {
        let rest = name.strip_prefix("transaction.")?;
        return Some(NameMistake {
            problem: format!("unknown measurement `{name}`"),
            expected: "a transaction's figures are those of a step",
            suggestion: Some(format!("step.{rest}")),
        });
    };
    let expected = "step.NAME. and any percentile such as p95, max, mean, errors, unanswered, ok, \
                    waiting or rate_mean";
    let Some((step, figure)) = divide(name) else {
        let problem = match rest.trim_matches('.') {
            "" => "the name of a step is missing".to_owned(),
            step => format!("the figure of the step `{step}` is missing"),
        };
        let step = rest.trim_matches('.');
        let suggestion = (!step.is_empty()).then(|| format!("step.{step}.p95"));
        return Some(NameMistake { problem, expected, suggestion });
    };
    let known: Vec<&str> =
        USUAL.into_iter().chain(STEP_FIGURES.iter().map(|(name, _)| *name)).collect();
    let suggestion = match figure {
        "failed" => Some("errors".to_owned()),
        _ => suggested_statistic(figure, &known),
    };
    Some(NameMistake {
        problem: format!("`{figure}` is no figure of the step `{step}`"),
        expected,
        suggestion: suggestion.map(|figure| format!("step.{step}.{figure}")),
    })
}

/// Returns what is wrong with `http.42` or `errors.http_status.4x`.
fn of_status(name: &str) -> Option<NameMistake> {
    let (prefix, status) =
        STATUS_PREFIXES.iter().find_map(|prefix| Some((*prefix, name.strip_prefix(prefix)?)))?;
    let is_errors = prefix.starts_with("errors.");
    // `http.95` is meant to be a percentile.
    let is_long = status.len() > 2 || status.ends_with('x');
    let is_status = is_long && status.starts_with(|c: char| c.is_ascii_digit());
    if !(is_errors || is_status) {
        return None;
    }
    let class = status.chars().next().filter(|class| ('2'..='5').contains(class));
    Some(NameMistake {
        problem: format!("`{status}` is no status of an answer"),
        expected: if is_errors {
            "a status from 200 to 599 or a class, such as errors.http_status.429 or \
             errors.http_status.4xx"
        } else {
            "a status from 200 to 599 or a class, such as http.429 or http.4xx"
        },
        suggestion: class.map(|class| format!("{prefix}{class}xx")),
    })
}

/// What stands before a status in a name.
const STATUS_PREFIXES: [&str; 2] = ["http.", "errors.http_status."];

fn suggested_statistic(mistyped: &str, known: &[&str]) -> Option<String> {
    let near = || nearest(mistyped, known.iter().copied()).map(str::to_owned);
    Percentile::meant_by(mistyped).or_else(near)
}

/// Returns the name that is nearest. The kind of an error may stand alone.
fn suggested(name: &str, known: &[String]) -> Option<String> {
    if error_kinds().any(|kind| kind == name) {
        return Some(format!("errors.{name}"));
    }
    let near = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
    near.or_else(|| nearest(name, error_kinds()).map(|kind| format!("errors.{kind}")))
}
