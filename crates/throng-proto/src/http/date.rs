//! Dates in header fields.

use throng_base::units::days_since_1970;

/// Returns the seconds from 1970 to a date in any form that cookies have (RFC 6265 section 5.1.1);
/// `None` if it is no date.
pub(super) fn unix_seconds(text: &str) -> Option<i64> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    let tokens = text.split(|c: char| !c.is_ascii_alphanumeric() && c != ':');
    for token in tokens.filter(|token| !token.is_empty()) {
        let digits = token.bytes().take_while(u8::is_ascii_digit).count();
        let number = || token[..digits].parse::<i64>().ok();
        if time.is_none() && token.contains(':') {
            time = Some(seconds_of_day(token)?);
        } else if day.is_none() && matches!(digits, 1 | 2) {
            day = number();
        } else if month.is_none() && digits == 0 && month_of(token).is_some() {
            month = month_of(token);
        } else if year.is_none() && matches!(digits, 2 | 4) {
            year = number();
        }
    }
    let year = match year? {
        year @ 0..=69 => year + 2000,
        year @ 70..=99 => year + 1900,
        year => year,
    };
    let (day, month) = (day?, month?);
    if !(1..=31).contains(&day) || year < 1601 {
        return None;
    }
    Some(days_since_1970(year, month, day) * 86_400 + time?)
}

fn seconds_of_day(token: &str) -> Option<i64> {
    let mut parts = token.split(':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let is_time = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
    is_time.then_some((hour * 60 + minute) * 60 + second)
}

/// Returns the month that a token begins with, from 1.
fn month_of(token: &str) -> Option<i64> {
    let name = token.get(..3)?.to_ascii_lowercase();
    MONTHS.iter().position(|month| *month == name).map(|index| index as i64 + 1)
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_a_date_are_read() {
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
            ("Sun Nov  6 08:49:37 1994", Some(784_111_777)),
            ("Thu, 29-Feb-2024 12:00:00 GMT", Some(1_709_208_000)),
            ("Wed, 31 Dec 1969 23:59:59 GMT", Some(-1)),
            ("tomorrow", None),
            ("", None),
            ("Sun, 06 Nov 1994", None),
            ("Sun, 06 Nov 1994 25:00:00 GMT", None),
        ] {
            assert_eq!(unix_seconds(text), seconds, "{text}");
        }
    }
}
