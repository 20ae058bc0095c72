//! `Enum.each`, and timings.

use super::device::{Device, Step};
use super::elixir::{Call, Expr, ExprKind};
use super::rows::CALLS;
use crate::names::in_letters;
use crate::source::Span;
use crate::step;
use crate::yaml::Yaml;

impl Device<'_, '_> {
    /// Translates `Enum.each(1..10, fn _ -> ... end)`.
    pub(super) fn turns(&mut self, span: &Span, call: &Call) -> Vec<Step> {
        let parts = match &call.arguments[..] {
            [range, function] => self.times_of(range).zip(function.call()),
            _ => None,
        };
        let is_read = |function: &Call| match &function.arguments[..] {
            [Expr { kind: ExprKind::Name(name), .. }] => {
                let is_used = function.block.iter().any(|statement| mentions(statement, name));
                function.name == "fn" && (name.starts_with('_') || !is_used)
            }
            _ => false,
        };
        let Some((times, function)) = parts.filter(|(_, function)| is_read(function)) else {
            self.translator.has_row(span, CALLS, "Enum.each");
            return Vec::new();
        };
        if self.loops == LOOPS_MAX {
            let remedy = "loops may be nested 4 deep: write it with fewer";
            return self.translator.omit(span, &*call.name, remedy);
        }
        self.loops += 1;
        let steps = self.list(&function.block);
        self.loops -= 1;
        if steps.is_empty() {
            return self.translator.skip(span, &*call.name, "it has no steps");
        }
        self.translator.translated(span, &*call.name);
        vec![Box::new(move || step::repeat(times, built(steps)))]
    }

    /// Returns how many numbers a range has.
    fn times_of(&self, range: &Expr) -> Option<u64> {
        let ExprKind::Operation("..", first, last) = self.literal(range).kind else { return None };
        let times = first.whole()?.abs_diff(last.whole()?) + 1;
        (times <= TIMES_MAX).then_some(times)
    }

    /// Translates the statements from `start_timing(:name)` to `stop_timing(:name)` to a
    /// transaction. Returns its step, and how many statements it takes; `None` if the first is no
    /// such begin, or its end is not among them.
    pub(super) fn timing(&mut self, statements: &[Expr]) -> Option<(Vec<Step>, usize)> {
        let (begins, _) = names_of(statements.first()?);
        let name = begins?.to_owned();
        let ends = |expr: &&Expr| names_of(expr).1 == Some(&*name);
        let end = 1 + statements[1..].iter().position(|expr| ends(&expr))?;
        let inner = &statements[1..end];
        let nests = inner.iter().enumerate().all(|(at, expr)| {
            let (begins, stops) = names_of(expr);
            let closes = begins.is_none_or(|name| {
                inner[at + 1..].iter().any(|later| names_of(later).1 == Some(name))
            });
            let opens = stops.is_none_or(|name| {
                inner[..at].iter().any(|earlier| names_of(earlier).0 == Some(name))
            });
            closes && opens
        });
        if !nests || self.transactions == TRANSACTIONS_MAX || self.timings.len() == TIMINGS_MAX {
            return None;
        }
        self.transactions += 1;
        let steps = self.list(inner);
        self.transactions -= 1;
        let span = statements[0].span.start..statements[end].span.end;
        // `stop_start_timing(:a, :b)` begins the next one.
        let (next, _) = names_of(&statements[end]);
        let taken = if next.is_some() { end } else { end + 1 };
        if steps.is_empty() {
            self.translator.not_needed(&span, "start_timing", "no step is in it");
            return Some((Vec::new(), taken));
        }
        let name = transaction_name(&name);
        self.timings.insert(name.clone());
        self.translator.translated(&span, "start_timing");
        let step: Step = Box::new(move || step::transaction(name, built(steps)));
        Some((vec![step], taken))
    }
}

/// Returns the names of the timing that a statement begins, and of the one that it ends.
fn names_of(statement: &Expr) -> (Option<&str>, Option<&str>) {
    let Some(call) = statement.call() else { return (None, None) };
    let name = |at: usize| call.arguments.get(at).and_then(Expr::literal);
    match &*call.name {
        "start_timing" => (name(0), None),
        "stop_timing" => (None, name(0)),
        "stop_start_timing" => (name(1).or(name(0)), name(0)),
        _ => (None, None),
    }
}

/// Returns the name of a transaction, in the letters that one may have.
fn transaction_name(name: &str) -> String {
    in_letters(name, "t_", NAME_CHARS_MAX)
}

fn mentions(expr: &Expr, name: &str) -> bool {
    expr.any(&|expr| matches!(&expr.kind, ExprKind::Name(known) if known == name))
}

fn built(steps: Vec<Step>) -> Vec<Yaml> {
    steps.into_iter().map(|step| step()).collect()
}

/// Loops in loops of a scenario.
const LOOPS_MAX: usize = 4;

/// Numbers of a range.
const TIMES_MAX: u64 = 100_000;

/// Transactions in transactions, and names of them.
const TRANSACTIONS_MAX: usize = 4;
const TIMINGS_MAX: usize = 64;

/// Longest name of a transaction.
const NAME_CHARS_MAX: usize = 28;
