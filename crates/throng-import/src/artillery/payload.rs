//! `config.payload`: files whose rows give users their values.

use throng_load::scenario::YamlNode;

use crate::data_file::{DataFile, is_delimiter};
use crate::draft::ROW;
use crate::names::{Names, identifier};
use crate::translator::Translator;

use super::variables::Variables;
use crate::fields::{Fields, is_true, one_or_more, text};

/// Reads the files. Returns `data`, and makes their columns known.
pub(super) fn read(
    translator: &mut Translator<'_>,
    node: &YamlNode,
    variables: &mut Variables,
) -> Vec<(String, DataFile)> {
    let nodes = one_or_more(node);
    let is_only = nodes.len() == 1;
    let mut files: Vec<(String, DataFile)> = Vec::new();
    let mut names = Names::default();
    for node in nodes {
        let Some(payload) = Payload::read(translator, node) else { continue };
        let stem = payload.file.path.rsplit('/').next().unwrap_or_default();
        let name = names.another(stem.split('.').next().unwrap_or_default());
        let name = if is_only { ROW.to_owned() } else { name };
        for (field, column) in &payload.columns {
            variables.add_column(field, format!("{name}.{column}"));
        }
        files.push((name, payload.file));
    }
    files
}

/// An entry of `payload`.
struct Payload {
    file: DataFile,
    /// Names of its fields, and of their columns.
    columns: Vec<(String, String)>,
}

impl Payload {
    fn read(translator: &mut Translator<'_>, node: &YamlNode) -> Option<Self> {
        let fields = Fields::read(translator, node, "`payload`", KEYS)?;
        let Some((span, path)) = fields.entry("path") else {
            let label = "expected `path: users.csv`";
            return translator.fail(&node.span, "this payload has no file", label);
        };
        let path = text(translator, path, "`path`")?.to_owned();
        let names = fields.get("fields").map(one_or_more).unwrap_or_default();
        let names: Vec<_> =
            names.into_iter().filter_map(|name| text(translator, name, "a field")).collect();
        let is_true = |key| fields.get(key).is_some_and(is_true);
        let delimiter = fields.get("delimiter").and_then(YamlNode::scalar).unwrap_or(",");
        let unlike = names.iter().find(|name| **name != identifier(name));
        let has_header = is_true("skipHeader");
        let is_json =
            [".jsonl", ".ndjson"].iter().any(|end| path.to_ascii_lowercase().ends_with(end));
        let remedy = if path.contains("{{") || is_json {
            Some("a data file is one of CSV, with a name; the users have no values from this one")
        } else if names.is_empty() || is_true("loadAll") {
            Some("each user gets one row, and its columns by their names; give them in `fields`")
        } else if !is_delimiter(delimiter) {
            Some("one character stands between two values, and no quote; convert the file")
        } else {
            None
        };
        let construct = format!("payload {path}");
        if let Some(remedy) = remedy {
            return translator.omit(&span, construct, remedy);
        }
        let mut ours = Names::default();
        let columns = names.iter().map(|name| ((*name).to_owned(), ours.of(name)));
        let columns: Vec<_> = columns.collect();
        match (has_header, unlike) {
            (false, _) => translator.translated(&span, construct),
            (true, None) => {
                let header = names.join(delimiter);
                let how = format!("the first line of the file must be its header, `{header}`");
                translator.approximated(&span, construct, how);
            }
            (true, Some(unlike)) => {
                let remedy = format!(
                    "a column has letters, digits and `_` in its name: call `{unlike}` `{}`, in \
                     the first line of the file, too",
                    identifier(unlike)
                );
                translator.not_supported(&span, construct, remedy);
            }
        }
        if fields.get("cast").is_none_or(|node| node.scalar() != Some("false")) {
            let how = "its values are texts, in JSON too, where Artillery makes numbers of digits";
            translator.approximated(&span, "payload cast", how);
        }
        if fields.get("skipEmptyLines").is_some_and(|node| node.scalar() == Some("false")) {
            let how = "empty lines are no rows";
            translator.approximated(&span, "payload skipEmptyLines", how);
        }
        let order = fields.get("order").and_then(YamlNode::scalar).unwrap_or("random");
        if !["random", "sequence"].contains(&order) {
            let span = &fields.get("order")?.span;
            let label = "expected `random` or `sequence`";
            translator.mistake(span, format!("there is no order `{order}`"), label);
        }
        let of_file =
            if has_header { Vec::new() } else { columns.iter().map(|it| it.1.clone()).collect() };
        let file = DataFile {
            path,
            columns: of_file,
            delimiter: delimiter.to_owned(),
            is_random: order != "sequence",
        };
        Some(Self { file, columns })
    }
}

const KEYS: &[&str] = words![
    "path" "fields" "order" "skipHeader" "delimiter" "loadAll" "name" "cast" "skipEmptyLines"
];
