//! The entries of a mapping, by their keys.

use throng_load::scenario::{YamlKind, YamlNode};

use crate::expected::one_of;
use crate::source::Span;
use crate::translator::Translator;

/// The entries of a mapping in the source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields<'n> {
    entries: Vec<(&'n YamlNode, &'n YamlNode)>,
}

impl<'n> Fields<'n> {
    /// Returns the entries of `node`. Reports a mistake if it is no mapping, and one for each key
    /// that is not in `keys`. `what` names the mapping.
    pub(crate) fn read(
        translator: &mut Translator<'_>,
        node: &'n YamlNode,
        what: &str,
        keys: &[&str],
    ) -> Option<Self> {
        let fields = Self::read_any(translator, node, what)?;
        for (key, _) in &fields.entries {
            let name = key.scalar().unwrap_or_default();
            if !keys.contains(&name) {
                let label = one_of(name, keys);
                translator.mistake(&key.span, format!("{what} has no key `{name}`"), label);
            }
        }
        Some(fields)
    }

    /// Returns the entries of `node`, whose keys are names of the author.
    pub(crate) fn read_any(
        translator: &mut Translator<'_>,
        node: &'n YamlNode,
        what: &str,
    ) -> Option<Self> {
        let YamlKind::Map(entries) = &node.kind else {
            let label = format!("expected a mapping, found {}", node.describe());
            return translator.fail(&node.span, format!("{what} is not a mapping"), label);
        };
        for (key, _) in entries {
            if key.scalar().is_none() {
                translator.mistake(&key.span, "this key is no text", "expected a name");
            }
        }
        Some(Self { entries: entries.iter().map(|(key, value)| (key, value)).collect() })
    }

    /// Returns the value of `key`.
    pub(crate) fn get(&self, key: &str) -> Option<&'n YamlNode> {
        self.entry(key).map(|(_, value)| value)
    }

    /// Returns the place and the value of `key`.
    pub(crate) fn entry(&self, key: &str) -> Option<(Span, &'n YamlNode)> {
        let has_name = |(name, _): &&(&YamlNode, &YamlNode)| name.scalar() == Some(key);
        self.entries.iter().find(has_name).map(|(name, value)| (name.span.clone(), *value))
    }

    /// Iterates over the keys, their places and their values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'n str, Span, &'n YamlNode)> {
        self.entries
            .iter()
            .map(|(key, value)| (key.scalar().unwrap_or_default(), key.span.clone(), *value))
    }
}

/// Returns the items of a list. Reports a mistake if it is none.
pub(crate) fn list<'n>(
    translator: &mut Translator<'_>,
    node: &'n YamlNode,
    what: &str,
) -> Option<&'n [YamlNode]> {
    if let YamlKind::List(items) = &node.kind {
        return Some(items);
    }
    let label = format!("expected a list, found {}", node.describe());
    translator.fail(&node.span, format!("{what} is not a list"), label)
}

/// Returns the items of a list, or the one value that stands in its place.
pub(crate) fn one_or_more(node: &YamlNode) -> Vec<&YamlNode> {
    match &node.kind {
        YamlKind::List(items) => items.iter().collect(),
        _ => vec![node],
    }
}

/// Returns the text of a single value. Reports a mistake if it is none.
pub(crate) fn text<'n>(
    translator: &mut Translator<'_>,
    node: &'n YamlNode,
    what: &str,
) -> Option<&'n str> {
    if let Some(text) = node.scalar() {
        return Some(text);
    }
    let label = format!("expected a single value, found {}", node.describe());
    translator.fail(&node.span, format!("{what} cannot be read"), label)
}

/// Returns a number from `least` to `most`. Reports a mistake if it is none.
pub(crate) fn number(
    translator: &mut Translator<'_>,
    node: &YamlNode,
    what: &str,
    (least, most): (f64, f64),
) -> Option<f64> {
    let number = node.scalar().and_then(|text| text.parse::<f64>().ok());
    let number = number.filter(|number| (least..=most).contains(number));
    if number.is_none() {
        let label = format!("expected a number from {least} to {most}");
        translator.mistake(&node.span, format!("{what} cannot be read"), label);
    }
    number
}

/// Reports whether the value is `true`.
pub(crate) fn is_true(node: &YamlNode) -> bool {
    node.scalar() == Some("true")
}
