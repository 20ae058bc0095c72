//! Lines and words: how wide a line is, and which words do not come back.

use std::fs;
use std::path::{Path, PathBuf};

/// Columns of a line of code, of a comment, and of prose.
const COLUMNS_MAX: usize = 100;

/// Words that make a sentence hard, and what to say instead.
const WORDS: &[(&str, &str)] = &[
    ("whoever", "say which connection, user or caller"),
    ("somebody", "say which connection, user or caller"),
    ("nobody", "say no connection, no user or no caller"),
    ("anybody", "say any connection, user or caller"),
    ("everybody", "say all connections, users or callers"),
    ("of which nothing", "say what did not arrive"),
    ("is to be had", "say available"),
    ("by himself", "say itself, or leave it out"),
    ("anyhow", "leave it out"),
];

/// Names with such a word that stay: a wall, a phase in run files, a user of Unix.
const KEPT: &[&str] = &["nobody listens", "everybody leaves", "NOBODY"];

#[test]
fn no_line_is_wider_than_a_hundred_columns() {
    let mut wide = Vec::new();
    let of_this_test = crate::files(&crate::root().join("xtask/tests/house"), "rs");
    for file in crate::sources().into_iter().chain(of_this_test) {
        let text = fs::read_to_string(&file).unwrap();
        let lines = text.lines().enumerate().filter(|(_, line)| is_wide(line) && can_be_cut(line));
        wide.extend(lines.map(|(at, _)| place(&file, at)));
    }
    // The sentences of the matrix are the doctor's: a test writes them.
    let is_written_by_hand = |file: &PathBuf| !file.ends_with("confusion-matrix.md");
    for file in crate::files(&crate::root(), "md").into_iter().filter(is_written_by_hand) {
        let text = fs::read_to_string(&file).unwrap();
        let lines = prose(&text).filter(|(_, line)| is_wide(line) && can_be_cut(line));
        wide.extend(lines.map(|(at, _)| place(&file, at)));
    }
    assert!(wide.is_empty(), "{} lines are too wide:\n{}", wide.len(), wide.join("\n"));
}

#[test]
fn words_that_make_a_sentence_hard_do_not_come_back() {
    let mut found = Vec::new();
    for file in crate::sources() {
        let text = fs::read_to_string(&file).unwrap();
        for (at, line) in text.lines().enumerate() {
            found.extend(
                hard_words(line)
                    .map(|(word, say)| format!("{}: \"{word}\": {say}", place(&file, at))),
            );
        }
    }
    for file in crate::files(&crate::root(), "md") {
        let text = fs::read_to_string(&file).unwrap();
        for (at, line) in prose(&text) {
            found.extend(
                hard_words(line)
                    .map(|(word, say)| format!("{}: \"{word}\": {say}", place(&file, at))),
            );
        }
    }
    assert!(found.is_empty(), "{} hard words:\n{}", found.len(), found.join("\n"));
}

/// The lines of a Markdown text that are prose, with their numbers from 0: no code, no table.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence && !line.starts_with("    ") && !line.trim_start().starts_with('|')
    })
}

/// Whether a line is too wide. A snapshot of what a terminal shows is as wide as that.
fn is_wide(line: &str) -> bool {
    let is_snapshot =
        ["|", "= help:", "v1 >>"].iter().any(|mark| line.trim_start().starts_with(mark));
    line.chars().count() > COLUMNS_MAX && !is_snapshot
}

/// Whether there is a place before the limit at which a line can end: a long link or name has none.
fn can_be_cut(line: &str) -> bool {
    let words = line.split(' ').map(|word| word.chars().count());
    words.max().unwrap_or_default() < COLUMNS_MAX * 2 / 3
}

fn hard_words(line: &str) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    let lower =
        KEPT.iter().fold(line.to_owned(), |line, kept| line.replace(kept, "")).to_lowercase();
    WORDS.iter().filter(move |(word, _)| {
        lower.match_indices(word).any(|(at, _)| {
            let before = lower[..at].chars().next_back();
            let after = lower[at + word.len()..].chars().next();
            let is_part =
                |near: Option<char>| near.is_some_and(|c| c.is_alphanumeric() || c == '_');
            !is_part(before) && !is_part(after)
        })
    })
}

fn place(file: &Path, line: usize) -> String {
    format!("{}:{}", file.strip_prefix(crate::root()).unwrap().display(), line + 1)
}
