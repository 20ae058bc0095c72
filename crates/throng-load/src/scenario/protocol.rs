//! Reading the protocol of a connection.

use super::node::{Kind, Node};
use super::reader::Reader;
use super::target::Target;
use super::{Protocol, step_list};
use crate::steps::of_user;

/// Reads the protocol of a scenario; `implied` is the one without `protocol`. After a mistake,
/// returns the most likely one, so that steps are not reported as wrong because of it.
pub(super) fn read(
    reader: &mut Reader<'_>,
    protocol: Option<&Node>,
    target: Option<&Target>,
    implied: Protocol,
) -> Protocol {
    let Some(node) = protocol else { return implied };
    let named = |one: Protocol| one.row().names.iter().map(move |name| (*name, one));
    let known: Vec<_> = Protocol::ALL.iter().copied().flat_map(named).collect();
    let Some(protocol) = reader.one_of(node, "protocol", &known) else { return implied };
    if let Some(target) = target.filter(|target| target.scheme != protocol.scheme()) {
        let title = format!("`protocol: {}` does not work with {target}", protocol.name());
        let label = format!("its targets begin with `{}://`", protocol.scheme().as_str());
        reader.error(node.span.clone(), title, label);
    }
    protocol
}

/// Returns the protocol that has most of these steps: that of a target whose scheme is missing.
pub(super) fn of_steps(steps: &Node) -> Protocol {
    let Kind::List(items) = &steps.kind else { return Protocol::default() };
    let name = |item: &Node| match &item.kind {
        Kind::Map(entries) => entries.first()?.0.scalar().map(str::to_owned),
        _ => item.scalar().map(str::to_owned),
    };
    let written: Vec<String> = items.iter().filter_map(name).collect();
    let unknown = |protocol: &&Protocol| {
        let known = step_list::names(of_user, **protocol);
        written.iter().filter(|name| !known.contains(&name.as_str())).count()
    };
    Protocol::ALL.iter().min_by_key(unknown).copied().unwrap_or_default()
}
