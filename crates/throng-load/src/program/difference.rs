//! Why a message is not the one that a pattern describes.

use serde_json::Value;

use super::{IncomingMessage, MessagePattern, Pattern};
use crate::excerpt::Excerpt;

impl MessagePattern {
    /// Describes in words why `message` does not match.
    pub(crate) fn difference(&self, message: IncomingMessage<'_>, excerpt: Excerpt<'_>) -> String {
        let is_text = matches!(message, IncomingMessage::Text(_));
        match (self.pattern(), message) {
            (Pattern::Json(expected), IncomingMessage::Text(text)) => {
                json_difference(expected, text, excerpt)
            }
            (Pattern::Text(_) | Pattern::Json(_), IncomingMessage::Binary(_)) => {
                "it is a binary message, not a text".to_owned()
            }
            (Pattern::Binary(_), IncomingMessage::Text(_)) => {
                "it is a text, not a binary message".to_owned()
            }
            (Pattern::Text(expected) | Pattern::Binary(expected), message) => {
                bytes_difference(expected, message.bytes(), is_text, excerpt)
            }
            (Pattern::Bytes(count), message) => {
                format!("it has {} bytes, not {count}", message.bytes().len())
            }
            (Pattern::Contains(part), _) => format!("it does not contain {}", excerpt.bytes(part)),
        }
    }
}

/// Describes where two texts begin to differ.
pub(crate) fn bytes_difference(
    expected: &[u8],
    got: &[u8],
    is_text: bool,
    excerpt: Excerpt<'_>,
) -> String {
    let mut at = expected.iter().zip(got).take_while(|(a, b)| a == b).count();
    // A cut inside of a character shows neither.
    while is_text && at > 0 && expected.get(at).is_some_and(|byte| byte & 0xc0 == 0x80) {
        at -= 1;
    }
    let rest = |bytes: &[u8]| match &bytes[at.min(bytes.len())..] {
        [] => "the end".to_owned(),
        rest => excerpt.bytes(&rest[..rest.len().min(REST_BYTES_MAX)]),
    };
    format!("at byte {at} comes {}, expected {}", rest(got), rest(expected))
}

/// Describes the first members of `expected` that `text` does not have.
fn json_difference(expected: &Value, text: &str, excerpt: Excerpt<'_>) -> String {
    let got: Value = match serde_json::from_str(text) {
        Ok(got) => got,
        Err(error) => return format!("it is not JSON: {error}"),
    };
    let mut differences = Vec::new();
    compare("", expected, &got, excerpt, &mut differences);
    let more = differences.len().saturating_sub(DIFFERENCES_MAX);
    differences.truncate(DIFFERENCES_MAX);
    let mut text = differences.join("; ");
    if more > 0 {
        text += &format!("; and {more} more");
    }
    text
}

fn compare(
    path: &str,
    expected: &Value,
    got: &Value,
    excerpt: Excerpt<'_>,
    differences: &mut Vec<String>,
) {
    let shown = |value: &Value| excerpt.bytes(value.to_string().as_bytes());
    let name = if path.is_empty() { "it".to_owned() } else { format!("`{path}`") };
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            for (key, value) in expected {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match got.get(key) {
                    Some(other) => compare(&path, value, other, excerpt, differences),
                    None => {
                        differences.push(format!("`{path}` is missing, expected {}", shown(value)))
                    }
                }
            }
        }
        (Value::Array(expected), Value::Array(got)) if expected.len() == got.len() => {
            for (index, (value, other)) in expected.iter().zip(got).enumerate() {
                compare(&format!("{path}[{index}]"), value, other, excerpt, differences);
            }
        }
        (Value::Array(expected), Value::Array(got)) => {
            differences.push(format!("{name} has {} items, expected {}", got.len(), expected.len()))
        }
        (Value::Number(a), Value::Number(b)) if a == b || a.as_f64() == b.as_f64() => {}
        (expected, got) if expected == got => {}
        (expected, got) => {
            differences.push(format!("{name} is {}, expected {}", shown(got), shown(expected)));
        }
    }
}

/// Differences that are named.
const DIFFERENCES_MAX: usize = 3;

/// Bytes that are shown from where two texts begin to differ.
const REST_BYTES_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(pattern: Pattern, message: IncomingMessage<'_>, expected: &str) {
        let pattern = MessagePattern::new(pattern, false);
        assert!(!pattern.matches(message), "{message:?} matches");
        assert_eq!(pattern.difference(message, Excerpt::short(&[])), expected);
    }

    #[test]
    fn the_member_that_differs_is_named() {
        let text = |text| IncomingMessage::Text(text);
        for (expected, got, why) in [
            (
                json!({"type": "hello", "id": 5}),
                r#"{"type":"hello","id":0}"#,
                "`id` is `0`, expected `5`",
            ),
            (json!({"type": "helo"}), r#"{"id":0}"#, "`type` is missing, expected `\"helo\"`"),
            (json!({"a": {"b": [1, 2]}}), r#"{"a":{"b":[1,3]}}"#, "`a.b[1]` is `3`, expected `2`"),
            (json!({"a": [1]}), r#"{"a":[]}"#, "`a` has 0 items, expected 1"),
            (json!({"a": 1}), "[]", "it is `[]`, expected `{\"a\":1}`"),
            (json!({"a": 1}), "hello", "it is not JSON: expected value at line 1 column 1"),
            (
                json!({"a": 1, "b": 2, "c": 3, "d": 4}),
                "{}",
                "`a` is missing, expected `1`; `b` is missing, expected `2`; \
                 `c` is missing, expected `3`; and 1 more",
            ),
        ] {
            check(Pattern::Json(expected), text(got), why);
        }
    }

    #[test]
    fn texts_differ_from_a_byte_on() {
        let text = |text| IncomingMessage::Text(text);
        let expects = |text: &str| Pattern::Text(text.as_bytes().to_vec());
        check(expects("hello"), text("help"), "at byte 3 comes `p`, expected `lo`");
        check(expects("hello"), text("hell"), "at byte 4 comes the end, expected `o`");
        check(expects("ö"), text("ä"), "at byte 0 comes `ä`, expected `ö`");
        check(expects("a"), IncomingMessage::Binary(b"a"), "it is a binary message, not a text");
        check(Pattern::Bytes(3), text("ab"), "it has 2 bytes, not 3");
        check(Pattern::Contains(b"x".to_vec()), text("ab"), "it does not contain `x`");
    }
}
