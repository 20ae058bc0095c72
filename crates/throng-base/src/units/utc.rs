//! Dates and times as text.

use std::time::Duration;

/// Returns a time as RFC 3339: `2026-11-21T06:06:57Z`. `since` counts from 1970-01-01, without leap
/// seconds, as Unix does.
pub fn show_utc(since: Duration) -> String {
    let (days, seconds) = ((since.as_secs() / 86_400) as i64, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Returns the date of a day counted from 1970-01-01. The calendar's years begin in March, so the
/// leap day comes last.
fn date(days: i64) -> (i64, i64, i64) {
    let day = days + DAYS_FROM_0000_03_01;
    let era = day.div_euclid(DAYS_OF_400_YEARS);
    let of_era = day.rem_euclid(DAYS_OF_400_YEARS);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year_of_era + next, month, day)
}

/// Parses a time of RFC 3339, with its offset from UTC. Returns nanoseconds from 1970-01-01,
/// without leap seconds. A second 60 counts as the first of the next minute.
pub fn parse_utc(text: &str) -> Option<i128> {
    let date_time = text.get(..19)?;
    let number = |at: usize, digits: usize| -> Option<i64> {
        let digits = date_time.get(at..at + digits)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let separators: Vec<u8> = [4, 7, 10, 13, 16].map(|at| date_time.as_bytes()[at]).to_vec();
    if !matches!(separators[..], [b'-', b'-', b'T' | b't' | b' ', b':', b':']) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
    let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
    let days = days_since_1970(year, month, day);
    // A day that the month does not have comes back as another one.
    if date(days) != (year, month, day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (nanos, offset) = parse_rest(&text[19..])?;
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second - offset;
    Some(i128::from(seconds) * 1_000_000_000 + i128::from(nanos))
}

/// Parses what follows the second: a fraction and an offset. Returns nanoseconds, and the seconds
/// that the place is ahead of UTC. Digits beyond the nanosecond are dropped.
fn parse_rest(text: &str) -> Option<(i64, i64)> {
    let (nanos, zone) = match text.strip_prefix('.') {
        None => (0, text),
        Some(rest) => {
            let end = rest.bytes().position(|byte| !byte.is_ascii_digit())?;
            let digits = rest.get(..end).filter(|digits| !digits.is_empty())?;
            (format!("{digits:0<9}")[..9].parse().ok()?, &rest[end..])
        }
    };
    if matches!(zone, "Z" | "z") {
        return Some((nanos, 0));
    }
    let sign = match zone.bytes().next()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let number = |text: &str, most: i64| -> Option<i64> {
        let is_two = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        is_two.then(|| text.parse().ok())?.filter(|number| *number <= most)
    };
    Some((nanos, sign * (number(hours, 23)? * 3_600 + number(minutes, 59)? * 60)))
}

/// Returns the number of a day of the Gregorian calendar, counted from 1970-01-01.
pub fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * month + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * DAYS_OF_400_YEARS + of_era - DAYS_FROM_0000_03_01
}

const DAYS_FROM_0000_03_01: i64 = 719_468;
const DAYS_OF_400_YEARS: i64 = 146_097;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_shown_as_rfc_3339() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(show_utc(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn times_of_rfc_3339_are_parsed() {
        let parsed = [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29 23:59:59.25Z", 951_868_799_250_000_000),
            ("2024-03-01T01:30:00.000000001+01:30", 1_709_251_200_000_000_001),
            ("1969-12-31t22:59:59.9999999999-01:00", -1),
        ];
        for (text, nanos) in parsed {
            assert_eq!(parse_utc(text), Some(nanos), "{text}");
        }
        let wrong = "2023-02-29T00:00:00Z 2024-13-01T00:00:00Z 2024-00-10T00:00:00Z \
            2024-01-01T24:00:00Z 2024-01-01T00:00:00 2024-01-01T00:00:00.Z 2024-01-01T00:00:00.5 \
            2024-01-01T00:00:00+1:00 2024-01-01T00:00:00+0100 +024-01-01T00:00:00Z 12.5 \
            2024-01-01T00:00:0é";
        for text in wrong.split(' ') {
            assert_eq!(parse_utc(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_shown_is_parsed_again() {
        for day in (0..60_000).step_by(if cfg!(miri) { 6_001 } else { 1 }) {
            let since = Duration::from_secs(day * 86_400 + day % 86_400);
            assert_eq!(parse_utc(&show_utc(since)), Some(since.as_nanos() as i128));
        }
    }
}
