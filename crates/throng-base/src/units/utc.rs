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
}
