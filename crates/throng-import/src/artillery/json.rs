//! Values of YAML as bodies and messages of JSON.

use throng_load::scenario::{YamlKind, YamlNode};

use crate::translator::Translator;
use crate::yaml::Yaml;

use super::template::translate;
use super::variables::Variables;

/// Returns the value with the variables in its texts.
pub(super) fn value(
    translator: &mut Translator<'_>,
    variables: &mut Variables,
    node: &YamlNode,
) -> Yaml {
    match &node.kind {
        YamlKind::Nothing => Yaml::plain("null"),
        YamlKind::Scalar(text) if node.is_typed => Yaml::plain(text),
        YamlKind::Scalar(text) => Yaml::text(translate(translator, variables, &node.span, text)),
        YamlKind::List(items) => {
            Yaml::list(items.iter().map(|item| value(translator, variables, item)))
        }
        YamlKind::Map(entries) => Yaml::map(entries.iter().map(|(key, item)| {
            let key = key.scalar().unwrap_or_default();
            (key.to_owned(), value(translator, variables, item))
        })),
    }
}
