//! Moments in logs: seconds since 1970, and RFC 3339.

use std::fmt;

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
        let (date, rest) = text.split_at_checked(10)?;
        let rest = rest.strip_prefix(['T', 't', ' '])?;
        let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
        let (clock, rest) = rest.split_at_checked(8)?;
        let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
        let is_valid = (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && hour < 24
            && minute < 60
            && second <= 60;
        let (micros, zone) = match rest.strip_prefix('.') {
            Some(rest) => {
                let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                let (fraction, zone) = rest.split_at_checked(digits)?;
                let padded: String = fraction.chars().chain("000000".chars()).take(6).collect();
                ((digits > 0).then_some(padded)?.parse::<i64>().ok()?, zone)
            }
            None => (0, rest),
        };
        let offset = match zone {
            "Z" | "z" => 0,
            zone => {
                let sign = if zone.strip_prefix('+').is_some() { 1 } else { -1 };
                let zone = zone.strip_prefix(['+', '-'])?;
                let [hours, minutes] = numbers(zone, ':', [2, 2])?;
                sign * (hours * 3_600 + minutes * 60)
            }
        };
        let days = days_since_1970(year, month, day);
        let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second - offset;
        is_valid.then_some(Self(seconds * 1_000_000 + micros))
    }

    /// Returns the moment that is so much earlier.
    pub(crate) fn before(self, ms: u64) -> Self {
        Self(self.0.saturating_sub(i64::try_from(ms.saturating_mul(1_000)).unwrap_or(i64::MAX)))
    }
}

/// Writes RFC 3339 in whole seconds, as throng's own runs have it.
impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(1_000_000);
        let (year, month, day) = date(seconds.div_euclid(86_400));
        let clock = seconds.rem_euclid(86_400);
        let (hour, minute, second) = (clock / 3_600, clock / 60 % 60, clock % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// Reads numbers of these lengths with `between` between them.
fn numbers<const N: usize>(text: &str, between: char, lengths: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(between);
    let mut found = [0; N];
    for (number, length) in found.iter_mut().zip(lengths) {
        let part = parts.next()?;
        let is_number = part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = is_number.then(|| part.parse().ok()).flatten()?;
    }
    parts.next().is_none().then_some(found)
}

/// Counts days by eras of 400 years that begin in March, so that a leap day ends its year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - DAYS_TO_1970
}

/// Returns year, month and day of a count of days since 1970.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_TO_1970;
    let (era, of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

/// Days of 400 years.
const ERA_DAYS: i64 = 146_097;
/// Days from the first of March of the year 0 to 1970.
const DAYS_TO_1970: i64 = 719_468;
/// Seconds from 1970 to the year 10000.
const SECONDS_MAX: i64 = 253_402_300_800;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn a_moment_is_what_it_was_after_text(seconds in 0..SECONDS_MAX) {
            let moment = UtcTime(seconds * 1_000_000);
            prop_assert_eq!(UtcTime::parse(&moment.to_string()), Some(moment));
        }

        #[test]
        fn any_text_is_a_moment_or_none(text in ".{0,40}") {
            let _ = UtcTime::parse(&text);
        }
    }
}
