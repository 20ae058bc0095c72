//! Reading single values: durations, rates, sizes, bytes and texts.

use std::ops::Range;
use std::time::Duration;

use throng_base::units::{parse_bytes, parse_duration, parse_rate, show_count};

use super::node::Node;
use super::reader::Reader;
use super::template::Template;
use super::template_error::TemplateError;
use crate::protocols::MessageForm;

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

/// Reads the text of a message. Over TCP it is not empty.
pub(crate) fn read_message_text(reader: &mut Reader<'_>, node: &Node) -> Option<Template> {
    let text = reader.text(node, "`send`", "a text")?;
    let template = reader.template(node, text)?;
    if template.segments().is_empty() && reader.protocol.messages == MessageForm::Bytes {
        let label = "a stream of TCP has no messages: at least one byte";
        reader.error(node.span.clone(), "nothing would be sent", label);
        return None;
    }
    Some(template)
}

/// Reads bytes: pairs of hexadecimal digits, with optional spaces and variables between the bytes.
pub(crate) fn read_hex(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<Template> {
    let expected = "bytes in hexadecimal such as de ad be ef";
    let text = reader.text(node, what, expected)?;
    let title = format!("{what} must be {expected}");
    reader.binary_template(node, text, &|piece, at| parse_hex(piece, at, &title))
}

/// Parses pairs of hexadecimal digits, which begin at byte `begin`.
fn parse_hex(text: &str, begin: usize, title: &str) -> Result<Vec<u8>, TemplateError> {
    let wrong = |span: Range<usize>, label: &str| {
        let span = begin + span.start..begin + span.end;
        Err(TemplateError { span, title: title.to_owned(), label: label.to_owned() })
    };
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
            (None, Some(_)) => {
                let span = at..at + letter.len_utf8();
                return wrong(span, "the second digit of a byte belongs here");
            }
            (None, None) => {
                let span = at..at + letter.len_utf8();
                return wrong(span, "not one of 0-9a-f; a text is written ${'text'}");
            }
        }
    }
    match high {
        Some((at, _)) => wrong(at..at + 1, "the second digit is missing"),
        None => Ok(bytes),
    }
}

/// Reads bytes of which there is at least one.
pub(crate) fn read_some_hex(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<Template> {
    let template = read_hex(reader, node, what)?;
    if template.segments().is_empty() {
        reader.error(node.span.clone(), format!("{what} is empty"), "at least one byte");
        return None;
    }
    Some(template)
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
