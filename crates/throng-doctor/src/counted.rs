//! Numbers with the word that they count.

use throng_base::units::plural;
use throng_report::render::count;

/// Formats a number with its word: `1 time`, `2.1k times`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number as f64), plural(number, one, many))
}

/// Formats a number of connections.
pub(crate) fn connections(number: u64) -> String {
    counted(number, "connection", "connections")
}

/// Formats how often something happened.
pub(crate) fn times(number: u64) -> String {
    counted(number, "time", "times")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        assert_eq!([times(1), times(2)], ["1 time", "2 times"]);
        assert_eq!([connections(0), connections(1)], ["0 connections", "1 connection"]);
        assert_eq!(counted(2_100, "SYN was", "SYNs were"), "2.1k SYNs were");
    }
}
