//! The units of measurements.

use throng_base::units::{self, UnitError};

/// The unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Microseconds, written as a duration.
    Micros,
    Count,
    /// A rate per second.
    Rate,
    /// A share: 1 is 100 %.
    Share,
    Bytes,
}

impl Unit {
    /// Returns its name in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Micros => "us",
            Self::Count => "count",
            Self::Rate => "per_second",
            Self::Share => "share",
            Self::Bytes => "bytes",
        }
    }

    /// Reads an amount, such as `5ms`.
    pub(super) fn parse(self, text: &str) -> Result<f64, UnitError> {
        Ok(match self {
            Self::Micros => units::parse_duration(text)?.as_nanos() as f64 / 1000.0,
            Self::Count => units::parse_count(text)? as f64,
            Self::Rate => units::parse_rate(text)?,
            Self::Share => units::parse_share(text)?,
            Self::Bytes => units::parse_bytes(text)? as f64,
        })
    }

    /// Returns a value as text, in the digits of a limit.
    pub(super) fn show(self, value: f64) -> String {
        match self {
            Self::Micros if value < 100.0 && value.fract() != 0.0 => format!("{value:.1} µs"),
            Self::Micros => units::brief_micros(value.round() as u64),
            Self::Count => format!("{value}"),
            Self::Rate => units::brief_rate(value),
            Self::Share => units::show_share((value * 1e6).round() / 1e6),
            Self::Bytes => units::brief_bytes(value),
        }
    }
}
