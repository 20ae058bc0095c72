//! The statements at the top of a file: all but pools are read here.

use super::context::Context;
use super::threshold;
use super::tree::{Call, Expr};
use crate::expected::near_or;

/// Reads the directives, and returns the pools.
pub(super) fn read<'e>(
    cx: &mut Context<'_, '_>,
    statements: &'e [Expr],
) -> Vec<(&'e Expr, &'e Call)> {
    let mut calls = Vec::new();
    for statement in statements {
        match statement.call() {
            Some(call) => calls.push((statement, call)),
            None => {
                let label =
                    format!("expected a pool or a directive, found {}", statement.describe());
                cx.translator.mistake(&statement.span, "this is not a statement", label);
            }
        }
    }
    // A default may stand below its use.
    for (statement, call) in calls.iter().filter(|(_, call)| call.name == "defaults") {
        for option in &call.options {
            cx.defaults.insert(option.key.clone(), option.value.clone());
        }
        cx.translator.translated(&statement.span, "defaults");
    }
    calls.retain(|(statement, call)| is_pool(cx, statement, call));
    if calls.is_empty() && cx.translator.mistakes.is_empty() {
        let span = statements.first().map_or(0..0, |first| first.span.clone());
        cx.translator.mistake(&span, "the scenario has no pool", "add `pool(size = ..., ...)`");
    }
    calls
}

/// Reports a directive. Returns whether the statement is a pool.
fn is_pool(cx: &mut Context<'_, '_>, statement: &Expr, call: &Call) -> bool {
    let span = &statement.span;
    match &*call.name {
        "pool" => return true,
        "defaults" => {}
        "make_install" => {
            let why = "throng has the worker's functions as steps";
            cx.translator.not_needed(span, "make_install", why);
        }
        "include_resource" => {
            let remedy = "add `data: {file: FILE, columns: [NAME], delimiter: \"\\t\"}` for a TSV, \
                          without the delimiter for a CSV, and use `${row.NAME}`";
            cx.translator.not_supported(span, "include_resource", remedy);
        }
        "pre_hook" | "post_hook" => hook(cx, call),
        "assert" => threshold::read(cx, statement, call),
        name => {
            let known = ["pool", "assert", "defaults", "include_resource", "make_install"];
            let known = known.into_iter().chain(["pre_hook", "post_hook"]);
            let label =
                near_or(name, known, "expected `pool`, `assert`, `defaults` or another directive");
            cx.translator.mistake(span, format!("MZBench has no directive `{name}`"), label);
        }
    }
    false
}

/// Reports the actions of a hook.
fn hook(cx: &mut Context<'_, '_>, hook: &Call) {
    let moment = if hook.name == "pre_hook" { "before" } else { "after" };
    for action in &hook.body {
        let construct = format!("{} {}", hook.name, action.call().map_or("", |call| &*call.name));
        match action.call().map(|call| (&*call.name, &call.arguments[..])) {
            Some(("exec", [_, command])) => {
                let command = command.text().unwrap_or_default();
                let why = format!("run `{command}` {moment} `throng run`, on each machine");
                cx.translator.not_needed(&action.span, construct, why);
            }
            Some(("worker_call", _)) => {
                let remedy = format!(
                    "do what the worker does {moment} `throng run`; variables keep their defaults"
                );
                cx.translator.not_supported(&action.span, construct, remedy);
            }
            _ => {
                let title = "this is not the action of a hook";
                let label = "expected `exec(all, \"command\")` or `worker_call(method, module)`";
                cx.translator.mistake(&action.span, title, label);
            }
        }
    }
}
