//! `loop`: paced, at a rate that changes, or as fast as it goes.

use super::context::Context;
use super::rows::LOOP_OPTIONS;
use super::statement::{UserSteps, requests};
use super::tree::{Call, Expr, ExprKind};
use super::value::{Amount, rate_text};
use crate::expected::one_of;
use crate::row::Row;
use crate::step;
use crate::yaml::Yaml;

/// The rate of a loop.
enum LoopRate {
    /// As fast as it goes.
    None,
    Constant(Amount),
    /// From one to the other over the time of the loop.
    Ramp(Amount, Amount),
}

/// The options of a loop.
struct LoopOptions {
    time: Amount,
    rate: LoopRate,
}

/// Translates a loop, which is in `depth` other loops.
pub(super) fn translate(
    user: &mut UserSteps,
    cx: &mut Context<'_, '_>,
    expr: &Expr,
    call: &Call,
    depth: usize,
) -> Vec<Yaml> {
    let Some(options) = read_options(cx, expr, call) else { return Vec::new() };
    let mut steps = Vec::new();
    if depth == LOOPS_MAX {
        let remedy = format!("loops may be nested {LOOPS_MAX} deep: write it with fewer");
        cx.translator.not_supported(&expr.span, "loop", remedy);
        steps.push(step::wait(&options.time.text));
    } else {
        steps.extend(user.enter_loop(&call.body));
        let was_paced =
            std::mem::replace(&mut user.is_paced, !matches!(options.rate, LoopRate::None));
        let mut body = user.list(cx, &call.body, depth + 1);
        body.extend(user.leave_turn(&call.body));
        user.is_paced = was_paced;
        if call.body.iter().any(requests) {
            user.goes_on = true;
        }
        cx.translator.translated(&expr.span, "loop");
        steps.push(turns(&options, body));
    }
    user.takes(options.time, depth);
    steps
}

/// Reads the options. `None` after a mistake, or if the loop is left out.
fn read_options(cx: &mut Context<'_, '_>, expr: &Expr, call: &Call) -> Option<LoopOptions> {
    let (mut time, mut rate) = (None, Some(LoopRate::None));
    for option in &call.options {
        let (span, value) = (&option.span, &option.value);
        match &*option.key {
            "time" => time = Some(cx.time(value, "the time of the loop")),
            "rate" => rate = read_rate(cx, value),
            "iterator" => {
                if let Some(name) = value.text() {
                    let zero = Expr { span: value.span.clone(), kind: ExprKind::Number(0.0) };
                    cx.defaults.insert(name.to_owned(), zero);
                }
                cx.translator.has_row(span, LOOP_OPTIONS, "loop iterator");
            }
            "" => {
                let label = "expected a name and a value, `{time, {10, sec}}`";
                cx.translator.mistake(span, "this is not an option", label);
            }
            key if value.word() == Some("false") && ["spawn", "poisson"].contains(&key) => {
                cx.translator.translated(span, format!("loop {key}"));
            }
            key if cx.translator.has_row(span, LOOP_OPTIONS, &format!("loop {key}")) => {}
            key => {
                let of_row = |row: &'static Row| row.construct.trim_start_matches("loop ");
                let known: Vec<_> =
                    ["time", "rate"].into_iter().chain(LOOP_OPTIONS.iter().map(of_row)).collect();
                let title = format!("a loop has no option `{key}`");
                cx.translator.mistake(span, title, one_of(key, &known));
            }
        }
    }
    let head = expr.span.start..expr.span.start + "loop".len().min(expr.span.len());
    let Some(time) = time else {
        return cx.translator.fail(&head, "this loop has no `time`", "for example `time = 1 min`");
    };
    if call.body.is_empty() {
        return cx.translator.fail(&head, "this loop has no statements", "add some below it");
    }
    let (time, rate) = (time?, rate?);
    if time.value <= 0.0 {
        return cx.translator.skip(&expr.span, "loop", "its time is zero");
    }
    Some(LoopOptions { time, rate })
}

/// Reads a rate. `None` after a mistake, or if the loop is left out.
fn read_rate(cx: &mut Context<'_, '_>, value: &Expr) -> Option<LoopRate> {
    let what = "the rate of the loop";
    let rate = match value.named() {
        Some(("ramp", [law, from, to])) if law.word() == Some("linear") => {
            let (from, to) = (cx.rate(from, what), cx.rate(to, what));
            let (from, to) = (from?, to?);
            if from.value > 0.0 && to.value <= 0.0 {
                let how = "the last rate is a thousandth of the first, and not 0";
                cx.translator.approximated(&value.span, "loop rate", how);
                return Some(LoopRate::Ramp(from, to));
            }
            LoopRate::Ramp(from, to)
        }
        Some(("ramp", _)) => {
            let label = "expected `ramp(linear, 1 rps, 10 rps)`";
            return cx.translator.fail(&value.span, "this ramp cannot be read", label);
        }
        Some((name, _))
            if cx.translator.has_row(&value.span, LOOP_OPTIONS, &format!("loop {name}")) =>
        {
            return None;
        }
        _ => LoopRate::Constant(cx.rate(value, what)?),
    };
    cx.translator.approximated(&value.span, "loop rate", FIRST_TURN);
    Some(rate)
}

/// Returns the step of a loop with this body.
fn turns(options: &LoopOptions, body: Vec<Yaml>) -> Yaml {
    let time = &options.time;
    if body.is_empty() {
        return step::wait(&time.text);
    }
    match &options.rate {
        LoopRate::None => step::repeat_for(&time.text, body),
        LoopRate::Constant(rate) => every(rate, time, body),
        LoopRate::Ramp(from, to) if from.value == to.value => every(from, time, body),
        LoopRate::Ramp(from, to) => {
            // The last rate must be more than zero.
            let to = match to.value > 0.0 {
                true => to.text.clone(),
                false => rate_text(from.value / 1000.0),
            };
            let rate = Yaml::map([
                ("from", Yaml::plain(&from.text)),
                ("to", Yaml::plain(to)),
                ("over", Yaml::plain(&time.text)),
            ]);
            step::every(("rate", rate), Some(time.text.clone()), body)
        }
    }
}

/// Returns a loop at a constant rate; a rate of zero is a pause.
fn every(rate: &Amount, time: &Amount, body: Vec<Yaml>) -> Yaml {
    match rate.value <= 0.0 {
        true => step::wait(&time.text),
        false => step::every(("rate", Yaml::plain(&rate.text)), Some(time.text.clone()), body),
    }
}

/// When the turns of a paced loop are due.
const FIRST_TURN: &str = "MZBench takes the first turn at a random moment of the first period, and \
                          the others as far behind it; the scenario takes the first at once";

/// Loops in loops of a scenario.
const LOOPS_MAX: usize = 4;
