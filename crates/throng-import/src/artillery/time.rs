//! Durations: a number of seconds, or a number with a unit.

use std::time::Duration;

use throng_load::scenario::YamlNode;

use crate::translator::Translator;

/// Returns the duration in `node`. Reports a mistake if it is none.
pub(super) fn duration(
    translator: &mut Translator<'_>,
    node: &YamlNode,
    what: &str,
) -> Option<Duration> {
    let duration = node.scalar().and_then(parse);
    if duration.is_none() {
        let label = "expected seconds, or a number with a unit such as `500ms` or `10m`; at \
                     most 30 days";
        translator.mistake(&node.span, format!("{what} cannot be read"), label);
    }
    duration
}

/// Parses `10`, `0.5`, `500ms`, `10 minutes`.
pub(super) fn parse(text: &str) -> Option<Duration> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim().to_ascii_lowercase();
    let (_, seconds) = UNITS.iter().find(|(names, _)| names.contains(&&*unit))?;
    let seconds = number.parse::<f64>().ok()? * seconds;
    let is_short = (0.0..=DURATION_MAX_S).contains(&seconds);
    is_short.then(|| Duration::from_micros((seconds * 1e6).round() as u64))
}

/// The names of units, each with its seconds.
const UNITS: [(&[&str], f64); 5] = [
    (&["", "s", "sec", "secs", "second", "seconds"], 1.0),
    (&["ms", "msec", "msecs", "millisecond", "milliseconds"], 0.001),
    (&["m", "min", "mins", "minute", "minutes"], 60.0),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600.0),
    (&["d", "day", "days"], 86_400.0),
];

/// The longest duration.
const DURATION_MAX_S: f64 = 30.0 * 86_400.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_seconds_unless_it_has_a_unit() {
        for (text, ms) in [
            ("10", 10_000),
            ("0.5", 500),
            ("500ms", 500),
            ("2 min", 120_000),
            ("1.5 hours", 5_400_000),
            ("1d", 86_400_000),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "-1", "1x", "1.2.3", "31d", "1e3"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
