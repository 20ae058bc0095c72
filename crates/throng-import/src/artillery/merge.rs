//! Merge keys of YAML: `<<: *base` adds the entries of another mapping.

use throng_load::scenario::{YamlKind, YamlNode};

/// Puts the entries of each `<<` into the mapping in which it stands. An entry of the mapping
/// itself, and one of an earlier `<<`, stays.
pub(super) fn fill(node: &mut YamlNode) {
    match &mut node.kind {
        YamlKind::List(items) => items.iter_mut().for_each(fill),
        YamlKind::Map(entries) => {
            entries.iter_mut().for_each(|(_, value)| fill(value));
            if entries.iter().any(|(key, value)| is_merge(key, value)) {
                *entries = merged(std::mem::take(entries));
            }
        }
        YamlKind::Nothing | YamlKind::Scalar(_) => {}
    }
}

fn is_merge(key: &YamlNode, value: &YamlNode) -> bool {
    let is_map = |node: &YamlNode| matches!(node.kind, YamlKind::Map(_));
    let is_source = match &value.kind {
        YamlKind::List(items) => items.iter().all(is_map),
        _ => is_map(value),
    };
    key.scalar() == Some("<<") && is_source
}

/// Returns the entries, each key once.
fn merged(entries: Vec<(YamlNode, YamlNode)>) -> Vec<(YamlNode, YamlNode)> {
    let own: Vec<_> = entries
        .iter()
        .filter(|(key, value)| !is_merge(key, value))
        .filter_map(|(key, _)| key.scalar().map(str::to_owned))
        .collect();
    let mut out: Vec<(YamlNode, YamlNode)> = Vec::new();
    for (key, value) in entries {
        if !is_merge(&key, &value) {
            out.push((key, value));
            continue;
        }
        let sources = match value.kind {
            YamlKind::List(items) => items,
            _ => vec![value],
        };
        for source in sources {
            let YamlKind::Map(entries) = source.kind else { continue };
            for (key, value) in entries {
                let name = key.scalar().map(str::to_owned);
                let is_there = |known: &(YamlNode, YamlNode)| known.0.scalar() == name.as_deref();
                let is_own = name.as_ref().is_some_and(|name| own.contains(name));
                if !is_own && !out.iter().any(is_there) {
                    out.push((key, value));
                }
            }
        }
    }
    out
}
