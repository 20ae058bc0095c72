//! The older form: a list of tuples, `[{pool, [{size, 3}], [{request}]}].`

use throng_load::scenario::Diagnostic;

use super::tree::{Call, CallOption, Expr, ExprKind, Tree, is_unit};
use crate::erlang::{Term, TermKind, parse_terms};

/// Reads a file with one list of statements.
pub(super) fn parse(source: &str) -> Result<Tree, Diagnostic> {
    let terms = parse_terms(source)?;
    let [term] = &*terms.terms else {
        let span = terms.terms.get(1).map_or(0..0, |term| term.span.clone());
        let title = "a scenario is one list of statements, ended by a dot";
        return Err(Diagnostic::new(span, title, "expected `[{pool, ...}].` and nothing else"));
    };
    let Some(items) = term.list() else {
        let label = format!("expected a list, found {}", term.describe());
        return Err(Diagnostic::new(term.span.clone(), "this is not a scenario", label));
    };
    Ok(Tree { statements: items.iter().map(expr).collect(), comments: terms.comments })
}

/// Converts a term. The terms in it are at most as deep as the parser of terms allows.
fn expr(term: &Term) -> Expr {
    let kind = match &term.kind {
        TermKind::Atom(name) => ExprKind::Word(name.clone()),
        TermKind::Integer(value) => ExprKind::Number(*value as f64),
        TermKind::Float(value) => ExprKind::Number(*value),
        TermKind::Text(text) => ExprKind::Text(text.clone()),
        TermKind::List(items) => ExprKind::List(items.iter().map(expr).collect()),
        TermKind::Tuple(items) => tuple(term, items),
    };
    Expr { span: term.span.clone(), kind }
}

fn tuple(term: &Term, items: &[Term]) -> ExprKind {
    if let [value, unit] = items
        && let Some(unit) = unit.atom().filter(|unit| is_unit(unit))
    {
        return ExprKind::Quantity(Box::new(expr(value)), unit.to_owned());
    }
    let Some((name, values)) = term.tagged() else {
        let arguments = items.iter().map(expr).collect();
        return ExprKind::Call(Box::new(Call {
            name: "t".to_owned(),
            arguments,
            ..Call::default()
        }));
    };
    if OPERATORS.contains(&name) {
        return ExprKind::Operation(name.to_owned(), values.iter().map(expr).collect());
    }
    let mut call = Call { name: name.to_owned(), ..Call::default() };
    match (name, values) {
        ("pool" | "loop", [options, body, ..]) => {
            call.options = read_options(options);
            call.body =
                body.list().unwrap_or(std::slice::from_ref(body)).iter().map(expr).collect();
        }
        ("pool" | "loop", [options]) => call.options = read_options(options),
        ("make_install" | "defaults", [options]) => call.options = read_options(options),
        ("pre_hook" | "post_hook" | "ignore_failure" | "parallel", values) => {
            let all = values.iter().flat_map(|one| one.list().unwrap_or(std::slice::from_ref(one)));
            call.body = all.map(expr).collect();
        }
        _ => call.arguments = values.iter().map(expr).collect(),
    }
    ExprKind::Call(Box::new(call))
}

/// Reads `[{key, value}, ...]`. What is no such pair becomes an option without a name, which is
/// reported where the options are read.
fn read_options(term: &Term) -> Vec<CallOption> {
    let items = term.list().unwrap_or(std::slice::from_ref(term));
    let option = |item: &Term| {
        let pair = match &item.kind {
            TermKind::Tuple(parts) => parts.split_first(),
            _ => None,
        };
        let (key, value) = match pair {
            Some((key, [value, ..])) => (key.text().unwrap_or_default(), expr(value)),
            _ => ("", expr(item)),
        };
        CallOption { span: item.span.clone(), key: key.to_owned(), value }
    };
    items.iter().map(option).collect()
}

/// Operators of conditions.
const OPERATORS: [&str; 9] = ["lt", "gt", "lte", "gte", "eq", "ne", "and", "or", "not"];
