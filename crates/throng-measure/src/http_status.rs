//! Statuses of the answers to HTTP requests, as measurements are named by them.

use std::fmt;

/// A status, or all statuses of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusRange {
    /// One status: `429`.
    One(u16),
    /// The first digit of a class: `4xx`.
    Class(u16),
}

impl StatusRange {
    /// Reads `429` or `4xx`. An interim status, below 200, is no answer.
    pub fn named(name: &str) -> Option<Self> {
        let is_digit = |c: char| c.is_ascii_digit();
        match name.strip_suffix("xx") {
            Some(class) if class.len() == 1 => {
                let class = class.parse().ok().filter(|class| (2..=5).contains(class));
                class.map(Self::Class)
            }
            None if name.len() == 3 && name.chars().all(is_digit) => {
                let status = name.parse().ok().filter(|status| (200..600).contains(status));
                status.map(Self::One)
            }
            _ => None,
        }
    }

    /// Reports whether all its statuses are 300 or more.
    pub fn is_no_success(self) -> bool {
        match self {
            Self::One(status) => status >= 300,
            Self::Class(class) => class >= 3,
        }
    }

    /// Reports whether the status, as a tally names it, is in the range. A status of 600 or more
    /// counts as a fault of the server.
    pub fn contains(self, status: &str) -> bool {
        let Ok(status) = status.parse::<u16>() else { return false };
        match self {
            Self::One(one) => status == one,
            Self::Class(class) => (status / 100).min(5) == class,
        }
    }
}

impl fmt::Display for StatusRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(status) => write!(f, "{status}"),
            Self::Class(class) => write!(f, "{class}xx"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_a_status_or_a_class() {
        for name in ["200", "429", "599", "2xx", "5xx"] {
            assert_eq!(StatusRange::named(name).unwrap().to_string(), name);
        }
        for name in
            ["", "xx", "1xx", "6xx", "44xx", "4x", "42", "101", "600", "4290", "+42", "４29"]
        {
            assert_eq!(StatusRange::named(name), None, "{name}");
        }
    }

    #[test]
    fn a_class_has_all_its_statuses() {
        let contains = |range: &str, status| StatusRange::named(range).unwrap().contains(status);
        assert!(contains("429", "429") && !contains("429", "428"));
        assert!(contains("4xx", "400") && contains("4xx", "499") && !contains("4xx", "500"));
        assert!(contains("5xx", "999") && !contains("5xx", "four"));
    }
}
