//! `limits`: how often users may send, connect and request, all together and each of them, and how
//! much they may hold of what the target sends.

use std::ops::Range;

use throng_base::units::parse_bytes;

use super::Scenario;
use super::node::{Kind, Node};
use super::reader::Reader;
use super::values::bounded_rate;
use crate::program::{LimitScope, LimitedAction, RateLimit};

/// Reads the limits of a scenario: those of a user first, in the order in which a step obeys them;
/// and the bytes that the users of a core may hold.
pub(super) fn read(reader: &mut Reader<'_>, node: &Node) -> Option<(Vec<RateLimit>, Option<u64>)> {
    let [(_, user, _), (_, all, _)] = SCOPES;
    let fields = reader.fields(node, "`limits`", &[user, all, HELD_BYTES_MAX])?;
    let mut limits = Some(Vec::new());
    for (scope, key, what) in SCOPES {
        let Some(node) = fields.get(key) else { continue };
        let own = read_scope(reader, node, scope, what);
        limits = limits.zip(own).map(|(mut all, own)| {
            all.extend(own);
            all
        });
    }
    if matches!(&node.kind, Kind::Map(entries) if entries.is_empty()) {
        let label = "for example `all: {send: 5000/s}`";
        reader.error(node.span.clone(), "`limits` has no limit", label);
    }
    let held = reader.optional(&fields, HELD_BYTES_MAX, read_held_bytes_max);
    limits.zip(held)
}

fn read_held_bytes_max(reader: &mut Reader<'_>, node: &Node) -> Option<u64> {
    let bytes = reader.quantity(node, "`held_bytes_max`", parse_bytes)?;
    if bytes < HELD_BYTES_LEAST {
        let label = "at least 64KiB for each core";
        reader.error(node.span.clone(), "`held_bytes_max` is too small", label);
        return None;
    }
    Some(bytes)
}

fn read_scope(
    reader: &mut Reader<'_>,
    node: &Node,
    scope: LimitScope,
    what: &str,
) -> Option<Vec<RateLimit>> {
    if let Some(text) = node.scalar() {
        let title = format!("{what} must say what they limit");
        let label = format!("for example `{}: {{send: {text}}}`", scope.name());
        reader.error(node.span.clone(), title, label);
        return None;
    }
    let fields = reader.fields(node, what, &LimitedAction::ALL.map(LimitedAction::name))?;
    let mut limits = Some(Vec::new());
    for action in LimitedAction::ALL {
        let Some(node) = fields.get(action.name()) else { continue };
        check_protocol(reader, fields.key_span(action.name()), action);
        reader.limit_spans.push(fields.key_span(action.name()));
        let rate = read_rate(reader, node, action);
        limits = limits.zip(rate).map(|(mut limits, per_second)| {
            limits.push(RateLimit { scope, action, per_second });
            limits
        });
    }
    limits
}

/// Reports a limit of what no user of the protocol does: it would hold nothing back.
fn check_protocol(reader: &mut Reader<'_>, span: Range<usize>, action: LimitedAction) {
    let known = reader.protocol.row().limits;
    if !known.contains(&action) {
        let names: Vec<_> = known.iter().map(|action| format!("`{}`", action.name())).collect();
        let known = names.join(" and ");
        let name = reader.protocol.name();
        let title =
            format!("users of `protocol: {name}` do nothing that `{}` limits", action.name());
        reader.error(span, title, format!("they have limits of {known}"));
    }
}

/// Reports limits that no step obeys: they would hold nothing back. A step that `when` leaves out
/// may be the one.
pub(super) fn check_steps(reader: &mut Reader<'_>, scenario: &Scenario) {
    if !reader.mistakes.is_empty() || scenario.limits.is_empty() || reader.leaves_out {
        return;
    }
    let spans = reader.limit_spans.clone();
    for (limit, span) in scenario.limits.iter().zip(spans) {
        // The users of `setup` and `teardown` obey them, too.
        if !reader.limited_actions.contains(&limit.action) {
            let title = format!("no step does what `{}` limits", limit.action.name());
            reader.error(span, title, "take it out, or add such a step");
        }
    }
}

fn read_rate(reader: &mut Reader<'_>, node: &Node, action: LimitedAction) -> Option<f64> {
    let rate = bounded_rate(reader, node, &format!("`{}`", action.name()))?;
    if rate == 0.0 {
        let title = "a limit of 0 would stop all users";
        reader.error(node.span.clone(), title, "must be more than 0");
        return None;
    }
    Some(rate)
}

/// The key of the bytes that users may hold, and the fewest.
const HELD_BYTES_MAX: &str = "held_bytes_max";
const HELD_BYTES_LEAST: u64 = 64 << 10;

/// The scopes, each with its key and its name in mistakes, in the order in which a step obeys them.
const SCOPES: [(LimitScope, &str, &str); 2] = [
    (LimitScope::User, "user", "limits of each user"),
    (LimitScope::All, "all", "limits of all users"),
];
