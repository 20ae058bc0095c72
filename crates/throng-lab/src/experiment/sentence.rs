//! Sentences and cells with values in braces: `{users:count} users at {rate}`.
//!
//! A value is an expression, and behind a colon the way to show it: `count`, `rate`, `us`
//! (microseconds), `bytes`, or `.1` for as many decimals. Without it, a duration and a rate show
//! their unit, and a number is exact.

use std::time::Duration;

use throng_base::units::show_duration;
use throng_load::scenario::{ExpressionError, Quantity, Scope, evaluate};
use throng_report::render::{bytes, count, micros, rate};

/// Returns the text of a cell; a dash if one of its values is unknown.
pub(crate) fn cell(text: &str, scope: Scope<'_>) -> Result<String, ExpressionError> {
    let (filled, is_known) = fill(text, scope)?;
    Ok(if is_known { filled } else { DASH.to_owned() })
}

/// Returns the cells of a row.
pub(crate) fn cells(row: &[String], scope: Scope<'_>) -> Result<Vec<String>, ExpressionError> {
    row.iter().map(|text| cell(text, scope)).collect()
}

/// Returns a sentence with dashes for unknown values; none if it is empty or nothing but a dash.
pub(crate) fn sentence(text: &str, scope: Scope<'_>) -> Result<Option<String>, ExpressionError> {
    let (filled, _) = fill(text, scope)?;
    Ok((!filled.is_empty() && filled != DASH).then_some(filled))
}

/// Fills in the values. Returns false if one of them is unknown.
fn fill(text: &str, scope: Scope<'_>) -> Result<(String, bool), ExpressionError> {
    let (mut filled, mut is_known) = (String::new(), true);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (inner, after) = after.split_once('}').unwrap_or((after, ""));
        let (expression, way) = inner.split_once(':').unwrap_or((inner, ""));
        let value = evaluate(expression, scope)?;
        is_known &= value != Quantity::Unknown;
        filled += before;
        filled += &show(&value, way);
        rest = after;
    }
    Ok((filled + rest, is_known))
}

fn show(value: &Quantity, way: &str) -> String {
    let (value, time) = match value {
        Quantity::Unknown => return DASH.to_owned(),
        Quantity::Text(text) => return text.clone(),
        Quantity::Number { value, time } => (*value, *time),
    };
    match (way, time) {
        ("count", _) => count(value),
        ("rate", _) | ("", -1) => rate(value),
        ("us", _) => micros(value.max(0.0) as u64),
        ("bytes", _) => bytes(value),
        ("", 1) => show_duration(duration(value)),
        (way, _) => match way.strip_prefix('.').and_then(|digits| digits.parse().ok()) {
            Some(digits) => format!("{value:.digits$}"),
            None => value.to_string(),
        },
    }
}

/// Returns a number of seconds as a duration, whatever the number is.
pub(super) fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

const DASH: &str = "-";

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(name: &str) -> Option<Quantity> {
        match name {
            "users" => Some(Quantity::number(200_000.0)),
            "pace" => Some(Quantity::per_second(4_900.0)),
            "hold" => Some(Quantity::seconds(90.0)),
            "p99_us" => Some(Quantity::number(1_234.0)),
            "each" => Some(Quantity::Unknown),
            "kind" => Some(Quantity::Text("reset".into())),
            _ => None,
        }
    }

    #[test]
    fn values_are_shown_as_the_sentence_asks() {
        let text = "{users:count} of {users} at {pace} for {hold}: {p99_us:us}, {p99_us / 7:.1}, \
                    {kind}, {users:bytes}";
        let shown = "200k of 200000 at 4.9k/s for 1m30s: 1.23 ms, 176.3, reset, 195 KiB";
        assert_eq!(sentence(text, &scope), Ok(Some(shown.to_owned())));
    }

    #[test]
    fn a_cell_with_an_unknown_value_is_a_dash() {
        assert_eq!(cell("{each:.1} µs", &scope).as_deref(), Ok("-"));
        assert_eq!(sentence("{each} of it.", &scope), Ok(Some("- of it.".to_owned())));
        assert_eq!(sentence("{each}", &scope), Ok(None));
        assert!(cell("{nothing}", &scope).is_err());
    }
}
