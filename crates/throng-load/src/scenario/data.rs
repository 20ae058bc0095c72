//! `data`: files whose rows give users their values.

mod read;
mod table;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::load::{Model, Phase, ScenarioLoad, Spacing};
use super::node::{Kind, Node};
use super::reader::Reader;
use crate::schedule::{self, UserNumbers};
pub use read::DataFileError;
use read::{COLUMNS_MAX, CsvForm};
pub use table::{DataTable, RowOrder};

/// Reads the data files of a scenario: one path, whose columns are `${row.name}`, or a mapping from
/// names to files. Paths are relative to `folder`.
pub(super) fn read(reader: &mut Reader<'_>, node: &Node, folder: &Path) -> Option<()> {
    let Kind::Map(entries) = &node.kind else {
        let table = read_file(reader, node, "row", folder, &CsvForm::default())?;
        reader.names.tables.push(table);
        return Some(());
    };
    if entries.iter().any(|(key, _)| key.scalar() == Some("file")) {
        let table = read_options(reader, node, "row", folder)?;
        reader.names.tables.push(table);
        return Some(());
    }
    if entries.len() > TABLES_MAX {
        let label = format!("at most {TABLES_MAX}");
        reader.error(node.span.clone(), "too many data files", label);
        return None;
    }
    for (key, value) in entries {
        let name = reader.text(key, "the key of a data file", "a name")?;
        if !is_name(name) || is_reserved(name) {
            let label =
                "a letter, then letters, digits and _; not user, env, sent, setup or counter";
            reader.error(key.span.clone(), format!("`{name}` cannot name a data file"), label);
            return None;
        }
        let table = match value.kind {
            Kind::Map(_) => read_options(reader, value, name, folder)?,
            _ => read_file(reader, value, name, folder, &CsvForm::default())?,
        };
        reader.names.tables.push(table);
    }
    Some(())
}

fn read_options(
    reader: &mut Reader<'_>,
    node: &Node,
    name: &str,
    folder: &Path,
) -> Option<DataTable> {
    let fields = reader.fields(node, "a data file", &["file", "order", "columns", "delimiter"])?;
    let order = match fields.get("order") {
        None => Some(RowOrder::default()),
        Some(node) => {
            let known = [
                ("in_turn", RowOrder::InTurn),
                ("random", RowOrder::Random),
                ("unique", RowOrder::Unique),
            ];
            reader.one_of(node, "`order`", &known)
        }
    };
    let columns = reader.optional(&fields, "columns", read_columns);
    let delimiter = reader.optional(&fields, "delimiter", read_delimiter);
    let file = reader.require(&fields, "file", "a data file", "file: users.csv")?;
    let (Some(columns), Some(delimiter)) = (columns, delimiter) else {
        reader.names.add_unreadable(name);
        return None;
    };
    let table = read_file(reader, file, name, folder, &CsvForm { columns, delimiter })?;
    Some(table.with_order(order?))
}

/// Reads the names of the columns of a file whose first line is a row.
fn read_columns(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<String>> {
    let expected = "a list of names such as [user, token]";
    let Kind::List(items) = &node.kind else {
        reader.wrong_kind(node, "`columns`", expected);
        return None;
    };
    if items.len() > COLUMNS_MAX {
        let title = format!("`columns` has {} names", items.len());
        reader.error(node.span.clone(), title, format!("at most {COLUMNS_MAX}"));
        return None;
    }
    let (mut columns, mut names) = (Vec::<String>::new(), HashSet::new());
    for item in items {
        let name = reader.text(item, "a name in `columns`", "a name")?;
        let label = match is_name(name) {
            true if names.insert(name) => {
                columns.push(name.to_owned());
                continue;
            }
            true => "it is there already; give each column a name of its own",
            false => "a letter, then letters, digits and _",
        };
        reader.error(item.span.clone(), format!("`{name}` cannot name a column"), label);
        return None;
    }
    if columns.is_empty() {
        reader.error(node.span.clone(), "`columns` is empty", format!("expected {expected}"));
        return None;
    }
    Some(columns)
}

/// Reads the character between two values.
fn read_delimiter(reader: &mut Reader<'_>, node: &Node) -> Option<u8> {
    let text = reader.text(node, "`delimiter`", "a character such as \";\"")?;
    match text.as_bytes() {
        [byte @ (b'\t' | b' '..=b'~')] if *byte != b'"' => Some(*byte),
        _ => {
            let label = "one character of ASCII, and no quote: \";\", \"|\", \"\\t\"";
            reader.error(node.span.clone(), format!("`{text}` cannot be a delimiter"), label);
            None
        }
    }
}

fn read_file(
    reader: &mut Reader<'_>,
    node: &Node,
    name: &str,
    folder: &Path,
    form: &CsvForm,
) -> Option<DataTable> {
    let text = reader.text(node, "`data`", "the path of a file such as users.csv")?;
    let path: PathBuf = folder.join(text);
    match read::read(&reader.inputs, (folder, &path), name, form) {
        Ok(table) => {
            reader.files.push(path);
            Some(table)
        }
        Err(error) => {
            reader.names.add_unreadable(name);
            let span = node.span.clone();
            reader.error(span, format!("cannot use `{text}`: {}", error.problem), error.remedy);
            None
        }
    }
}

/// Reports a file with fewer rows than users, where each user is to have a row of its own.
pub(super) fn check_rows(reader: &mut Reader<'_>, node: &Node, load: &ScenarioLoad) {
    let users = most_users_of(load);
    let unique = |table: &&DataTable| table.order() == RowOrder::Unique;
    let short =
        reader.names.tables.iter().filter(unique).find(|table| (table.rows() as u64) < users);
    let Some(table) = short else { return };
    let title = format!("{} has {} rows for up to {users} users", table.path(), table.rows());
    let label =
        "`order: unique` needs a row for each; `order: in_turn` begins again after the last";
    let span = reader.first_line(&node.span);
    let mistake = reader.error(span, title, label);
    if load.model() == Model::Open {
        mistake.help = Some("`most: N` in `arrivals` limits the number of users".to_owned());
    }
}

/// Returns how many numbers of users a load has at most.
pub(super) fn most_users_of(load: &ScenarioLoad) -> u64 {
    let lanes: Vec<_> = load.lanes().map(most_users).collect();
    UserNumbers::of(load).used(|lane| lanes[lane])
}

/// Returns how many users a load has at most. Random arrivals exceed it in less than one run of a
/// thousand million.
fn most_users(load: &[Phase]) -> u64 {
    match Model::of(load) {
        Model::Closed => schedule::peak_users(load),
        Model::Open => {
            let planned = schedule::arrivals_total(load);
            let is_random = |phase: &Phase| {
                matches!(phase, Phase::Arrivals { most: None, spacing: Spacing::Poisson, .. })
            };
            let spread = (planned as f64).sqrt() * 6.0;
            if load.iter().any(is_random) { planned + spread.ceil() as u64 } else { planned }
        }
    }
}

/// Reports whether `name` is a letter and then letters, digits and underscores.
pub(crate) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Reports whether a name means something else in a variable.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Names that mean something else in a variable.
const RESERVED: [&str; 6] = ["user", "env", "sent", "setup", "counter", "probe"];

/// Most data files of a scenario.
const TABLES_MAX: usize = 16;

#[cfg(test)]
mod tests;
