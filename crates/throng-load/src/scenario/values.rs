//! Reading single values: durations, rates, sizes, bytes and texts.

use std::time::Duration;

use throng_base::units::{parse_bytes, parse_duration, parse_rate, show_count};

use super::node::Node;
use super::reader::Reader;
use super::template::Template;

/// Reads a duration above zero.
pub(crate) fn positive_duration(
    reader: &mut Reader<'_>,
    node: &Node,
    what: &str,
) -> Option<Duration> {
    let duration = reader.quantity(node, what, parse_duration)?;
    if duration.is_zero() {
        reader.error(node.span.clone(), format!("{what} is zero"), "must be more than 0s");
        return None;
    }
    Some(duration)
}

/// Reads a time-out, which has a default.
pub(crate) fn read_timeout(
    reader: &mut Reader<'_>,
    node: Option<&Node>,
    default: Duration,
) -> Option<Duration> {
    node.map_or(Some(default), |node| positive_duration(reader, node, "`timeout`"))
}

/// Reads a rate above zero.
pub(crate) fn positive_rate(reader: &mut Reader<'_>, node: &Node) -> Option<f64> {
    let rate = bounded_rate(reader, node, "`rate`")?;
    if rate == 0.0 {
        reader.error(node.span.clone(), "this rate is zero", "must be more than 0");
        return None;
    }
    Some(rate)
}

/// Reads a rate that a nanosecond clock can keep; zero is allowed.
pub(crate) fn bounded_rate(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<f64> {
    let rate = reader.quantity(node, what, parse_rate)?;
    if rate > RATE_MAX {
        reader.error(
            node.span.clone(),
            "this rate is too high",
            format!("at most {}/s", show_count(RATE_MAX as u64)),
        );
        return None;
    }
    Some(rate)
}

/// Reads the text of a message, which is not empty.
pub(crate) fn read_message_text(reader: &mut Reader<'_>, node: &Node) -> Option<Template> {
    let text = reader.text(node, "`send`", "a text")?;
    let template = reader.template(node, text)?;
    if template.segments().is_empty() {
        reader.error(node.span.clone(), "an empty message cannot be sent", "at least one byte");
        return None;
    }
    Some(template)
}

/// Reads pairs of hexadecimal digits, with optional spaces between the bytes.
pub(crate) fn read_hex(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<Vec<u8>> {
    let expected = "bytes in hexadecimal such as de ad be ef";
    let text = reader.text(node, what, expected)?;
    let mut bytes = Vec::new();
    let mut high: Option<(usize, u8)> = None;
    for (at, letter) in text.char_indices() {
        let value = letter.to_digit(16).map(|digit| digit as u8);
        match (value, high) {
            (None, None) if letter == ' ' || letter == '\n' => {}
            (Some(value), None) => high = Some((at, value)),
            (Some(value), Some((_, first))) => {
                bytes.push(first << 4 | value);
                high = None;
            }
            (None, _) => {
                let span = reader.inner_span(node, at..at + letter.len_utf8());
                let label = if high.is_some() {
                    "the second digit of a byte belongs here"
                } else {
                    "not one of 0-9a-f"
                };
                reader.error(span, format!("{what} must be {expected}"), label);
                return None;
            }
        }
    }
    if let Some((at, _)) = high {
        let span = reader.inner_span(node, at..at + 1);
        reader.error(span, format!("{what} must be {expected}"), "the second digit is missing");
        return None;
    }
    if bytes.is_empty() {
        reader.error(node.span.clone(), format!("{what} is empty"), "at least one byte");
        return None;
    }
    Some(bytes)
}

/// Reads the length of a message of at most `most` bytes, which the second part says in words.
pub(crate) fn read_length(
    reader: &mut Reader<'_>,
    node: &Node,
    what: &str,
    most: (u32, &str),
) -> Option<u32> {
    match reader.quantity(node, what, parse_bytes)? {
        0 => reader.error(node.span.clone(), format!("{what} is 0 bytes"), "at least 1"),
        length if length > u64::from(most.0) => {
            reader.error(node.span.clone(), format!("{what} is too large"), most.1)
        }
        length => return u32::try_from(length).ok(),
    };
    None
}

/// Longest message that `expect` waits for.
pub(crate) const EXPECTED_BYTES_MAX: (u32, &str) = (1 << 30, "at most 1GiB");

/// Rate above which moments would be less than a nanosecond apart.
const RATE_MAX: f64 = 1e9;
