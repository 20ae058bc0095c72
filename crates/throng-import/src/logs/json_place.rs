//! Where a log of JSON is wrong, and where a key of it stands.

use crate::source::Span;

/// Returns the place of a line and a column, both from 1.
pub(crate) fn place(text: &str, line: usize, column: usize) -> Span {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let mut at = (before + column.saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at..at
}

/// Returns the place of a key, or of the whole text.
pub(crate) fn key_place(text: &str, key: &str) -> Span {
    let quoted = format!("\"{key}\"");
    text.find(&quoted).map_or(0..0, |at| at..at + quoted.len())
}

/// Returns what is wrong with a line, without the place that the parser adds.
pub(crate) fn problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map(|(what, _)| what.to_owned()).unwrap_or(text)
}
