//! Names in patterns.

use super::device::Device;
use super::elixir::{Expr, ExprKind};
use crate::source::Span;

impl Device<'_, '_> {
    /// Reports the names that stand twice in a pattern. Elixir demands that both parts are equal;
    /// the scenario does not compare them.
    pub(super) fn report_names_bound_again(&mut self, pattern: &Expr) {
        let mut names = Vec::new();
        bound_names(pattern, &mut names);
        for (at, (name, span)) in names.iter().enumerate() {
            if names[..at].iter().any(|(earlier, _)| earlier == name) {
                let remedy = format!(
                    "`{name}` stands twice, so Elixir demands that both are equal; the scenario \
                     does not: give one another name, and compare the two with `if`"
                );
                self.translator.not_supported(span, "pattern", remedy);
            }
        }
    }
}

/// Reports whether a pattern gives a name to a part of the value.
pub(super) fn binds(pattern: &Expr) -> bool {
    let is_name = |expr: &Expr| matches!(&expr.kind, ExprKind::Name(name) if name != "_");
    let pinned = |expr: &Expr| matches!(&expr.kind, ExprKind::Pinned(name) if is_name(name));
    let count = |fits: &dyn Fn(&Expr) -> bool| {
        let count = std::cell::Cell::new(0);
        pattern.any(&|expr| {
            count.set(count.get() + usize::from(fits(expr)));
            false
        });
        count.get()
    };
    count(&is_name) > count(&pinned)
}

/// Adds the names that a pattern binds, in their order, and where each stands. `_` takes any value,
/// as often as it stands there. Names in `<<...>>` are left out, because one may be a size.
fn bound_names<'e>(pattern: &'e Expr, names: &mut Vec<(&'e str, &'e Span)>) {
    match &pattern.kind {
        ExprKind::Name(name) if name != "_" => names.push((name, &pattern.span)),
        ExprKind::List(items) | ExprKind::Tuple(items) => {
            items.iter().for_each(|item| bound_names(item, names));
        }
        ExprKind::Map(entries) => {
            entries.iter().for_each(|(_, value)| bound_names(value, names));
        }
        ExprKind::Match(left, right) | ExprKind::Operation(_, left, right) => {
            bound_names(left, names);
            bound_names(right, names);
        }
        _ => {}
    }
}
