//! Reading the protocol of a connection.

use super::node::Node;
use super::reader::Reader;
use super::target::Target;
use super::{Protocol, Scheme};

/// Reads the protocol of a scenario. `scheme` is that of a target that may have a mistake. After a
/// mistake, returns the most likely one, so that steps are not reported as wrong because of it.
pub(super) fn read(
    reader: &mut Reader<'_>,
    protocol: Option<&Node>,
    target: Option<&Target>,
    scheme: Option<Scheme>,
) -> Protocol {
    let implied = scheme.map_or(Protocol::default(), Protocol::of);
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
