//! Values of YAML as bodies and messages of JSON.

use throng_load::scenario::{YamlKind, YamlNode};

use crate::json::Json;
use crate::translator::Translator;

use super::template::{only_variable, translate};
use super::variables::{Kind, Variables};

/// Returns the value with the variables in its texts. A text that is nothing but a variable has the
/// variable's type.
pub(super) fn value(
    translator: &mut Translator<'_>,
    variables: &mut Variables,
    node: &YamlNode,
) -> Json {
    match &node.kind {
        YamlKind::Nothing => Json::Plain("null".to_owned()),
        YamlKind::Scalar(text) if node.is_typed => Json::Plain(text.clone()),
        YamlKind::Scalar(text) => {
            let kind = only_variable(text).map_or(Kind::Text, |name| variables.kind(name));
            let value = translate(translator, variables, &node.span, text);
            match kind {
                Kind::Text => Json::Text(value),
                Kind::Number => Json::Number(value),
                Kind::Any => {
                    let how = "a value that a step has stored is a text in JSON, where Artillery \
                               sends a number as one";
                    translator.approximated(&node.span, text.as_str(), how);
                    Json::Text(value)
                }
            }
        }
        YamlKind::List(items) => {
            Json::List(items.iter().map(|item| value(translator, variables, item)).collect())
        }
        YamlKind::Map(entries) => {
            let entries = entries.iter().map(|(key, item)| {
                let key = key.scalar().unwrap_or_default();
                (key.to_owned(), value(translator, variables, item))
            });
            Json::Map(entries.collect())
        }
    }
}
