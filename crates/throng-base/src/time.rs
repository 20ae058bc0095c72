//! Time as an argument.
//!
//! A pure crate never reads a clock: its caller passes the time. The driver chooses the origin (the
//! machine's monotonic clock, or zero in the simulation), so only differences have a meaning.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Moment: nanoseconds since the driver's origin, up to 584 years.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Instant(u64);

impl Instant {
    /// Origin.
    pub const ZERO: Self = Self(0);
    /// Moment after all others, which means "never".
    pub const FAR: Self = Self(u64::MAX);

    /// Returns the moment `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the whole microseconds since `earlier`; zero if `earlier` is later. Histograms use
    /// this unit.
    pub const fn micros_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0) / 1_000
    }

    /// Returns `self - span`, or the origin if that is earlier than the origin.
    pub const fn saturating_sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(span)))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::FAR {
            f.write_str("never")
        } else {
            write!(f, "{:?}", Duration::from_nanos(self.0))
        }
    }
}

/// Returns the nanoseconds of `span`, at most those of 584 years.
pub const fn nanos(span: Duration) -> u64 {
    let nanos = span.as_nanos();
    if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_since_a_later_moment_is_zero() {
        let (early, late) = (Instant::from_nanos(1_000), Instant::from_nanos(5_000));
        assert_eq!(late.micros_since(early), 4);
        assert_eq!(early.micros_since(late), 0);
    }

    #[test]
    fn far_stays_far() {
        assert_eq!(Instant::FAR + Duration::from_secs(1), Instant::FAR);
    }
}
