//! Pools: classes of users, and the phases that start them.

use throng_base::units::show_count;
use throng_load::scenario::Scheme;

use super::context::Context;
use super::start::{Start, StartCurve, chain};
use super::statement::UserSteps;
use super::tree::{Call, Expr};
use super::value::Amount;
use crate::draft::{Draft, DraftClass};
use crate::expected::near_or;
use crate::phase::finish;
use crate::url::server_name;
use crate::weights::{WEIGHT_MAX, Weights};
use crate::yaml::Yaml;

/// The options of a pool.
struct Pool<'e> {
    size: f64,
    start: Start,
    call: &'e Call,
    expr: &'e Expr,
}

/// Translates the pools.
pub(super) fn translate(cx: &mut Context<'_, '_>, pools: &[(&Expr, &Call)]) -> Option<Draft> {
    let first = pools.first().map_or(0, |(expr, _)| expr.span.start);
    let mut comments = cx.comments_above(first);
    let pools: Vec<Pool<'_>> =
        pools.iter().filter_map(|(expr, call)| read_pool(cx, expr, call)).collect();
    if !cx.translator.mistakes.is_empty() {
        return None;
    }
    if pools.is_empty() {
        let mut notes = cx.translator.entries.iter().rev();
        let label = notes.find(|entry| entry.construct == "worker_type");
        let label = label.map(|entry| entry.note.clone()).unwrap_or_default();
        return cx.translator.fail(&(first..first), "no pool makes traffic that throng has", label);
    }
    if let [pool] = &pools[..] {
        let header = pool.call.options.iter().map(|option| option.span.end).max();
        comments.extend(cx.comments_to(header.unwrap_or(first)));
    }
    let (classes, length) = users(cx, &pools);
    let mut load = load(cx, &pools);
    if length.value > 0.0 {
        load.push(finish(&length.text));
    }
    comments.extend(cx.comments_to(usize::MAX));
    Some(Draft {
        comments,
        target: target(cx),
        params: cx.params(&load, &classes),
        load,
        classes,
        ..Draft::default()
    })
}

fn target(cx: &mut Context<'_, '_>) -> String {
    let (span, host, port) = cx.server.clone().unwrap_or((0..0, "127.0.0.1".to_owned(), 4444));
    let options = cx.translator.options;
    if let Some(target) = &options.target
        && target.scheme != Scheme::Tcp
    {
        let title = format!("a tcp_worker cannot connect to `{target}`");
        cx.translator.mistake(&span, title, "expected a target such as tcp://127.0.0.1:4444");
    }
    cx.translator.target(&span, &format!("tcp://{}", server_name(&host, port)), "")
}

/// Reads the options of a pool. `None` if it has mistakes, or no traffic.
fn read_pool<'e>(cx: &mut Context<'_, '_>, expr: &'e Expr, call: &'e Call) -> Option<Pool<'e>> {
    let (mut size, mut worker, mut start) = (None, None, Some(Start::AtOnce));
    for option in &call.options {
        let span = &option.span;
        match &*option.key {
            "size" => {
                size = Some(cx.plain_count(&option.value, "`size`"));
                cx.translator.translated(span, "size");
            }
            "worker_type" => worker = Some((span.clone(), option.value.text().unwrap_or_default())),
            "worker_start" => start = read_start(cx, &option.value),
            "per_node" => {
                let why = "throng has no nodes; start it on each machine";
                cx.translator.not_needed(span, "per_node", why);
            }
            "" => {
                let label = "expected a name and a value, `{size, 10}`";
                cx.translator.mistake(span, "this is not an option", label);
            }
            key => {
                let known = ["size", "per_node", "worker_type", "worker_start"];
                let label = near_or(
                    key,
                    known,
                    "expected `size`, `per_node`, `worker_type` or `worker_start`",
                );
                cx.translator.mistake(span, format!("a pool has no option `{key}`"), label);
            }
        }
    }
    let head = expr.span.start..expr.span.start + "pool".len().min(expr.span.len());
    for (is_there, key, example) in [
        (size.is_some(), "size", "size = 100"),
        (worker.is_some(), "worker_type", "worker_type = tcp_worker"),
    ] {
        if !is_there {
            let title = format!("this pool has no `{key}`");
            cx.translator.mistake(&head, title, format!("for example `{example}`"));
        }
    }
    let (size, (worker_span, worker)) = (size?, worker?);
    if !is_tcp_worker(cx, &worker_span, worker) {
        return None;
    }
    if call.body.is_empty() {
        return cx.translator.fail(&head, "this pool has no statements", "add some below it");
    }
    let (start, size) = (start?, size?);
    if start.moment_of(size) > super::value::TIME_MAX_S {
        let label = "expected a start of at most a year";
        return cx.translator.fail(&head, "the last worker of this pool starts too late", label);
    }
    Some(Pool { size, start, call, expr })
}

/// Reports a worker, and whether it is the one that can be translated.
fn is_tcp_worker(cx: &mut Context<'_, '_>, span: &std::ops::Range<usize>, worker: &str) -> bool {
    let remedy = match worker {
        "tcp_worker" => {
            cx.translator.translated(span, "worker_type");
            return true;
        }
        "dummy_worker" => {
            let why = "a dummy_worker makes no traffic; its pool is left out";
            return cx.translator.skip(span, "worker_type", why);
        }
        "http_worker" | "simple_http_worker" => {
            "write the requests as steps: `get`, `post`, `put`, `delete`".to_owned()
        }
        "tcpkali_worker" => "import the command line of tcpkali in place of this file".to_owned(),
        other => format!(
            "the code of `{other}` is not here; only tcp_worker is known: write what it sends and \
             expects as steps"
        ),
    };
    cx.translator.omit(span, "worker_type", remedy)
}

/// Reads a `worker_start`.
fn read_start(cx: &mut Context<'_, '_>, value: &Expr) -> Option<Start> {
    let expected = "expected `linear(10 rps)`, `poisson(10 rps)`, `pow(2, 200, 3 sec)` or \
                    `exp(2, 1 sec)`";
    let what = "`worker_start`";
    let above_zero = |cx: &mut Context<'_, '_>, expr: &Expr, value: f64| {
        if value <= 0.0 {
            cx.translator.mistake(&expr.span, "no worker would start", "expected more than 0");
        }
        (value > 0.0).then_some(value)
    };
    match value.named() {
        Some((law @ ("linear" | "poisson"), [rate])) => {
            let amount = cx.rate(rate, what)?;
            let rate = above_zero(cx, rate, amount.value)?;
            Some(match law {
                "linear" => Start::Linear { rate },
                _ => Start::Poisson { rate },
            })
        }
        Some(("pow", [exponent, scale, time])) => {
            let of_exponent = cx.plain_number(exponent, what)?;
            let of_scale = cx.plain_number(scale, what)?;
            let span = cx.time(time, what)?;
            if !(EXPONENT_MIN..=EXPONENT_MAX).contains(&of_exponent) {
                let label = format!("expected a number from {EXPONENT_MIN} to {EXPONENT_MAX}");
                let title = "this exponent cannot be used";
                return cx.translator.fail(&exponent.span, title, label);
            }
            let scale = above_zero(cx, scale, of_scale)?;
            let span = above_zero(cx, time, span.value)?;
            Some(Start::Power { exponent: of_exponent, scale, span })
        }
        Some(("exp", [scale, time])) => {
            let of_scale = cx.plain_number(scale, what)?;
            let span = cx.time(time, what)?;
            let scale = above_zero(cx, scale, of_scale)?;
            let span = above_zero(cx, time, span.value)?;
            Some(Start::Exponential { scale, span })
        }
        _ => cx.translator.fail(&value.span, "`worker_start` cannot be read", expected),
    }
}

/// Returns the classes, and the time that the longest of them takes.
fn users(cx: &mut Context<'_, '_>, pools: &[Pool<'_>]) -> (Vec<DraftClass>, Amount) {
    let (mut classes, mut longest) = (Vec::new(), Amount::seconds(0.0));
    let weights = weights(cx, pools);
    for (index, (pool, weight)) in pools.iter().zip(weights).enumerate() {
        let mut user = UserSteps::default();
        let mut steps = user.list(cx, &pool.call.body, 0);
        user.finish(&mut steps);
        if user.length().value > longest.value {
            longest = user.length();
        }
        let (name, on_error) = (format!("pool{}", index + 1), Some(user.on_error()));
        classes.push(DraftClass { name, weight, steps, on_error });
    }
    (classes, longest)
}

/// Returns the weight of each pool.
fn weights(cx: &mut Context<'_, '_>, pools: &[Pool<'_>]) -> Vec<u32> {
    let sizes: Vec<u64> = pools.iter().map(|pool| pool.size as u64).collect();
    let weights = Weights::of_sizes(&sizes);
    if weights.are_rounded {
        let how =
            format!("the shares of the pools are rounded to {} parts", show_count(WEIGHT_MAX));
        cx.translator.approximated(&pools[0].expr.span, "pool", how);
    }
    weights.each
}

/// Returns the phases that start the workers of all pools.
fn load(cx: &mut Context<'_, '_>, pools: &[Pool<'_>]) -> Vec<Yaml> {
    let [first, others @ ..] = pools else { return Vec::new() };
    let sizes: f64 = pools.iter().map(|pool| pool.size).sum();
    let span = first.call.option("worker_start").map_or(&first.expr.span, |value| &value.span);
    let are_alike = |pool: &Pool<'_>| first.start.is_like(first.size, pool.start, pool.size);
    let (phases, difference) = if others.iter().all(are_alike) {
        first.start.times(sizes / first.size).phases(sizes as u64)
    } else {
        let of_pool = |pool: &Pool<'_>| (pool.start, pool.size);
        let (phases, how) = chain(&StartCurve { pools: pools.iter().map(of_pool).collect() });
        (phases, Some(format!("the pools start together, mixed by their sizes; {how}")))
    };
    match difference {
        None => cx.translator.translated(span, "worker_start"),
        Some(how) => cx.translator.approximated(span, "worker_start", how),
    }
    phases
}

/// Exponents of `pow`.
const EXPONENT_MIN: f64 = 0.1;
const EXPONENT_MAX: f64 = 10.0;
