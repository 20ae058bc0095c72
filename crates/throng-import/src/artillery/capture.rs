//! `capture`: parts of an answer that later steps use.

use throng_load::scenario::YamlNode;

use crate::translator::Translator;
use crate::yaml::Yaml;

use super::variables::{Kind, Variables};
use crate::fields::{Fields, one_or_more, text};
use crate::json_pointer::JsonPointer;

/// Reads one capture, or a list of them. Returns the entries of the step's `capture`.
pub(super) fn read(
    translator: &mut Translator<'_>,
    variables: &mut Variables,
    node: &YamlNode,
) -> Vec<(String, Yaml)> {
    let captures = one_or_more(node);
    captures.into_iter().filter_map(|node| read_one(translator, variables, node)).collect()
}

fn read_one(
    translator: &mut Translator<'_>,
    variables: &mut Variables,
    node: &YamlNode,
) -> Option<(String, Yaml)> {
    let fields = Fields::read(translator, node, "`capture`", KEYS)?;
    let Some(name) = fields.get("as") else {
        let label = "expected `as: name`";
        return translator.fail(&node.span, "this capture has no name", label);
    };
    let name = text(translator, name, "`as`")?;
    let construct = format!("capture {name}");
    let unsupported = ["xpath", "selector", "transform"].iter().find_map(|key| fields.entry(key));
    if let Some((span, _)) = unsupported {
        let remedy = "a scenario captures by JSON pointers, headers and regular expressions; \
                      write a `regex`";
        return translator.omit(&span, construct, remedy);
    }
    let place = if let Some((span, path)) = fields.entry("json") {
        let path = text(translator, path, "`json`")?;
        let Some(pointer) = JsonPointer::of_path(path) else {
            let remedy = "a scenario captures by JSON pointers, which name one place; write \
                          `/items/0`, or a `regex`";
            return translator.omit(&span, format!("{construct}: {path}"), remedy);
        };
        pointer.write()
    } else if let Some((_, header)) = fields.entry("header") {
        let header = text(translator, header, "`header`")?;
        if header.chars().any(|c| c.is_ascii_uppercase()) {
            let why = "Artillery finds only names in small letters, and ends the user otherwise; \
                       the scenario finds the header";
            translator.suspicious(&node.span, &construct, why);
        }
        Yaml::map([("header", Yaml::text(header.to_ascii_lowercase()))])
    } else if let Some((span, regexp)) = fields.entry("regexp") {
        let regexp = text(translator, regexp, "`regexp`")?;
        let group = fields.get("group").and_then(YamlNode::scalar);
        let flags = fields.get("flags").and_then(YamlNode::scalar).unwrap_or_default();
        let Some(regex) = regex(regexp, group, flags) else {
            let remedy = "write a regular expression whose first group is the value";
            return translator.omit(&span, construct, remedy);
        };
        Yaml::map([("regex", Yaml::text(regex))])
    } else {
        let label = "expected `json`, `header` or `regexp`";
        return translator.fail(&node.span, "this capture has no place", label);
    };
    translator.translated(&node.span, construct);
    let stored = variables.store(name);
    if fields.get("json").is_some() {
        variables.is(name, Kind::Any);
    }
    Some((stored, place))
}

/// Returns the regular expression whose first group is the one that Artillery keeps; without a
/// group it keeps the whole match.
fn regex(regexp: &str, group: Option<&str>, flags: &str) -> Option<String> {
    let flags: String = flags.chars().filter(|flag| "ims".contains(*flag)).collect();
    let flags = if flags.is_empty() { String::new() } else { format!("(?{flags})") };
    let group: usize = group.map_or(Some(0), |group| group.parse().ok())?;
    let regexp = match group {
        0 => format!("({regexp})"),
        1 => regexp.to_owned(),
        _ => return None,
    };
    Some(format!("{flags}{regexp}"))
}

pub(super) const KEYS: &[&str] = words![
    "json" "header" "regexp" "group" "flags" "as" "xpath" "selector" "attr" "index" "transform"
    "strict"
];
