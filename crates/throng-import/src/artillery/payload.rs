//! `config.payload`: files whose rows give users their values.

use throng_load::scenario::YamlNode;

use crate::translator::Translator;
use crate::yaml::Yaml;

use super::fields::{Fields, is_true, one_or_more, text};
use super::variables::Variables;
use crate::names::identifier;

/// Reads the files. Returns `data`, and makes their columns known.
pub(super) fn read(
    translator: &mut Translator<'_>,
    node: &YamlNode,
    variables: &mut Variables,
) -> Option<Yaml> {
    let nodes = one_or_more(node);
    let is_only = nodes.len() == 1;
    let mut files: Vec<(String, Yaml)> = Vec::new();
    for node in nodes {
        let Some(file) = File::read(translator, node) else { continue };
        let stem = file.path.rsplit('/').next().unwrap_or_default();
        let stem = identifier(stem.split('.').next().unwrap_or_default());
        let is_known = files.iter().any(|(name, _)| *name == stem);
        let name = if is_known { format!("{stem}_{}", files.len() + 1) } else { stem };
        let prefix = if is_only { "row" } else { &name };
        for field in &file.fields {
            variables.columns.push((field.clone(), format!("{prefix}.{}", identifier(field))));
        }
        files.push((name, file.write()));
    }
    if is_only { files.pop().map(|(_, file)| file) } else { Some(Yaml::map(files)) }
}

/// A file of `payload`.
struct File {
    path: String,
    fields: Vec<String>,
    is_in_turn: bool,
}

impl File {
    fn read(translator: &mut Translator<'_>, node: &YamlNode) -> Option<Self> {
        let fields = Fields::read(translator, node, "`payload`", &KEYS)?;
        let Some((span, path)) = fields.entry("path") else {
            let label = "expected `path: users.csv`";
            translator.mistake(&node.span, "this payload has no file", label);
            return None;
        };
        let path = text(translator, path, "`path`")?.to_owned();
        let names = fields.get("fields").map(one_or_more).unwrap_or_default();
        let names: Vec<_> =
            names.into_iter().filter_map(|name| text(translator, name, "a field")).collect();
        let construct = format!("payload {path}");
        let is_csv = path.to_ascii_lowercase().ends_with(".csv");
        let column = |name: &&str| **name == *identifier(name);
        let unlike = names.iter().find(|name| !column(name));
        let is_true = |key| fields.get(key).is_some_and(is_true);
        let comma = fields.get("delimiter").is_none_or(|node| node.scalar() == Some(","));
        if !is_csv || path.contains("{{") {
            let remedy = "a data file is called name.csv; the users have no values from this one";
            translator.not_supported(&span, construct, remedy);
            return None;
        }
        if names.is_empty() || is_true("loadAll") {
            let remedy = "each user gets one row, and its columns by their names; give them in \
                          `fields`";
            translator.not_supported(&span, construct, remedy);
            return None;
        }
        let header = names.join(",");
        if !comma {
            let remedy = "values stand between commas in a data file; convert it";
            translator.not_supported(&span, construct, remedy);
        } else if let Some(unlike) = unlike {
            let remedy = format!(
                "a column has letters, digits and `_` in its name: call `{unlike}` `{}`, in the \
                 first line of the file, too",
                identifier(unlike)
            );
            translator.not_supported(&span, construct, remedy);
        } else if is_true("skipHeader") {
            let how = format!("the first line of the file must be its header, `{header}`");
            translator.approximated(&span, construct, how);
        } else {
            let remedy = format!("the file needs a header: write `{header}` above its first line");
            translator.not_supported(&span, construct, remedy);
        }
        let order = fields.get("order").and_then(YamlNode::scalar).unwrap_or("random");
        if !["random", "sequence"].contains(&order) {
            let span = &fields.get("order")?.span;
            let label = "expected `random` or `sequence`";
            translator.mistake(span, format!("there is no order `{order}`"), label);
        }
        let fields = names.into_iter().map(str::to_owned).collect();
        Some(Self { path, fields, is_in_turn: order == "sequence" })
    }

    fn write(&self) -> Yaml {
        let file = Yaml::text(&*self.path);
        if self.is_in_turn {
            return file;
        }
        Yaml::map([("file", file), ("order", Yaml::plain("random"))])
    }
}

const KEYS: [&str; 9] = [
    "path",
    "fields",
    "order",
    "skipHeader",
    "delimiter",
    "loadAll",
    "name",
    "cast",
    "skipEmptyLines",
];
