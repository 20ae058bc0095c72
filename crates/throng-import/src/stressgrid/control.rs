//! `if`, `for`, `Enum.each`, and timings.

use super::device::{Device, Step, wait};
use super::elixir::{Call, Expr, ExprKind};
use super::value::{Binding, Value};
use crate::names::in_letters;
use crate::source::Span;
use crate::yaml::Yaml;

impl Device<'_, '_> {
    /// Translates `if condition do ... else ... end`.
    pub(super) fn branch(&mut self, span: &Span, call: &Call) -> Vec<Step> {
        let condition = match &call.arguments[..] {
            [condition] => self.condition(condition, call.name == "unless"),
            _ => None,
        };
        let Some(condition) = condition else {
            let remedy = "write the condition by hand: `if: {condition, do, else}` compares texts \
                          and numbers";
            self.translator.not_supported(span, &*call.name, remedy);
            return Vec::new();
        };
        let (before, asked) = (self.is_upgraded, self.has_asked);
        // A connection that opens in one branch alone would not be there after the other.
        if !before && [&call.block, &call.otherwise].iter().any(|list| list.iter().any(upgrades)) {
            let remedy = "write `ws_upgrade` before the branch";
            self.translator.not_supported(span, &*call.name, remedy);
            return Vec::new();
        }
        let steps = self.list(&call.block);
        let after = std::mem::replace(&mut self.has_asked, asked);
        let otherwise = self.list(&call.otherwise);
        self.has_asked |= after;
        if steps.is_empty() && otherwise.is_empty() {
            self.translator.not_needed(span, &*call.name, "it has no steps");
            return Vec::new();
        }
        self.translator.translated(span, &*call.name);
        let steps = if steps.is_empty() { vec![wait("0s")] } else { steps };
        vec![Box::new(move || {
            let mut entries =
                vec![("condition", Yaml::text(condition)), ("do", Yaml::list(built(steps)))];
            if !otherwise.is_empty() {
                entries.push(("else", Yaml::list(built(otherwise))));
            }
            Yaml::entry("if", Yaml::map(entries))
        })]
    }

    /// Returns a condition as a scenario writes it.
    fn condition(&mut self, condition: &Expr, is_negated: bool) -> Option<String> {
        let ExprKind::Operation(operator, left, right) = &condition.kind else { return None };
        // `:rand.uniform() < 0.1`
        if let (Some(":rand.uniform"), ExprKind::Number(share)) = (
            left.call().filter(|call| call.arguments.is_empty()).map(|call| &*call.name),
            &right.kind,
        ) && ["<", "<="].contains(operator)
            && (0.0..=1.0).contains(share)
        {
            let below = (share * 1_000_000.0).round();
            let sign = if is_negated { ">" } else { "<=" };
            return Some(format!("${{random(1,1000000)}} {sign} {below}"));
        }
        let signs =
            [("==", "!="), ("!=", "=="), ("<", ">="), ("<=", ">"), (">", "<="), (">=", "<")];
        let (sign, negated) = signs.iter().find(|(sign, _)| sign == operator)?;
        let (left, right) = (self.value(left).ok()?, self.value(right).ok()?);
        if !left.text.contains("${") && !right.text.contains("${") {
            return None;
        }
        let sign = if is_negated { negated } else { sign };
        let operand = |value: &Value| value.text.contains(['=', '<', '>', '!', '"', '\n']);
        if operand(&left) || operand(&right) || left.text.is_empty() || right.text.is_empty() {
            return None;
        }
        Some(format!("{} {sign} {}", left.text, right.text))
    }

    /// Translates `for x <- list do ... end` and `Enum.each(list, fn x -> ... end)`.
    pub(super) fn turns(&mut self, span: &Span, call: &Call) -> Vec<Step> {
        let parts = match (&*call.name, &call.arguments[..]) {
            ("for", [generator]) => match &generator.kind {
                ExprKind::Operation("<-", name, list) => {
                    Some(((**name).clone(), (**list).clone(), &call.block))
                }
                _ => None,
            },
            ("Enum.each", [list, function]) => match function.call() {
                Some(function) if function.name == "fn" && function.arguments.len() == 1 => {
                    Some((function.arguments[0].clone(), list.clone(), &function.block))
                }
                _ => None,
            },
            _ => None,
        };
        let Some((name, list, body)) = parts else {
            let remedy = "write it as `for x <- 1..10 do ... end`, or its steps by hand: `repeat`, \
                          `foreach`";
            self.translator.not_supported(span, &*call.name, remedy);
            return Vec::new();
        };
        if self.loops == LOOPS_MAX {
            let remedy = "loops may be nested 4 deep: write it with fewer";
            self.translator.not_supported(span, &*call.name, remedy);
            return Vec::new();
        }
        let name = match &name.kind {
            ExprKind::Name(name) if !name.starts_with('_') => Some(name.clone()),
            _ => None,
        };
        let name = name.filter(|name| body.iter().any(|statement| mentions(statement, name)));
        let list = self.literal(&list);
        let items = match &list.kind {
            ExprKind::List(items) => {
                let items: Result<Vec<_>, _> = items.iter().map(|item| self.value(item)).collect();
                items.ok()
            }
            ExprKind::Operation("..", first, last) => self.range(first, last),
            _ => None,
        };
        let Some(items) = items.filter(|items| !items.is_empty()) else {
            let remedy = "write the list, or a range of numbers such as `1..10`";
            self.translator.not_supported(span, &*call.name, remedy);
            return Vec::new();
        };
        match name {
            Some(_) if items.len() > FOREACH_MAX => {
                let remedy = "`foreach` takes at most 100 values: write a `repeat`, with \
                              `${random(a,b)}` in place of the value";
                self.translator.not_supported(span, &*call.name, remedy);
                Vec::new()
            }
            name => self.turns_of(span, call, name, items, body),
        }
    }

    fn turns_of(
        &mut self,
        span: &Span,
        call: &Call,
        name: Option<String>,
        items: Vec<Value>,
        body: &[Expr],
    ) -> Vec<Step> {
        let is_number = items.iter().all(|item| item.is_number);
        let own = name.as_deref().map(|name| self.new_name(name));
        let mut before = None;
        if let (Some(name), Some(own)) = (&name, &own) {
            let is_whole = |item: &Value| item.text.parse::<i64>().is_ok();
            let is_number = is_number && items.iter().all(is_whole);
            let value = Value { text: format!("${{{own}}}"), is_number };
            if is_number {
                self.numbers.push(value.text.clone());
            }
            before = Some(self.bindings.insert(name.clone(), Binding::Value(value)));
        }
        self.loops += 1;
        let steps = self.list(body);
        self.loops -= 1;
        if let (Some(name), Some(before)) = (name, before) {
            match before {
                Some(binding) => self.bindings.insert(name, binding),
                None => self.bindings.remove(&name),
            };
        }
        if steps.is_empty() {
            self.translator.not_needed(span, &*call.name, "it has no steps");
            return Vec::new();
        }
        self.translator.translated(span, &*call.name);
        vec![Box::new(move || match own {
            Some(name) => {
                let item = |item: Value| match is_number {
                    true => Yaml::plain(item.text),
                    false => Yaml::text(item.text),
                };
                let entries = [
                    ("name", Yaml::text(name)),
                    ("in", Yaml::list(items.into_iter().map(item))),
                    ("do", Yaml::list(built(steps))),
                ];
                Yaml::entry("foreach", Yaml::map(entries))
            }
            None => {
                let times = Yaml::plain(items.len());
                let entries = [("times", times), ("do", Yaml::list(built(steps)))];
                Yaml::entry("repeat", Yaml::map(entries))
            }
        })]
    }

    /// Returns the numbers of a range.
    fn range(&mut self, first: &Expr, last: &Expr) -> Option<Vec<Value>> {
        let mut bound = |expr: &Expr| {
            let number = self.value(expr).ok()?.text.parse::<f64>().ok()?;
            (number.fract() == 0.0 && number.abs() <= 1e9).then_some(number as i64)
        };
        let (first, last) = (bound(first)?, bound(last)?);
        let count = first.abs_diff(last) + 1;
        if count > RANGE_MAX {
            return None;
        }
        let step = if last >= first { 1 } else { -1 };
        Some((0..count as i64).map(|turn| Value::number(first + turn * step)).collect())
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
        let step: Step = Box::new(move || {
            let entries = [("name", Yaml::text(name)), ("do", Yaml::list(built(steps)))];
            Yaml::entry("transaction", Yaml::map(entries))
        });
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

/// Reports whether a statement opens the WebSocket.
fn upgrades(expr: &Expr) -> bool {
    expr.any(&|expr| expr.call().is_some_and(|call| call.name == "ws_upgrade"))
}

fn mentions(expr: &Expr, name: &str) -> bool {
    expr.any(&|expr| matches!(&expr.kind, ExprKind::Name(known) if known == name))
}

fn built(steps: Vec<Step>) -> Vec<Yaml> {
    steps.into_iter().map(|step| step()).collect()
}

/// Loops in loops of a scenario.
const LOOPS_MAX: usize = 4;

/// Values of a `foreach`.
const FOREACH_MAX: usize = 100;

/// Numbers of a range.
const RANGE_MAX: u64 = 100_000;

/// Transactions in transactions, and names of them.
const TRANSACTIONS_MAX: usize = 4;
const TIMINGS_MAX: usize = 64;

/// Longest name of a transaction.
const NAME_CHARS_MAX: usize = 28;
