//! Helpers for the kernel's text formats.

use crate::fact::ParseFailure;

/// Parses a decimal number.
pub(crate) fn number(word: &str) -> Result<u64, ParseFailure> {
    word.parse().map_err(|_| ParseFailure("a number"))
}

/// Parses a hexadecimal number without a prefix.
pub(crate) fn hex(word: &str) -> Result<u64, ParseFailure> {
    u64::from_str_radix(word, 16).map_err(|_| ParseFailure("a hexadecimal number"))
}

/// Parses the next word as a decimal number.
pub(crate) fn next<'a>(words: &mut impl Iterator<Item = &'a str>) -> Result<u64, ParseFailure> {
    number(words.next().ok_or(ParseFailure("another number"))?)
}

/// Returns the value after `name` in a line of alternating names and values.
pub(crate) fn named(line: &str, name: &str) -> Option<u64> {
    let mut words = line.split_ascii_whitespace();
    while let Some(word) = words.next() {
        let value = words.next()?;
        if word == name {
            return value.parse().ok();
        }
    }
    None
}

/// Returns the rest of the first line that begins with `head`.
pub(crate) fn after<'a>(text: &'a str, head: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(head))
}

/// Returns the number in the line whose first word is `name`, such as `nr_throttled 12`.
pub(crate) fn keyed(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(' ')?;
        if key == name { value.trim().parse().ok() } else { None }
    })
}
