//! Reading what `send` and `expect` take on TCP.

use std::time::Duration;

use throng_base::units::parse_bytes;

use super::node::Node;
use super::reader::Reader;
use super::steps::read_timeout;
use super::template::Template;

/// Default time-out of an answer.
pub const EXPECT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);

/// Largest message that `send` sends and `expect` waits for.
pub const MESSAGE_BYTES_MAX: u64 = 1 << 30;

/// Longest text that `expect` looks for.
pub const PATTERN_BYTES_MAX: usize = 64 * 1024;

/// Payload of a `send`.
#[derive(Clone, Debug, PartialEq)]
pub enum SendPayload {
    /// Bytes of a TCP stream: text with variables, or the bytes of `{hex: ...}`.
    Template(Template),
    /// This many random bytes, different each time; at least 1. On a WebSocket, one binary message.
    Random(u32),
    /// A WebSocket text message.
    Text(Template),
    /// A WebSocket binary message.
    Binary(Template),
}

/// Pattern of an `expect` on TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// Exactly these bytes; anything else is a mismatch.
    Literal(Vec<u8>),
    /// Any bytes, this many; at least 1.
    Bytes(u32),
    /// Anything up to and including these bytes.
    Until(Vec<u8>),
}

pub(super) fn read_payload(reader: &mut Reader<'_>, node: &Node) -> Option<SendPayload> {
    if node.scalar().is_some() {
        return read_template(reader, node).map(SendPayload::Template);
    }
    let fields = reader.fields(node, "`send`", &["text", "hex", "random"])?;
    let payload = match (fields.get("text"), fields.get("hex"), fields.get("random")) {
        (Some(text), None, None) => SendPayload::Template(read_template(reader, text)?),
        (None, Some(hex), None) => {
            SendPayload::Template(Template::from_bytes(read_hex(reader, hex, "`hex`")?))
        }
        (None, None, Some(length)) => SendPayload::Random(read_length(reader, length, "`random`")?),
        _ => {
            let span = reader.first_line(&fields.span);
            reader.error(
                span,
                "`send` needs exactly one payload",
                "one of `text`, `hex` and `random`",
            );
            return None;
        }
    };
    Some(payload)
}

/// Reads the pattern and the time-out of an `expect`.
pub(super) fn read_expected(
    reader: &mut Reader<'_>,
    node: &Node,
) -> Option<(Expectation, Duration)> {
    if node.scalar().is_some() {
        let expected = Expectation::Literal(read_pattern(reader, node)?);
        return Some((expected, EXPECT_TIMEOUT_DEFAULT));
    }
    let known = ["text", "hex", "bytes", "until", "timeout"];
    let fields = reader.fields(node, "`expect`", &known)?;
    let timeout = read_timeout(reader, fields.get("timeout"), EXPECT_TIMEOUT_DEFAULT);
    let given: Vec<_> =
        known[..4].iter().filter_map(|key| fields.get(key).map(|node| (*key, node))).collect();
    let expected = match given[..] {
        [("text", node)] => Expectation::Literal(read_pattern(reader, node)?),
        [("hex", node)] => Expectation::Literal(read_hex(reader, node, "`hex`")?),
        [("bytes", node)] => Expectation::Bytes(read_length(reader, node, "`bytes`")?),
        [("until", node)] => Expectation::Until(read_pattern(reader, node)?),
        _ => {
            let span = reader.first_line(&fields.span);
            reader.error(
                span,
                "`expect` needs exactly one pattern",
                "one of `text`, `hex`, `bytes` and `until`",
            );
            return None;
        }
    };
    Some((expected, timeout?))
}

pub(super) fn read_template(reader: &mut Reader<'_>, node: &Node) -> Option<Template> {
    let text = reader.text(node, "`send`", "a text")?;
    let template = reader.template(node, text)?;
    if template.segments().is_empty() {
        reader.error(node.span.clone(), "an empty message cannot be sent", "at least one byte");
        return None;
    }
    Some(template)
}

/// Reads a text without variables: expected answers are known before the run.
pub(super) fn read_pattern(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<u8>> {
    let text = reader.text(node, "`expect`", "a text")?;
    let literal =
        Template::parse(text).ok().and_then(|template| template.as_literal().map(<[u8]>::to_vec));
    match literal {
        None => {
            let at = text.find("${").unwrap_or(0);
            let span = reader.inner_span(node, at..text.len());
            reader
                .error(span, "`expect` cannot contain variables", "a plain `${` is written `$${`")
                .help = Some(
                "where the answer varies, wait for `{bytes: n}` or `{until: text}`".to_owned(),
            );
        }
        Some(bytes) if bytes.is_empty() => {
            reader.error(node.span.clone(), "`expect` is empty", "at least one byte");
        }
        Some(bytes) if bytes.len() > PATTERN_BYTES_MAX => {
            let label = format!("at most {PATTERN_BYTES_MAX} bytes");
            reader.error(node.span.clone(), "the expected text is too long", label);
        }
        Some(bytes) => return Some(bytes),
    }
    None
}

/// Reads pairs of hexadecimal digits, with optional spaces between the bytes.
pub(super) fn read_hex(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<Vec<u8>> {
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

pub(super) fn read_length(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<u32> {
    match reader.quantity(node, what, parse_bytes)? {
        0 => reader.error(node.span.clone(), format!("{what} is 0 bytes"), "at least 1"),
        length if length > MESSAGE_BYTES_MAX => {
            reader.error(node.span.clone(), format!("{what} is too large"), "at most 1GiB")
        }
        length => return u32::try_from(length).ok(),
    };
    None
}
