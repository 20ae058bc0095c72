//! `{{ ... }}` in texts.

use crate::source::Span;
use crate::text::{RANDOM_CHARS_MAX, append, escape, random_digits};

use crate::translator::Translator;

use super::address::Part;
use super::variables::Variables;

/// Returns the text with its variables in the scenario's form. Reports those that the scenario
/// cannot have.
pub(super) fn translate(
    translator: &mut Translator<'_>,
    variables: &mut Variables,
    span: &Span,
    text: &str,
) -> String {
    text_of(&parts(translator, variables, span, text))
}

/// Returns the parts as a text of the scenario.
pub(super) fn text_of(parts: &[Part]) -> String {
    let mut out = String::new();
    for part in parts {
        match part {
            Part::Literal(text) => append(&mut out, &escape(text)),
            Part::Variable(variable) => append(&mut out, variable),
        }
    }
    out
}

/// Returns the parts of a text. Reports variables that the scenario cannot have.
pub(super) fn parts(
    translator: &mut Translator<'_>,
    variables: &mut Variables,
    span: &Span,
    text: &str,
) -> Vec<Part> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push(Part::Literal(before.to_owned()));
        let Some((inner, after)) = after.split_once("}}") else {
            let label = "expected `}}` at its end";
            translator.mistake(span, "a variable has no end", label);
            return out;
        };
        out.extend(variable(translator, variables, span, inner.trim()));
        rest = after;
    }
    out.push(Part::Literal(rest.to_owned()));
    out.retain(|part| *part != Part::Literal(String::new()));
    out
}

/// Returns the variable of a text that is nothing else.
pub(super) fn only_variable(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("{{")?.strip_suffix("}}")?;
    (!inner.contains("{{")).then(|| inner.trim())
}

/// Returns the bounds of `$randomNumber(1, 3)`.
pub(super) fn random_number(variable: &str) -> Option<(u64, u64)> {
    let arguments = variable.strip_prefix("$randomNumber(")?.strip_suffix(')')?;
    range(arguments)
}

/// Returns what stands in the place of `{{ name }}`.
fn variable(
    translator: &mut Translator<'_>,
    variables: &mut Variables,
    span: &Span,
    name: &str,
) -> Vec<Part> {
    let construct = format!("{{{{ {name} }}}}");
    let call = name.split_once('(').map(|(name, arguments)| {
        (name.trim(), arguments.trim_end().strip_suffix(')').unwrap_or(arguments).trim())
    });
    if let Some((function, arguments)) = call {
        return function_call(translator, variables, span, (function, arguments), construct);
    }
    let of_environment = ["$processEnvironment.", "$env."];
    let of_environment = of_environment.iter().find_map(|prefix| name.strip_prefix(prefix));
    if let Some(name) = of_environment {
        if variables.is_news(span, name) {
            translator.translated(span, construct);
        }
        return vec![Part::Variable(format!("${{env.{name}}}"))];
    }
    if translator.expansion.is_over() {
        return Vec::new();
    }
    if let Some(value) = variables.value(name) {
        let bytes = value.iter().map(Part::bytes).sum();
        if !translator.expansion.charge(span, bytes) {
            return Vec::new();
        }
        if name == "$uuid" {
            translator.translated(span, construct);
        }
        return value;
    }
    if OF_THE_TOOL.contains(&name) {
        let remedy = "write the value out, or use a variable of docs/scenario.md; nothing stands \
                      in its place";
        return translator.omit(span, construct, remedy);
    }
    let why = if variables.is_config {
        "Artillery fills `config` in before the run, when only `$env` has values: it sends \
         `undefined`, and so does the scenario"
    } else if variables.has_functions {
        let remedy = "nothing in this file sets it; add a step `set`, or a column of `data`; its \
                      name stands in its place";
        translator.not_supported(span, construct, remedy);
        return vec![Part::Literal(name.to_owned())];
    } else {
        "nothing in this file sets it: Artillery sends `undefined`, and so does the scenario"
    };
    if variables.is_news(span, name) {
        translator.suspicious(span, construct, why);
    }
    vec![Part::Literal(UNDEFINED.to_owned())]
}

/// Returns what stands in the place of a call.
fn function_call(
    translator: &mut Translator<'_>,
    variables: &mut Variables,
    span: &Span,
    (function, arguments): (&str, &str),
    construct: String,
) -> Vec<Part> {
    let drawn = match function {
        "$randomNumber" => {
            let Some((least, most)) = range(arguments) else {
                let label = "expected two whole numbers from 0: `{{ $randomNumber(1, 100) }}`";
                return translator.fail(span, format!("`{construct}` cannot be read"), label);
            };
            translator.translated(span, &construct);
            format!("${{random({least},{most})}}")
        }
        "$randomString" => {
            let length = match arguments {
                "" => Some(RANDOM_STRING_CHARS),
                length => length.parse().ok(),
            };
            let length = length.filter(|length| (1..=RANDOM_CHARS_MAX).contains(length));
            let Some(length) = length else {
                let label = format!("expected a length up to {RANDOM_CHARS_MAX}");
                return translator.fail(span, format!("`{construct}` cannot be read"), label);
            };
            let how = "the scenario's text is as long, of digits and not of letters";
            translator.approximated(span, &construct, how);
            random_digits(length)
        }
        _ => {
            let remedy = "write the value out, or use a variable of docs/scenario.md; nothing \
                          stands in its place";
            return translator.omit(span, construct, remedy);
        }
    };
    if variables.is_config && variables.is_news(span, function) {
        let how = "Artillery draws it once, before the run, and the scenario each time";
        translator.approximated(span, construct, how);
    }
    vec![Part::Variable(drawn)]
}

/// Parses the arguments of `$randomNumber`, in any order: its default is 0 or 1.
fn range(arguments: &str) -> Option<(u64, u64)> {
    let number = |text: &str| text.trim().parse::<u64>().ok().filter(|n| *n <= NUMBER_MAX);
    let (one, other) = match arguments.split_once(',') {
        Some((one, other)) => (number(one)?, number(other)?),
        None if arguments.is_empty() => (0, 1),
        None => (0, number(arguments)?),
    };
    Some((one.min(other), one.max(other)))
}

/// What JavaScript writes for a variable that has no value.
pub(super) const UNDEFINED: &str = "undefined";

/// Values that Artillery has by itself, and a scenario lacks.
const OF_THE_TOOL: [&str; 4] = ["$testId", "$dirname", "$scenarioFile", "$environment"];

/// The largest number that a script of JavaScript counts exactly.
const NUMBER_MAX: u64 = 1 << 53;

/// The length of `$randomString()`.
const RANDOM_STRING_CHARS: u64 = 10;
