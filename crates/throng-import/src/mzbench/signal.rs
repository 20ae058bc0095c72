//! Signals: one user gives them, and others wait for them.

use std::ops::Range;

use super::context::Context;
use super::statement::value_is_positive;
use super::tree::{Expr, ExprKind};
use crate::names::in_letters;
use crate::yaml::Yaml;

/// Translates `set_signal`.
pub(super) fn give(cx: &mut Context<'_, '_>, span: &Range<usize>, name: &Expr) -> Vec<Yaml> {
    let Some(name) = cue_name(cx, name) else { return Vec::new() };
    cx.signals.given.insert(name.clone());
    if cx.signals_known.as_ref().is_some_and(|known| !known.contains(&name)) {
        cx.translator.not_needed(span, "set_signal", "no step waits for this signal");
        return Vec::new();
    }
    cx.translator.translated(span, "set_signal");
    vec![Yaml::entry("signal", Yaml::text(name))]
}

/// Translates `wait_signal`: `rest` are the number of signals and the time-out.
pub(super) fn wait_for(
    cx: &mut Context<'_, '_>,
    span: &Range<usize>,
    name: &Expr,
    rest: &[Expr],
) -> Vec<Yaml> {
    let Some(name) = cue_name(cx, name) else { return Vec::new() };
    let count = rest.first().map(|count| cx.plain_count(count, "the number of signals"));
    let timeout = rest.get(1).map(|time| cx.time(time, "the time-out"));
    cx.signals.awaited.insert(name.clone());
    if cx.signals_known.as_ref().is_some_and(|known| !known.contains(&name)) {
        let remedy = "no step of the scenario gives this signal: add `signal` to the steps \
                      that it stands for";
        cx.translator.not_supported(span, "wait_signal", remedy);
        return Vec::new();
    }
    if count.flatten().is_some_and(|count| count > 1.0) {
        let remedy = "the scenario waits for the first signal only; to wait for several users, \
                      use `barrier: {name, users}`";
        cx.translator.not_supported(span, "wait_signal count", remedy);
    } else {
        cx.translator.translated(span, "wait_signal");
    }
    let value = match timeout.flatten().filter(value_is_positive) {
        Some(timeout) => {
            Yaml::map([("name", Yaml::text(name)), ("timeout", Yaml::plain(timeout.text))])
        }
        None => Yaml::text(name),
    };
    vec![Yaml::entry("wait_for", value)]
}

/// Returns the name of a signal, in the letters that one may have.
fn cue_name(cx: &mut Context<'_, '_>, name: &Expr) -> Option<String> {
    let text = match &name.kind {
        ExprKind::Number(number) => number.to_string(),
        ExprKind::Text(text) | ExprKind::Word(text) => text.clone(),
        _ => {
            let label = format!("expected a text, found {}", name.describe());
            cx.translator.mistake(&name.span, "this is not the name of a signal", label);
            return None;
        }
    };
    Some(in_letters(&text, "s_", NAME_CHARS_MAX))
}

/// Longest name of a signal that an import writes.
const NAME_CHARS_MAX: usize = 28;
