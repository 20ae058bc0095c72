//! `ramp` and `spike`.

use std::time::Duration;

use super::levels::{read_curve, read_level, read_spacing, read_users};
use super::phase::{Level, Phase, SpikeShape};
use crate::scenario::node::Node;
use crate::scenario::reader::Reader;
use crate::scenario::values::positive_duration;

/// Reads a ramp.
pub(super) fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Phase> {
    let fields = reader.fields(node, "`ramp`", &["to", "over", "curve"])?;
    if let Some(rate) = fields.get("to").filter(|to| to.scalar().is_some_and(|to| to.contains('/')))
    {
        let help = "for example `arrivals: {rate: {from: 10/s, to: 100/s}, for: 1m}`";
        let label = "a rate is that of `arrivals`";
        reader.error(rate.span.clone(), "`ramp` has a number of users", label).help =
            Some(help.to_owned());
        return None;
    }
    let to = reader
        .require(&fields, "to", "`ramp`", "to: 100k")
        .and_then(|node| read_users(reader, node, "`to`"));
    let over = reader.require(&fields, "over", "`ramp`", "over: 15m");
    let over = over.and_then(|node| positive_duration(reader, node, "`over`"));
    let curve = read_curve(reader, fields.get("curve"));
    Some(Phase::Ramp { to: to?, over: over?, curve: curve? })
}

/// Reads a spike.
pub(super) fn read_spike(reader: &mut Reader<'_>, node: &Node) -> Option<SpikeShape> {
    let fields = reader.fields(node, "`spike`", &["to", "over", "for", "spacing"])?;
    let to = reader
        .require(&fields, "to", "`spike`", "to: 5k")
        .and_then(|node| read_level(reader, node, "`to`"));
    let span = reader.require(&fields, "for", "`spike`", "for: 30s");
    let span = span.and_then(|node| positive_duration(reader, node, "`for`"));
    let over = reader.value_or(&fields, "over", Duration::ZERO, |reader, node| {
        positive_duration(reader, node, "`over`")
    });
    let spacing = read_spacing(reader, fields.get("spacing"));
    let to = to?;
    if matches!(to, Level::Users(_)) && fields.get("spacing").is_some() {
        let span = fields.key_span("spacing");
        reader.error(span, "`spacing` is for arrivals", "remove it, or write `to` as a rate");
        return None;
    }
    Some(SpikeShape { to, over: over?, span: span?, spacing: spacing? })
}
