//! The statements at the top of a file: all but pools are read here.

use super::context::Context;
use super::rows::DIRECTIVES;
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
    let (span, name) = (&statement.span, &*call.name);
    let is_pool = name == "pool";
    if !is_pool && name != "defaults" && !cx.translator.has_row(span, DIRECTIVES, name) {
        let known = DIRECTIVES.iter().map(|row| row.construct).chain(["pool", "defaults"]);
        let label = near_or(name, known, "expected `pool`, `defaults` or another directive");
        cx.translator.mistake(span, format!("MZBench has no directive `{name}`"), label);
    }
    is_pool
}
