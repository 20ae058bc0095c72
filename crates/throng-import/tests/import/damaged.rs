//! Damaged files: each is refused or imported. No importer panics, and throng accepts all
//! scenarios that an importer writes.

use std::fs;
use std::path::PathBuf;

use throng_import::ImportOptions;

use crate::{files, import_text, import_with};

/// Calls `check` with the name and the text of each file.
fn each_file(mut check: impl FnMut(&str, &str)) {
    let mut count = 0;
    for folder in fs::read_dir(files()).unwrap() {
        let paths = fs::read_dir(folder.unwrap().path()).unwrap();
        for path in paths.map(|entry| entry.unwrap().path()) {
            check(&name(&path), &fs::read_to_string(&path).unwrap());
            count += 1;
        }
    }
    assert!(count > 0);
}

/// Returns the path from the folder of all files.
fn name(path: &std::path::Path) -> String {
    let path: PathBuf = path.strip_prefix(files()).unwrap().to_owned();
    path.to_string_lossy().into_owned()
}

/// A target of another protocol is a mistake, or its users do what it takes.
#[test]
fn files_for_another_target() {
    let mut refused = 0;
    each_file(|name, text| {
        for target in ["tcp://127.0.0.1:1", "ws://127.0.0.1:1", "http://127.0.0.1:1"] {
            let options = ImportOptions { target: Some(target.parse().unwrap()) };
            refused += usize::from(import_with(text, name, &options).is_err());
        }
    });
    assert!(refused > 0);
}

#[test]
fn files_that_end_early() {
    each_file(|name, text| {
        let ends = text.char_indices().map(|(at, _)| at);
        let step = 1 + text.len() / 300;
        ends.step_by(step).for_each(|end| drop(import_text(&text[..end], name)));
    });
}

#[test]
fn files_without_a_part() {
    each_file(|name, text| {
        for length in [1, 7, 40] {
            let step = 1 + text.len() / 150;
            for start in (0..text.len().saturating_sub(length)).step_by(step) {
                let Some((before, after)) = text.get(..start).zip(text.get(start + length..))
                else {
                    continue;
                };
                drop(import_text(&format!("{before}{after}"), name));
            }
        }
    });
}

#[test]
fn files_with_another_character() {
    each_file(|name, text| {
        let step = 1 + text.len() / 100;
        for replacement in ["\"", "}", "<", "%", "9999999999", "é", "-", "\u{0}"] {
            for (at, character) in text.char_indices().step_by(step) {
                let after = &text[at + character.len_utf8()..];
                drop(import_text(&format!("{}{replacement}{after}", &text[..at]), name));
            }
        }
    });
}
