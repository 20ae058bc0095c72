//! Moments in logs: seconds since 1970, and RFC 3339.

use std::fmt;
use std::time::Duration;

use throng_base::units::{parse_utc, show_utc};

/// A moment, in microseconds since 1970 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UtcTime(pub(crate) i64);

impl UtcTime {
    /// Returns the moment of seconds since 1970; `None` for one after the year 9999.
    pub(crate) fn of_seconds(seconds: u64) -> Option<Self> {
        let seconds = i64::try_from(seconds).ok().filter(|seconds| *seconds < SECONDS_MAX)?;
        Some(Self(seconds * 1_000_000))
    }

    /// Reads RFC 3339: `2017-05-09T14:34:45.625742514+02:00`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        i64::try_from(parse_utc(text)?.div_euclid(1_000)).ok().map(Self)
    }

    /// Returns the moment that is so much earlier.
    pub(crate) fn before(self, ms: u64) -> Self {
        Self(self.0.saturating_sub(i64::try_from(ms.saturating_mul(1_000)).unwrap_or(i64::MAX)))
    }
}

/// Writes RFC 3339 in whole seconds, as throng's own runs have it. A moment before 1970 is shown
/// as 1970.
impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = u64::try_from(self.0).unwrap_or(0);
        f.write_str(&show_utc(Duration::from_micros(micros)))
    }
}

/// Seconds from 1970 to the year 10000.
const SECONDS_MAX: i64 = 253_402_300_800;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_logs() {
        for (text, shown) in [
            ("2017-05-09T14:34:45.625742514+02:00", Some("2017-05-09T12:34:45Z")),
            ("2026-11-23T21:53:26Z", Some("2026-11-23T21:53:26Z")),
            ("2024-02-29T23:59:59.9-00:30", Some("2024-03-01T00:29:59Z")),
            ("1970-01-01T00:00:00Z", Some("1970-01-01T00:00:00Z")),
            ("2017-05-09", None),
            ("2017-13-09T14:34:45Z", None),
            ("2017-05-09T14:34:45", None),
            ("2017-05-09T14:34:45.Z", None),
            ("yesterday at noon, about", None),
        ] {
            let moment = UtcTime::parse(text).map(|moment| moment.to_string());
            assert_eq!(moment.as_deref(), shown, "{text}");
        }
        assert_eq!(UtcTime::parse("1970-01-01T00:00:01.5Z"), Some(UtcTime(1_500_000)));
        assert_eq!(UtcTime::of_seconds(1_795_470_806).unwrap().to_string(), "2026-11-23T21:53:26Z");
        assert_eq!(UtcTime::of_seconds(u64::MAX), None);
    }
}
