//! `arrivals`: at a rate, or at the moments of a file.

use std::path::Path;

use throng_base::units::parse_count;

use super::levels::{read_curve, read_spacing};
use super::phase::{Curve, Phase};
use super::times;
use crate::scenario::node::{Kind, Node};
use crate::scenario::reader::Reader;
use crate::scenario::values::{bounded_rate, positive_duration, positive_rate};

/// Reads arrivals. The path of a file counts from `folder`.
pub(super) fn read(reader: &mut Reader<'_>, node: &Node, folder: &Path) -> Option<Phase> {
    let Kind::Map(entries) = &node.kind else {
        reader.fields(node, "`arrivals`", &BY_RATE)?;
        return None;
    };
    if entries.iter().any(|(key, _)| key.scalar() == Some("file")) {
        return times::read(reader, node, folder);
    }
    let fields = reader.fields(node, "`arrivals`", &BY_RATE)?;
    let rate = reader.require(&fields, "rate", "`arrivals`", "rate: 1000/s");
    let rate = rate.and_then(|node| read_rate(reader, node));
    let span = reader.require(&fields, "for", "`arrivals`", "for: 100s");
    let span = span.and_then(|node| positive_duration(reader, node, "`for`"));
    let most = match fields.get("most") {
        None => Some(None),
        Some(node) => match reader.quantity(node, "`most`", parse_count) {
            Some(0) => {
                reader.error(node.span.clone(), "no user would arrive", "at least 1");
                None
            }
            read => read.map(Some),
        },
    };
    let spacing = read_spacing(reader, fields.get("spacing"));
    let (from, to, curve) = rate?;
    Some(Phase::Arrivals { from, to, curve, span: span?, most: most?, spacing: spacing? })
}

/// Reads `1000/s`, or `{from, to}` for a rate that changes over the phase.
fn read_rate(reader: &mut Reader<'_>, node: &Node) -> Option<(f64, f64, Curve)> {
    if !matches!(node.kind, Kind::Map(_)) {
        let rate = positive_rate(reader, node)?;
        return Some((rate, rate, Curve::Linear));
    }
    let fields = reader.fields(node, "`rate`", &["from", "to", "curve"])?;
    let from = reader.require(&fields, "from", "`rate`", "from: 0/s");
    let from = from.and_then(|node| bounded_rate(reader, node, "`from`"));
    let to = reader.require(&fields, "to", "`rate`", "to: 5k/s");
    let to = to.and_then(|node| bounded_rate(reader, node, "`to`"));
    let curve = read_curve(reader, fields.get("curve"));
    let (from, to) = from.zip(to)?;
    if from == 0.0 && to == 0.0 {
        reader.error(
            node.span.clone(),
            "no user would ever arrive",
            "`from` or `to` must be more than 0",
        );
        return None;
    }
    let curve = curve?;
    if curve == Curve::Exponential && (from == 0.0 || to == 0.0) {
        let zero = if from == 0.0 { "from" } else { "to" };
        let span = fields.get(zero).map_or(node.span.clone(), |node| node.span.clone());
        let title = "an exponential rate never reaches zero";
        reader.error(span, title, "more than 0, such as 1/s").help =
            Some("it grows by the same factor in equal times".to_owned());
        return None;
    }
    Some((from, to, curve))
}

const BY_RATE: [&str; 5] = ["rate", "for", "most", "spacing", "file"];
