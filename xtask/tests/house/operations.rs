//! Operations are listed in one table: what counts, shows or judges all of them walks it.

use std::collections::BTreeSet;
use std::fs;

use throng_measure::Operation;

#[test]
fn no_list_of_operations_stands_outside_the_table() {
    let mut listing = BTreeSet::new();
    for file in crate::sources() {
        let path = file.strip_prefix(crate::root()).unwrap().display().to_string();
        if path.contains("/tests/") || path.ends_with("/tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        if lists_operations(code) {
            listing.insert(path);
        }
    }
    let allowed = LISTS.iter().map(|(path, _)| (*path).to_owned()).collect();
    let added: Vec<_> = listing.difference(&allowed).collect();
    let removed: Vec<_> = allowed.difference(&listing).collect();
    assert!(added.is_empty(), "walk `Operation::ALL` instead of naming its rows: {added:?}");
    assert!(removed.is_empty(), "they list no operations any more: {removed:?}");
}

/// Reports whether a few lines after one another name three operations.
fn lists_operations(code: &str) -> bool {
    let lines: Vec<_> = code.lines().map(named).collect();
    lines.windows(LINES).any(|near| near.iter().flatten().collect::<BTreeSet<_>>().len() >= 3)
}

/// Returns the operations that a line of code names, in quotes or by their constants.
fn named(line: &str) -> Vec<Operation> {
    let code = line.split("//").next().unwrap_or_default();
    let is_named = |operation: &Operation| {
        let constant = format!("Operation::{operation:?}");
        let is_constant = code
            .split(&constant)
            .skip(1)
            .any(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'));
        is_constant || code.contains(&format!("\"{operation}\""))
    };
    Operation::ALL.into_iter().filter(is_named).collect()
}

/// Lines that are near one another.
const LINES: usize = 8;

/// The files that may name three operations after one another, each with the reason.
const LISTS: &[(&str, &str)] = &[
    ("crates/throng-import/src/logs/tsung_log/run.rs", "reads the names of tsung's log"),
    ("crates/throng-lab/src/message_window.rs", "has a figure for each of three"),
    ("crates/throng-report/src/render/progress.rs", "has a part of the line for each"),
    ("crates/throng-report/src/summary/operation_summary.rs", "has the fields of each"),
];
