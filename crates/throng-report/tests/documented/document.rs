//! `docs/run-file.md`, and the fields that its tables name.

use std::collections::BTreeSet;

use serde_json::Value;

pub(crate) fn document() -> String {
    std::fs::read_to_string(DOCUMENT).unwrap()
}

/// The key that stands for every key of an object whose keys are not fields.
pub(crate) const ANY: &str = "*";

/// Checks that the fields of `json` are those of the tables under `## section`.
#[track_caller]
pub(crate) fn check(section: &str, json: &Value) {
    let mut fields = BTreeSet::new();
    collect("", json, &mut fields);
    let documented = documented(section);
    let missing: Vec<_> = fields.difference(&documented).collect();
    let stale: Vec<_> = documented.difference(&fields).collect();
    assert!(missing.is_empty(), "not in docs/run-file.md under {section:?}: {missing:?}");
    assert!(stale.is_empty(), "in docs/run-file.md and nowhere else: {stale:?}");
}

/// Collects the paths of all fields: `load.counters.connected`, `events[].at_ms`.
fn collect(path: &str, json: &Value, fields: &mut BTreeSet<String>) {
    match json {
        Value::Object(object) => {
            for (key, value) in object {
                let path = joined(path, key);
                if key != ANY {
                    fields.insert(path.clone());
                }
                collect(&path, value, fields);
            }
        }
        Value::Array(array) => {
            array.iter().for_each(|value| collect(&format!("{path}[]"), value, fields));
        }
        _ => {}
    }
}

/// Returns the names in the first columns of a section's tables headed `field`, each below the
/// paths in its heading.
fn documented(section: &str) -> BTreeSet<String> {
    let document = document();
    let mut fields = BTreeSet::new();
    let (mut inside, mut paths, mut table_of_fields) = (false, vec![String::new()], false);
    // A heading without a path has its paths in lines below it.
    let mut is_list_below = false;
    for line in document.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            (inside, paths) = (title == section, vec![String::new()]);
            is_list_below = false;
        } else if let Some(title) = line.strip_prefix("### ") {
            paths = names(title);
            is_list_below = paths.is_empty();
        } else if is_list_below && line.starts_with('`') {
            paths.extend(names(line));
        } else if !line.starts_with('|') {
            table_of_fields = false;
        } else if line.starts_with("| field |") {
            table_of_fields = true;
        } else if inside && table_of_fields {
            let named = names(line.split('|').nth(1).unwrap());
            fields
                .extend(paths.iter().flat_map(|path| named.iter().map(|name| joined(path, name))));
        }
    }
    assert!(!fields.is_empty(), "no section {section:?}");
    fields
}

/// Returns the texts between backticks.
pub(crate) fn names(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/run-file.md");
