//! Words of sentences: numbers with what they count, and first letters.

use throng_base::units::plural;
use throng_report::render::count;

/// Formats a number with its word: `1 time`, `2.1k times`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number as f64), plural(number, one, many))
}

/// Formats a part of a number with its word: `3 of 2.1k answers`, `1 of 1 answer`.
pub(crate) fn part_of(part: u64, of: u64, one: &str, many: &str) -> String {
    format!("{} of {}", count(part as f64), counted(of, one, many))
}

/// Formats a part of a number, or all of it, with its word: `3 of 40 answers`, `all 40 answers`,
/// `the only answer`.
pub(crate) fn all_or_part_of(part: u64, of: u64, one: &str, many: &str) -> String {
    match of {
        1 if part == 1 => format!("the only {one}"),
        _ if part == of => format!("all {}", counted(of, one, many)),
        _ => part_of(part, of, one, many),
    }
}

/// Formats a number of connections.
pub(crate) fn connections(number: u64) -> String {
    counted(number, "connection", "connections")
}

/// Formats how often something happened.
pub(crate) fn times(number: u64) -> String {
    counted(number, "time", "times")
}

/// Returns the text with an upper-case first letter.
pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        assert_eq!([times(1), times(2)], ["1 time", "2 times"]);
        assert_eq!([connections(0), connections(1)], ["0 connections", "1 connection"]);
        assert_eq!(counted(2_100, "SYN was", "SYNs were"), "2.1k SYNs were");
        let parts =
            |part, of| [part_of, all_or_part_of].map(|shown| shown(part, of, "one", "ones"));
        assert_eq!(parts(1, 1), ["1 of 1 one", "the only one"]);
        assert_eq!(parts(2, 2), ["2 of 2 ones", "all 2 ones"]);
        assert_eq!(parts(1, 2), ["1 of 2 ones"; 2]);
    }
}
