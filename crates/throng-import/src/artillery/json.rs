//! Values of YAML as bodies and messages of JSON.

use throng_load::scenario::{YamlKind, YamlNode};

use crate::json::Json;
use crate::text::escape;
use crate::translator::Translator;

use super::scalar::Scalar;
use super::template::{only_variable, translate};
use super::variables::{Kind, Variables};

/// Returns the value with the variables in its texts and its keys. A text that is nothing but a
/// variable has the variable's type. A key that a variable changes is the last one, as in
/// `engine_util.ts`, `templateObjectOrArray`.
pub(super) fn value(
    translator: &mut Translator<'_>,
    variables: &mut Variables,
    node: &YamlNode,
) -> Json {
    match &node.kind {
        YamlKind::Nothing => Json::Plain("null".to_owned()),
        YamlKind::Scalar(text) => match Scalar::of(&translator.source, node, text) {
            Scalar::Typed { json, .. } => Json::Plain(json),
            Scalar::Text(text) => of_text(translator, variables, node, &text),
        },
        YamlKind::List(items) => {
            Json::List(items.iter().map(|item| value(translator, variables, item)).collect())
        }
        YamlKind::Map(entries) => {
            let (mut kept, mut changed) = (Vec::new(), Vec::new());
            for (key, item) in entries {
                let name = key.scalar().unwrap_or_default();
                let item = value(translator, variables, item);
                if name.contains("{{") {
                    changed.push((translate(translator, variables, &key.span, name), item));
                } else {
                    kept.push((escape(name), item));
                }
            }
            Json::Map(kept.into_iter().chain(changed).collect())
        }
    }
}

fn of_text(
    translator: &mut Translator<'_>,
    variables: &mut Variables,
    node: &YamlNode,
    text: &str,
) -> Json {
    let only = only_variable(text);
    let kind = only.map_or(Kind::Text, |name| variables.kind(name));
    let value = translate(translator, variables, &node.span, text);
    match kind {
        Kind::Text => Json::Text(value),
        Kind::Number => Json::Number(value),
        Kind::Any => {
            let how = "a value that a step has stored is a text in JSON, where Artillery sends a \
                       number as one";
            translator.approximated(&node.span, text, how);
            Json::Text(value)
        }
    }
}
