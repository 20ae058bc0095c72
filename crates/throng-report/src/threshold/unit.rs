//! The units of measurements.

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
