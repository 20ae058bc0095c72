//! `{{ ... }}` in texts.

use crate::source::Span;
use crate::text::{RANDOM_CHARS_MAX, append, escape, random_digits};

use crate::translator::Translator;

use super::variables::Variables;

/// Returns the text with its variables in the scenario's form. Reports those that the scenario
/// cannot have.
pub(super) fn translate(
    translator: &mut Translator<'_>,
    variables: &mut Variables,
    span: &Span,
    text: &str,
) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        append(&mut out, &escape(before));
        let Some((inner, after)) = after.split_once("}}") else {
            let label = "expected `}}` at its end";
            translator.mistake(span, "a variable has no end", label);
            return out;
        };
        append(&mut out, &variable(translator, variables, span, inner.trim()));
        rest = after;
    }
    append(&mut out, &escape(rest));
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
) -> String {
    let construct = format!("{{{{ {name} }}}}");
    let call = name.split_once('(').map(|(name, arguments)| {
        (name.trim(), arguments.trim_end().strip_suffix(')').unwrap_or(arguments).trim())
    });
    match call.unwrap_or((name, "")) {
        ("$uuid", "") => {
            translator.translated(span, construct);
            return "${uuid()}".to_owned();
        }
        ("$randomNumber", arguments) if call.is_some() => {
            if let Some((least, most)) = range(arguments) {
                translator.translated(span, construct);
                return format!("${{random({least},{most})}}");
            }
            let label = "expected two whole numbers from 0: `{{ $randomNumber(1, 100) }}`";
            translator.mistake(span, format!("`{construct}` cannot be read"), label);
            return String::new();
        }
        ("$randomString", length) => {
            let length = match length {
                "" => Some(RANDOM_STRING_CHARS),
                length => length.parse().ok(),
            };
            let length = length.filter(|length| (1..=RANDOM_CHARS_MAX).contains(length));
            let Some(length) = length else {
                let label = format!("expected a length up to {RANDOM_CHARS_MAX}");
                translator.mistake(span, format!("`{construct}` cannot be read"), label);
                return String::new();
            };
            let how = "the scenario's text is as long, of digits and not of letters";
            translator.approximated(span, construct, how);
            return random_digits(length);
        }
        _ => {}
    }
    let of_environment = ["$processEnvironment.", "$env.", "$environment."]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix));
    if let Some(name) = of_environment {
        translator.translated(span, construct);
        return variables.environment(name);
    }
    if translator.expansion.is_over() {
        return String::new();
    }
    if let Some(value) = variables.value(name) {
        let is_small = translator.expansion.charge(span, value.len());
        return if is_small { value } else { String::new() };
    }
    let (in_its_place, what_to_do) = if name.starts_with('$') {
        ("nothing", "write the value out, or use a variable of docs/scenario.md")
    } else {
        ("its name", "nothing in this file sets it; add a step `set`, or a column of `data`")
    };
    let remedy = format!("{what_to_do}; {in_its_place} stands in its place");
    translator.not_supported(span, construct, remedy);
    if name.starts_with('$') { String::new() } else { escape(name) }
}

/// Parses the arguments of `$randomNumber`: its default is 0 or 1.
fn range(arguments: &str) -> Option<(u64, u64)> {
    let number = |text: &str| text.trim().parse::<u64>().ok().filter(|n| *n <= NUMBER_MAX);
    let (least, most) = match arguments.split_once(',') {
        Some((least, most)) => (number(least)?, number(most)?),
        None if arguments.is_empty() => (0, 1),
        None => (0, number(arguments)?),
    };
    (least <= most).then_some((least, most))
}

/// The largest number that a script of JavaScript counts exactly.
const NUMBER_MAX: u64 = 1 << 53;

/// The length of `$randomString()`.
const RANDOM_STRING_CHARS: u64 = 10;
