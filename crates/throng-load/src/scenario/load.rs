//! `load`: the phases, and how they are written.

mod arrivals;
mod levels;
mod name;
mod order;
mod peak;
mod phase;
mod ramp;
mod stairs;
mod times;

use std::path::Path;

use super::node::{Kind, Node};
use super::reader::Reader;
use super::values::positive_duration;
use levels::read_above_zero;
pub(crate) use levels::read_curve;
pub(crate) use name::{outline, phase_name};
use order::PhaseList;
pub(super) use peak::set_peak;
pub use peak::{LoadPeak, peak_arrivals, peak_users};
pub use phase::{Curve, Model, Phase, Spacing};
use phase::{PhaseNode, PhaseShape};

/// Reads the list of phases and checks their order. Files with moments are relative to `folder`.
pub(super) fn read(reader: &mut Reader<'_>, node: &Node, folder: &Path) -> Option<Vec<Phase>> {
    let Kind::List(items) = &node.kind else {
        reader.wrong_kind(
            node,
            "`load`",
            "a list of phases such as `- ramp: {to: 100, over: 10s}`",
        );
        return None;
    };
    if items.is_empty() {
        reader.error(node.span.clone(), "`load` has no phase", "add at least one");
        return None;
    }
    let written = read_list(reader, items, folder)?;
    let mut phases = PhaseList::default();
    phases.append(reader, &written);
    Some(phases.into_phases())
}

fn read_list<'n>(
    reader: &mut Reader<'_>,
    items: &'n [Node],
    folder: &Path,
) -> Option<Vec<PhaseNode<'n>>> {
    // All are read before one is missed, so that all mistakes are shown.
    let phases: Vec<_> = items.iter().map(|item| read_phase(reader, item, folder)).collect();
    phases.into_iter().collect()
}

fn read_phase<'n>(reader: &mut Reader<'_>, node: &'n Node, folder: &Path) -> Option<PhaseNode<'n>> {
    let what = "a load phase";
    let Kind::Map(entries) = &node.kind else {
        match node.scalar() {
            Some(name) if !PHASES.contains(&name) => {
                reader.unknown(node.span.clone(), &format!("load phase `{name}`"), name, &PHASES);
            }
            Some("hold") => {
                reader.wrong_kind(node, "`hold`", "a mapping such as `hold: {for: 1m}`")
            }
            _ => reader.wrong_kind(node, what, "a mapping such as `ramp: {to: 100, over: 10s}`"),
        }
        return None;
    };
    reader.fields(node, what, &PHASES)?;
    if let [_, (second, _), ..] = &entries[..] {
        reader.error(
            second.span.clone(),
            "each phase needs its own list item",
            "start this one with `- `",
        );
        return None;
    }
    let (key, value) = entries.first()?;
    let plain = |phase| PhaseShape::Plain(vec![phase]);
    let shape = match key.scalar()? {
        "ramp" => ramp::read(reader, value).map(plain),
        "hold" => read_hold(reader, value).map(plain),
        "arrivals" => arrivals::read(reader, value, folder).map(plain),
        "steps" => stairs::read(reader, value).map(PhaseShape::Plain),
        "spike" => ramp::read_spike(reader, value).map(PhaseShape::Spike),
        "loop" => read_loop(reader, value, folder),
        _ => None,
    };
    Some(PhaseNode { node, shape: shape? })
}

fn read_hold(reader: &mut Reader<'_>, node: &Node) -> Option<Phase> {
    let fields = reader.fields(node, "`hold`", &["for", "until"])?;
    let until_done = match fields.get("until") {
        Some(until) => reader.one_of(until, "`until`", &[("done", true)]),
        None => Some(false),
    };
    let node = reader.require(&fields, "for", "`hold`", "hold: {for: 1m}")?;
    let span = positive_duration(reader, node, "`for`");
    Some(Phase::Hold { span: span?, until_done: until_done? })
}

fn read_loop<'n>(reader: &mut Reader<'_>, node: &'n Node, folder: &Path) -> Option<PhaseShape<'n>> {
    let fields = reader.fields(node, "`loop`", &["times", "do"])?;
    let times = reader.require(&fields, "times", "`loop`", "times: 3");
    let times = times.and_then(|node| read_above_zero(reader, node, "`times`"));
    let example = "do: [ramp: {to: 100, over: 1m}, ramp: {to: 0, over: 1m}]";
    let phases = match reader.require(&fields, "do", "`loop`", example) {
        Some(Node { kind: Kind::List(items), .. }) if !items.is_empty() => {
            read_list(reader, items, folder)
        }
        Some(Node { kind: Kind::List(_), span, .. }) => {
            reader.error(span.clone(), "`do` has no phase", "add at least one");
            None
        }
        Some(node) => {
            reader.wrong_kind(node, "`do`", "a list of phases");
            None
        }
        None => None,
    };
    Some(PhaseShape::Loop { times: times?, phases: phases? })
}

const PHASES: [&str; 6] = ["ramp", "hold", "arrivals", "steps", "spike", "loop"];
