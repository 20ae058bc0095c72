//! Quantities as tcpkali writes them: `10k`, `1.5m`, `100kbps`, `500ms`.

use std::time::Duration;

/// Parses a number with a suffix that multiplies by powers of `kilo`: `10k`, `1.5m`.
pub(super) fn number(text: &str, kilo: f64) -> Option<f64> {
    let (digits, factor) = match text.char_indices().next_back()? {
        (at, 'k') => (&text[..at], kilo),
        (at, 'm') => (&text[..at], kilo * kilo),
        _ => (text, 1.0),
    };
    plain(digits).map(|value| value * factor)
}

/// Parses a bandwidth; returns bytes per second. A number without a unit is of bytes.
pub(super) fn bandwidth(text: &str) -> Option<f64> {
    let (digits, unit) = split_unit(text);
    let bytes = match unit {
        "bps" => 1.0 / 8.0,
        "kbps" | "Kbps" => 1e3 / 8.0,
        "mbps" | "Mbps" => 1e6 / 8.0,
        "gbps" | "Gbps" => 1e9 / 8.0,
        "Bps" | "" => 1.0,
        "kBps" | "KBps" => 1e3,
        "mBps" | "MBps" => 1e6,
        "gBps" | "GBps" => 1e9,
        _ => return None,
    };
    plain(digits).map(|value| value * bytes)
}

/// Parses a time: `500ms`, `1.5s`, `2min`, `1hour`, or seconds without a unit.
pub(super) fn time(text: &str) -> Option<Duration> {
    let (digits, unit) = split_unit(text);
    let seconds = match unit {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "" | "s" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        "y" | "year" | "years" => 31_536_000.0,
        _ => return None,
    };
    let micros = plain(digits)? * seconds * 1e6;
    (micros <= TIME_MAX.as_micros() as f64).then(|| Duration::from_micros(micros.round() as u64))
}

/// Splits a quantity into its number and its unit.
fn split_unit(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()))
}

fn plain(digits: &str) -> Option<f64> {
    let is_plain = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    digits.parse().ok().filter(|value: &f64| is_plain && *value <= NUMBER_MAX)
}

/// The longest time: a year.
const TIME_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// The greatest number.
const NUMBER_MAX: f64 = 1e12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_those_of_the_manual() {
        assert_eq!(number("10k", 1000.0), Some(10_000.0));
        assert_eq!(number("1.5m", 1024.0), Some(1.5 * 1024.0 * 1024.0));
        assert_eq!(number("-3", 1000.0), None);
        assert_eq!(bandwidth("80kbps"), Some(10_000.0));
        assert_eq!(bandwidth("2MBps"), Some(2e6));
        assert_eq!(bandwidth("500"), Some(500.0));
        assert_eq!(bandwidth("8mbps"), Some(1e6));
        assert_eq!(bandwidth("5k"), None);
        assert_eq!(bandwidth("fast"), None);
        assert_eq!(number("10K", 1000.0), None);
        assert_eq!(time("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(time("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(time("10"), Some(Duration::from_secs(10)));
        assert_eq!(time("2min"), Some(Duration::from_secs(120)));
        assert_eq!(time("2 min"), None);
        assert_eq!(time("999999d"), None);
    }
}
