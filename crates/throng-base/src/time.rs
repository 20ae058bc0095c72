//! Time as an argument.
//!
//! A pure crate never reads a clock: whoever drives it passes the moment in. The origin is the
//! driver's choice (the machine's monotonic clock, or zero in the simulation), so only
//! differences mean something.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A moment: nanoseconds since the driver's origin. 584 years fit.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The origin itself.
    pub const ZERO: Self = Self(0);
    /// Later than every moment that happens; used as "never".
    pub const FAR: Self = Self(u64::MAX);

    /// The moment that lies `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero when it is not after.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Whole microseconds after `earlier`; zero when it is not after. The unit of every histogram.
    pub const fn micros_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0) / 1_000
    }

    /// `self - span`, or the origin where that would lie before it.
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

/// Durations of more than 584 years count as that.
const fn nanos(span: Duration) -> u64 {
    let nanos = span.as_nanos();
    if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_that_is_not_later_is_zero_away() {
        let (early, late) = (Instant::from_nanos(1_000), Instant::from_nanos(5_000));
        assert_eq!(late.micros_since(early), 4);
        assert_eq!(early.micros_since(late), 0);
    }

    #[test]
    fn far_stays_far() {
        assert_eq!(Instant::FAR + Duration::from_secs(1), Instant::FAR);
    }
}
