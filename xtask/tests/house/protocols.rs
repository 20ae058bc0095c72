//! The protocols of users are rows of one table: a file outside their folders asks for a property
//! of the row, not for the protocol.

use std::collections::BTreeSet;
use std::fs;

use throng_load::protocols::{Protocol, Scheme};

#[test]
fn no_protocol_is_named_outside_its_folder() {
    let mut naming = BTreeSet::new();
    for file in crate::sources() {
        let path = file.strip_prefix(crate::root()).unwrap().display().to_string();
        let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
        if is_test || path.starts_with(FOLDERS) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        if code.lines().any(names_protocol) {
            naming.insert(path);
        }
    }
    let allowed = NAMING.iter().map(|(path, _)| (*path).to_owned()).collect();
    let added: Vec<_> = naming.difference(&allowed).collect();
    let removed: Vec<_> = allowed.difference(&naming).collect();
    assert!(added.is_empty(), "ask for a property of `ClientProtocol` instead: {added:?}");
    assert!(removed.is_empty(), "they name no protocol any more: {removed:?}");
}

/// Reports whether a line of code names a protocol, or a scheme, by its constant.
fn names_protocol(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let protocols = Protocol::ALL.iter().map(|protocol| format!("Protocol::{protocol:?}"));
    let schemes = Scheme::ALL.iter().map(|scheme| format!("Scheme::{scheme:?}"));
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    protocols.chain(schemes).any(|name| {
        code.match_indices(&name).any(|(at, _)| {
            !code[..at].ends_with(is_word) && !code[at + name.len()..].starts_with(is_word)
        })
    })
}

/// The file and the folder of the table.
const FOLDERS: &str = "crates/throng-load/src/protocols";

/// The files that may name a protocol or a scheme, each with the reason.
const NAMING: &[(&str, &str)] = &[
    ("crates/throng-import/src/mzbench/pool.rs", "that tool has one protocol"),
    ("crates/throng-import/src/stressgrid.rs", "translates the protocols of that tool"),
    ("crates/throng-lab/src/stressgrid_100k/offer.rs", "the lab is about raw TCP"),
];
