//! Think times written as a law: `uniform(1s, 3s)`, `exponential(2s)`, `lognormal(...)`.

use std::ops::Range;

use throng_base::units::parse_duration;

use super::super::prelude::*;
use super::{Think, Wait};
use crate::program::{ThinkLaw, ThinkTime};
use crate::scenario::step::ReadAction;

/// An argument: `2s`, or `max 30s`.
struct Argument<'a> {
    label: &'a str,
    value: Duration,
    span: Range<usize>,
}

/// Reads a law and its arguments.
pub(super) fn read(reader: &mut Reader<'_>, node: &Node) -> ReadAction {
    let text = node.scalar()?;
    let (name, rest) = text.split_once('(')?;
    let inner_begin = name.len() + 1;
    let name = name.trim();
    let Some((_, _, example)) = LAWS.iter().rfind(|(law, ..)| *law == name) else {
        let mut names: Vec<_> = LAWS.iter().map(|(law, ..)| *law).collect();
        names.dedup();
        let span = reader.inner_span(node, 0..inner_begin - 1);
        reader.unknown(span, &format!("think time `{name}`"), name, &names);
        return None;
    };
    let Some(inner) = rest.trim_end().strip_suffix(')') else {
        let span = node.span.clone();
        reader.error(span, format!("`{name}` has no closing `)`"), format!("such as `{example}`"));
        return None;
    };
    let arguments = read_arguments(reader, node, inner, inner_begin)?;
    let labels: Vec<_> = arguments.iter().map(|argument| argument.label).collect();
    if !LAWS.iter().any(|(law, known, _)| *law == name && *known == labels) {
        let span = reader.inner_span(node, inner_begin..inner_begin + inner.len());
        let title = format!("`{name}` takes other values");
        reader.error(span, title, format!("such as `{example}`"));
        return None;
    }
    build(reader, name, &arguments)
}

/// Returns the law that `1-3s`, `1s..3s` or `1s to 3s` means.
pub(super) fn of_range(text: &str) -> Option<String> {
    let (low, high) = ["..", "-", "to"].iter().find_map(|sign| text.split_once(sign))?;
    let (low, high) = (low.trim(), high.trim());
    let unit = high.trim_start_matches(|sign: char| sign.is_ascii_digit() || sign == '.');
    let is_bare = low.bytes().all(|sign| sign.is_ascii_digit() || sign == b'.');
    let low = if is_bare { format!("{low}{unit}") } else { low.to_owned() };
    let is_known = [low.as_str(), high].iter().all(|time| parse_duration(time).is_ok());
    is_known.then(|| format!("uniform({low}, {high})"))
}

/// Reads `median 2s, p95 10s`; `begin` is the place of `inner` in the text of `node`.
fn read_arguments<'a>(
    reader: &mut Reader<'_>,
    node: &Node,
    inner: &'a str,
    begin: usize,
) -> Option<Vec<Argument<'a>>> {
    let (mut arguments, mut at) = (Vec::new(), begin);
    for part in inner.split(',') {
        let text = part.trim();
        let from = at + (part.len() - part.trim_start().len());
        at += part.len() + 1;
        let is_label = text.starts_with(|c: char| c.is_ascii_alphabetic());
        let (label, value) = match text.split_once(' ') {
            Some((label, value)) if is_label => (label, value),
            _ => ("", text),
        };
        let value_from = from + text.len() - value.len();
        match parse_duration(value) {
            Ok(value) => {
                let span = reader.inner_span(node, from..from + text.len());
                arguments.push(Argument { label, value, span });
            }
            Err(error) => {
                let span = value_from + error.span.start..value_from + error.span.end;
                let span = reader.inner_span(node, span);
                let title = format!("a value of `wait` must be {}", error.expected);
                reader.error(span, title, error.problem.to_string());
                return None;
            }
        }
    }
    Some(arguments)
}

/// Builds the step. The labels of the arguments are those of the law.
fn build(reader: &mut Reader<'_>, name: &str, arguments: &[Argument<'_>]) -> ReadAction {
    let [first, others @ ..] = arguments else { return None };
    let zero = arguments.iter().find(|argument| argument.value.is_zero());
    if let Some(zero) = zero.filter(|zero| name != "uniform" || zero.span != first.span) {
        reader.error(zero.span.clone(), "this think time is zero", "must be more than 0s");
        return None;
    }
    if name == "uniform" {
        let (low, high) = (first.value, others.first()?.value);
        if low > high {
            reader.error(first.span.clone(), "`uniform` goes down", "the shorter one comes first");
            return None;
        }
        let sum = low.saturating_add(high);
        let jitter = (high - low).as_secs_f64() / sum.as_secs_f64();
        return Some(Box::new(Wait { span: sum / 2, jitter }));
    }
    let law = match others.iter().find(|argument| argument.label == "p95") {
        None => ThinkLaw::Exponential { mean: first.value },
        Some(p95) if p95.value <= first.value => {
            let label = "must be more than the median";
            reader.error(p95.span.clone(), "`p95` is not above the median", label);
            return None;
        }
        Some(p95) => ThinkLaw::LogNormal { median: first.value, p95: p95.value },
    };
    let most = others.iter().find(|argument| argument.label == "max");
    if let Some(most) = most.filter(|most| most.value < first.value) {
        let label = "must be at least the first value";
        reader.error(most.span.clone(), "`max` is too short", label);
        return None;
    }
    Some(Box::new(Think(ThinkTime { law, most: most.map(|most| most.value) })))
}

/// Each law with the labels of its arguments, and an example.
const LAWS: [(&str, &[&str], &str); 5] = [
    ("uniform", &["", ""], "uniform(1s, 3s)"),
    ("exponential", &[""], "exponential(2s)"),
    ("exponential", &["", "max"], "exponential(2s, max 30s)"),
    ("lognormal", &["median", "p95"], "lognormal(median 2s, p95 10s)"),
    ("lognormal", &["median", "p95", "max"], "lognormal(median 2s, p95 10s, max 30s)"),
];
