//! `loop`: paced, at a rate that changes, or as fast as it goes.

use super::context::Context;
use super::statement::{UserSteps, requests};
use super::tree::{Call, Expr};
use super::value::{Amount, rate_text, seconds_text};
use crate::expected::one_of;
use crate::yaml::Yaml;

/// The rate of a loop.
enum LoopRate {
    /// As fast as it goes.
    None,
    Constant(Amount),
    /// From one to the other over the time of the loop.
    Ramp(Amount, Amount),
    /// Rates, each for a time, again and again.
    Comb(Vec<(Amount, Amount)>),
}

/// The options of a loop.
struct LoopOptions {
    time: Amount,
    rate: LoopRate,
    is_poisson: bool,
}

/// Translates a loop, which is in `depth` other loops.
pub(super) fn translate(
    user: &mut UserSteps,
    cx: &mut Context<'_, '_>,
    expr: &Expr,
    call: &Call,
    depth: usize,
) -> Vec<Yaml> {
    let iterators = cx.iterators.len();
    let Some(options) = read_options(cx, expr, call) else { return Vec::new() };
    let needed = if matches!(options.rate, LoopRate::Comb(_)) { 2 } else { 1 };
    let mut steps = Vec::new();
    if depth + needed > LOOPS_MAX {
        let remedy = format!("loops may be nested {LOOPS_MAX} deep: write it with fewer");
        cx.translator.not_supported(&expr.span, "loop", remedy);
        steps.push(wait(&options.time));
    } else {
        steps.extend(user.enter_loop(&call.body));
        let was_paced =
            std::mem::replace(&mut user.is_paced, !matches!(options.rate, LoopRate::None));
        let mut body = user.list(cx, &call.body, depth + needed);
        body.extend(user.leave_turn(&call.body));
        user.is_paced = was_paced;
        if call.body.iter().any(requests) {
            user.goes_on_after_errors();
        }
        cx.translator.translated(&expr.span, "loop");
        steps.extend(turns(&options, body));
    }
    cx.iterators.truncate(iterators);
    user.takes(options.time, depth);
    steps
}

/// Reads the options. `None` after a mistake, or if the loop is left out.
fn read_options(cx: &mut Context<'_, '_>, expr: &Expr, call: &Call) -> Option<LoopOptions> {
    let (mut time, mut rate, mut is_poisson) = (None, Some(LoopRate::None), false);
    let is_paced = call.option("rate").or(call.option("think_time")).is_some();
    for option in &call.options {
        let (span, value) = (&option.span, &option.value);
        match &*option.key {
            "time" => time = Some(cx.time(value, "the time of the loop")),
            "rate" | "think_time" if mentions(value, &cx.iterators) => {
                let remedy = "a rate cannot change with a turn: write a `ramp`, or a loop for each";
                cx.translator.not_supported(span, "loop rate", remedy);
                rate = None;
            }
            "rate" => rate = read_rate(cx, value),
            "think_time" => rate = read_think_time(cx, value),
            "parallel" => read_parallel(cx, option.span.clone(), value, is_paced),
            "iterator" => match value.text() {
                Some(name) => {
                    cx.iterators.push(name.to_owned());
                    cx.translator.translated(span, "loop iterator");
                }
                None => cx.translator.mistake(span, "this is not a name", "expected a text"),
            },
            "spawn" if value.word() == Some("false") => {
                cx.translator.translated(span, "loop spawn")
            }
            "spawn" => {
                let how = "MZBench takes each turn in a process of its own; the turns of the \
                           scenario follow one another: a late one counts its latency from when it \
                           was due";
                cx.translator.approximated(span, "loop spawn", how);
            }
            "poisson" if value.word() == Some("false") => {
                cx.translator.translated(span, "loop poisson");
            }
            "poisson" => {
                is_poisson = true;
                let how = "the distances of turns vary evenly, by at most half of one, and not \
                           exponentially; the rate is the same";
                cx.translator.approximated(span, "loop poisson", how);
            }
            "while" => {
                let remedy = "a loop of the scenario ends by its time: shorten it, or stop the run \
                              with `throng ctl`";
                cx.translator.not_supported(span, "loop while", remedy);
            }
            "" => {
                let label = "expected a name and a value, `{time, {10, sec}}`";
                cx.translator.mistake(span, "this is not an option", label);
            }
            key => {
                let label = one_of(key, &OPTIONS);
                cx.translator.mistake(span, format!("a loop has no option `{key}`"), label);
            }
        }
    }
    let head = expr.span.start..expr.span.start + "loop".len().min(expr.span.len());
    let Some(time) = time else {
        cx.translator.mistake(&head, "this loop has no `time`", "for example `time = 1 min`");
        return None;
    };
    if call.body.is_empty() {
        cx.translator.mistake(&head, "this loop has no statements", "add some below it");
        return None;
    }
    let (time, rate) = (time?, rate?);
    if time.value <= 0.0 {
        cx.translator.not_needed(&expr.span, "loop", "its time is zero");
        return None;
    }
    Some(LoopOptions { time, rate, is_poisson })
}

/// Reports whether a value depends on the turn of a loop.
fn mentions(value: &Expr, iterators: &[String]) -> bool {
    use super::tree::ExprKind;
    match &value.kind {
        ExprKind::Quantity(inner, _) => mentions(inner, iterators),
        ExprKind::List(items) => items.iter().any(|item| mentions(item, iterators)),
        ExprKind::Call(call) => {
            let name = call.arguments.first().and_then(Expr::text);
            let is_variable = ["var", "numvar"].contains(&&*call.name);
            is_variable && name.is_some_and(|name| iterators.iter().any(|known| known == name))
                || call.arguments.iter().any(|argument| mentions(argument, iterators))
        }
        _ => false,
    }
}

fn read_parallel(
    cx: &mut Context<'_, '_>,
    span: std::ops::Range<usize>,
    value: &Expr,
    is_paced: bool,
) {
    match cx.plain_count(value, "`parallel`") {
        Some(count) if count <= 1.0 => cx.translator.translated(&span, "loop parallel"),
        Some(_) if is_paced => {
            let how = "the turns of a user follow one another: a late one counts its latency from \
                       when it was due";
            cx.translator.approximated(&span, "loop parallel", how);
        }
        Some(count) => {
            let remedy =
                format!("make the pool {count} times as large: a user takes one turn at a time");
            cx.translator.not_supported(&span, "loop parallel", remedy);
        }
        None => {}
    }
}

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
            cx.translator.mistake(&value.span, "this ramp cannot be read", label);
            return None;
        }
        Some(("comb", parts)) if !parts.is_empty() && parts.len() % 2 == 0 => {
            let mut read = |pair: &[Expr]| {
                let (rate, time) = (cx.rate(&pair[0], what), cx.time(&pair[1], what));
                Some((rate?, time?))
            };
            let pairs: Vec<_> = parts.chunks(2).map(&mut read).collect();
            comb(cx, value, pairs)?
        }
        Some(("comb", _)) => {
            let label = "expected rates and times: `comb(1 rps, 10 sec, 5 rps, 1 sec)`";
            cx.translator.mistake(&value.span, "this comb cannot be read", label);
            return None;
        }
        Some(("think_time", [_, _])) => return read_think_time(cx, value),
        _ => LoopRate::Constant(cx.rate(value, what)?),
    };
    cx.translator.approximated(&value.span, "loop rate", FIRST_TURN);
    Some(rate)
}

/// Reads `think_time(10 sec, 5 rps)`: a second of turns, then a pause.
fn read_think_time(cx: &mut Context<'_, '_>, value: &Expr) -> Option<LoopRate> {
    use super::tree::ExprKind;
    let parts = match (&value.kind, value.named()) {
        (_, Some(("think_time", parts))) => parts,
        (ExprKind::List(parts), _) => &parts[..],
        _ => &[],
    };
    let [pause, rate] = parts else {
        let label = "expected `think_time(10 sec, 5 rps)`";
        cx.translator.mistake(&value.span, "this think time cannot be read", label);
        return None;
    };
    let (pause, rate) = (cx.time(pause, "the think time"), cx.rate(rate, "the rate of the loop"));
    let none = Amount { value: 0.0, text: "0/s".to_owned() };
    let parts = vec![Some((rate?, Amount::seconds(1.0))), Some((none, pause?))];
    let comb = comb(cx, value, parts)?;
    cx.translator.approximated(&value.span, "loop think_time", FIRST_TURN);
    Some(comb)
}

/// Returns a comb of at least a moment.
fn comb(
    cx: &mut Context<'_, '_>,
    value: &Expr,
    parts: Vec<Option<(Amount, Amount)>>,
) -> Option<LoopRate> {
    let parts: Vec<_> = parts.into_iter().collect::<Option<_>>()?;
    let parts: Vec<_> = parts.into_iter().filter(|(_, time)| time.value > 0.0).collect();
    if parts.is_empty() || parts.len() > COMB_MAX {
        let label = format!("expected 1 to {COMB_MAX} times of more than 0");
        cx.translator.mistake(&value.span, "this comb cannot be read", label);
        return None;
    }
    Some(LoopRate::Comb(parts))
}

/// Returns the steps of a loop with this body.
fn turns(options: &LoopOptions, body: Vec<Yaml>) -> Vec<Yaml> {
    let time = &options.time;
    if body.is_empty() {
        return vec![wait(time)];
    }
    match &options.rate {
        LoopRate::None => {
            let repeat = [("for", Yaml::plain(&time.text)), ("do", Yaml::list(body))];
            vec![Yaml::entry("repeat", Yaml::map(repeat))]
        }
        LoopRate::Constant(rate) => vec![every(rate, time, &body, options.is_poisson)],
        LoopRate::Ramp(from, to) if from.value == to.value => {
            vec![every(from, time, &body, options.is_poisson)]
        }
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
            vec![every_at(rate, time, &body)]
        }
        LoopRate::Comb(parts) => comb_turns(parts, time.value, &body),
    }
}

/// Returns whole turns of a comb, and then as much of one as there is time for.
fn comb_turns(parts: &[(Amount, Amount)], time: f64, body: &[Yaml]) -> Vec<Yaml> {
    let period: f64 = parts.iter().map(|(_, time)| time.value).sum();
    let whole = (time / period + 1e-9).floor();
    let part = |(rate, time): &(Amount, Amount)| every(rate, time, body, false);
    let once: Vec<Yaml> = parts.iter().map(part).collect();
    let mut steps = match whole as u64 {
        0 => Vec::new(),
        1 => once,
        times => {
            let repeat = [("times", Yaml::plain(times)), ("do", Yaml::list(once))];
            vec![Yaml::entry("repeat", Yaml::map(repeat))]
        }
    };
    let mut rest = time - whole * period;
    for (rate, time) in parts {
        if rest < 1e-6 {
            break;
        }
        let taken = time.value.min(rest);
        rest -= taken;
        steps.push(every(rate, &Amount::seconds(taken), body, false));
    }
    steps
}

/// Returns a loop at a constant rate; a rate of zero is a pause.
fn every(rate: &Amount, time: &Amount, body: &[Yaml], varies: bool) -> Yaml {
    if rate.value <= 0.0 {
        return wait(time);
    }
    if varies {
        let period = seconds_text((1.0 / rate.value).max(1e-9));
        let every = [
            ("period", Yaml::plain(format!("{period} ±50%"))),
            ("for", Yaml::plain(&time.text)),
            ("do", Yaml::list(body.iter().cloned())),
        ];
        return Yaml::entry("every", Yaml::map(every));
    }
    every_at(Yaml::plain(&rate.text), time, body)
}

fn every_at(rate: Yaml, time: &Amount, body: &[Yaml]) -> Yaml {
    let body = Yaml::list(body.iter().cloned());
    let every = [("rate", rate), ("for", Yaml::plain(&time.text)), ("do", body)];
    Yaml::entry("every", Yaml::map(every))
}

fn wait(time: &Amount) -> Yaml {
    Yaml::entry("wait", Yaml::plain(&time.text))
}

/// When the turns of a paced loop are due.
const FIRST_TURN: &str = "MZBench takes the first turn at a random moment of the first period, and \
                          the others as far behind it; the scenario takes the first at once";

/// Options of a loop.
const OPTIONS: [&str; 8] =
    ["time", "rate", "think_time", "parallel", "iterator", "spawn", "poisson", "while"];

/// Loops in loops of a scenario.
const LOOPS_MAX: usize = 4;

/// Parts of a comb.
const COMB_MAX: usize = 32;
