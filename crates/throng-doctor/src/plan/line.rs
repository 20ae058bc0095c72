//! A result of a plan with its formula.

use std::fmt;

use serde::Serialize;
use throng_report::render::{bytes, count};

/// A result with its formula.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// Name, such as `memory`.
    pub what: &'static str,
    /// Number with its unit.
    pub amount: Amount,
    /// Calculation with its numbers, such as `100M connections × 4.11 KiB`.
    pub formula: String,
}

impl Line {
    pub(super) fn new(what: &'static str, amount: Amount, formula: impl Into<String>) -> Self {
        Self { what, amount, formula: formula.into() }
    }
}

/// A number with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "unit", content = "value", rename_all = "snake_case")]
pub enum Amount {
    /// Whole machines.
    Machines(u64),
    /// Busy cores.
    Cores(f64),
    /// Bytes.
    Bytes(f64),
    /// Bits a second.
    BitsPerS(f64),
    /// Packets a second.
    PacketsPerS(f64),
    /// Connections.
    Connections(u64),
    /// Fds.
    Fds(u64),
    /// Connections a second.
    ConnectsPerS(f64),
    /// Addresses.
    Addresses(u64),
    /// Ports.
    Ports(u64),
    /// Seconds.
    Seconds(f64),
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Machines(n)
            | Self::Connections(n)
            | Self::Addresses(n)
            | Self::Ports(n)
            | Self::Fds(n) => f.write_str(&count(n as f64)),
            Self::Cores(n) => f.write_str(&count(n)),
            Self::Bytes(n) => f.write_str(&bytes(n)),
            Self::BitsPerS(n) => f.write_str(&bits(n)),
            Self::PacketsPerS(n) | Self::ConnectsPerS(n) => write!(f, "{}/s", count(n)),
            Self::Seconds(n) => f.write_str(&seconds(n)),
        }
    }
}

/// Formats a rate of bits, such as `4.2 Gbit/s`.
pub(super) fn bits(per_s: f64) -> String {
    format!("{}bit/s", count(per_s))
}

/// Formats a time, such as `420 ms`, `20.4 s` or `2.8 h`.
pub(super) fn seconds(n: f64) -> String {
    match n {
        _ if n < 1.0 => format!("{} ms", count(n * 1_000.0)),
        _ if n < 600.0 => format!("{} s", count(n)),
        _ if n < 7_200.0 => format!("{} min", count(n / 60.0)),
        _ => format!("{} h", count(n / 3_600.0)),
    }
}

/// Formats microseconds, such as `64.5 µs`.
pub(super) fn micros(us: f64) -> String {
    format!("{} µs", count(us))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_with_their_units() {
        let shown = |amount: Amount| amount.to_string();
        assert_eq!(shown(Amount::Machines(12)), "12");
        assert_eq!(shown(Amount::Bytes(64.0 * 1024.0 * 1024.0 * 1024.0)), "64.0 GiB");
        assert_eq!(shown(Amount::BitsPerS(25e9)), "25Gbit/s");
        assert_eq!(shown(Amount::PacketsPerS(2.1e6)), "2.1M/s");
        assert_eq!(
            [0.42, 20.4, 1_200.0, 10_080.0].map(seconds),
            ["420 ms", "20.4 s", "20 min", "2.8 h"]
        );
    }
}
