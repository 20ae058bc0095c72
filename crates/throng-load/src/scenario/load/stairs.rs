//! `steps`: a staircase of users, or of arrival rates.

use std::time::Duration;

use throng_base::units::{show_count, show_rate};

use super::levels::{read_above_zero, read_level, read_spacing};
use super::phase::{Curve, Level, PHASES_MAX, Phase, Spacing};
use crate::scenario::node::Node;
use crate::scenario::reader::{Fields, Reader};
use crate::scenario::values::positive_duration;

/// Reads a staircase: a phase for each step.
pub(super) fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<Phase>> {
    let known = ["from", "to", "by", "count", "each", "spacing"];
    let fields = reader.fields(node, "`steps`", &known)?;
    let level = |reader: &mut Reader<'_>, key: &str, example: &str| {
        let node = reader.require(&fields, key, "`steps`", example)?;
        read_level(reader, node, &format!("`{key}`"))
    };
    let from = level(reader, "from", "from: 100");
    let to = level(reader, "to", "to: 1000");
    let each = reader.require(&fields, "each", "`steps`", "each: 30s");
    let each = each.and_then(|node| positive_duration(reader, node, "`each`"));
    let spacing = read_spacing(reader, fields.get("spacing"));
    let (from, to) = from.zip(to)?;
    if !levels_fit(reader, &fields, from, to) {
        return None;
    }
    let levels = match (fields.get("by"), fields.get("count")) {
        (Some(by), None) => levels_by(reader, by, from, to),
        (None, Some(count)) => levels_of(reader, count, from, to),
        (Some(_), Some(_)) => {
            let span = fields.key_span("count");
            reader.error(span, "`steps` has both `by` and `count`", "use only one of them");
            None
        }
        (None, None) => {
            let span = reader.first_line(&fields.span);
            reader.error(span, "`steps` needs `by` or `count`", "for example `by: 100`");
            None
        }
    };
    let (span, spacing) = (each?, spacing?);
    Some(levels?.into_iter().map(|level| phase(level, span, spacing)).collect())
}

fn phase(level: Level, span: Duration, spacing: Spacing) -> Phase {
    match level {
        Level::Users(to) => Phase::Step { to, span },
        Level::Rate(rate) => {
            let curve = Curve::Linear;
            Phase::Arrivals { from: rate, to: rate, curve, span, most: None, spacing }
        }
    }
}

/// Checks that the first and the last step are of one kind, and differ.
fn levels_fit(reader: &mut Reader<'_>, fields: &Fields<'_>, from: Level, to: Level) -> bool {
    let span_of = |key| fields.get(key).map_or(fields.span.clone(), |node| node.span.clone());
    let mistake = match (from, to) {
        (Level::Users(_), Level::Rate(_)) | (Level::Rate(_), Level::Users(_)) => {
            let title = "`steps` go from a number of users to a rate, or back";
            Some(("to", title, "write both as users (`100`), or both as arrivals (`100/s`)"))
        }
        (Level::Users(0), _) => {
            Some(("from", "the first step has no users", "begin with the first that has"))
        }
        (Level::Rate(0.0), _) => {
            Some(("from", "the first step has no arrivals", "begin with the first that has"))
        }
        (_, Level::Rate(0.0)) => {
            Some(("to", "the last step has no arrivals", "write `hold` after `steps` for that"))
        }
        (from, to) if from == to => {
            Some(("to", "all steps have the same height", "that is `hold`, or one `arrivals`"))
        }
        _ => None,
    };
    if let Some((key, title, label)) = mistake {
        reader.error(span_of(key), title, label);
    }
    if matches!(from, Level::Users(_)) && fields.get("spacing").is_some() {
        let span = fields.key_span("spacing");
        reader.error(span, "`spacing` is for arrivals", "remove it, or write rates");
        return false;
    }
    mistake.is_none()
}

/// Returns steps of the height `by`; the last one is `to`, whatever is left for it.
fn levels_by(reader: &mut Reader<'_>, node: &Node, from: Level, to: Level) -> Option<Vec<Level>> {
    let by = read_level(reader, node, "`by`")?;
    let (steps, example) = match (from, to, by) {
        (_, _, Level::Users(0) | Level::Rate(0.0)) => {
            reader.error(node.span.clone(), "`by` is zero", "must be more than 0");
            return None;
        }
        (Level::Users(from), Level::Users(to), Level::Users(by)) => {
            (f64::from(from.abs_diff(to).div_ceil(by)), show_count(u64::from(by)))
        }
        // A tenth of a thousandth is not another step.
        (Level::Rate(from), Level::Rate(to), Level::Rate(by)) => {
            (((to - from).abs() / by - 1e-9).ceil(), show_rate(by))
        }
        (Level::Users(_), ..) => {
            reader.error(node.span.clone(), "`by` is a rate", "a number of users, such as 100");
            return None;
        }
        (Level::Rate(_), ..) => {
            reader.error(node.span.clone(), "`by` has no unit", "a rate such as 100/s");
            return None;
        }
    };
    if steps >= PHASES_MAX as f64 {
        let title = format!("`by: {example}` makes more than {} steps", show_count(MOST));
        reader.error(node.span.clone(), title, "make each step higher");
        return None;
    }
    let steps = steps as u32;
    let level = |index: u32| match (from, to, by) {
        _ if index == steps => to,
        (Level::Users(from), Level::Users(to), Level::Users(by)) => {
            Level::Users(if to > from { from + index * by } else { from - index * by })
        }
        (Level::Rate(from), Level::Rate(to), Level::Rate(by)) => {
            Level::Rate(from + f64::from(index) * by * (to - from).signum())
        }
        _ => to,
    };
    Some((0..=steps).map(level).collect())
}

/// Returns a number of steps at equal distances.
fn levels_of(reader: &mut Reader<'_>, node: &Node, from: Level, to: Level) -> Option<Vec<Level>> {
    let count = read_above_zero(reader, node, "`count`")?;
    if !(2..=MOST).contains(&count) {
        let label = format!("from 2 to {}", show_count(MOST));
        reader.error(node.span.clone(), "`count` is the number of steps", label);
        return None;
    }
    let last = count - 1;
    let level = |index: u64| match (from, to) {
        (Level::Users(from), Level::Users(to)) => {
            let risen = u64::from(from.abs_diff(to)) * index;
            let risen = ((risen + last / 2) / last) as u32;
            Level::Users(if to > from { from + risen } else { from - risen })
        }
        (Level::Rate(from), Level::Rate(to)) if index < last => {
            Level::Rate(from + (to - from) * index as f64 / last as f64)
        }
        _ => to,
    };
    Some((0..count).map(level).collect())
}

const MOST: u64 = PHASES_MAX as u64;
