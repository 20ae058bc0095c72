//! Matching whole WebSocket messages.

use std::fmt;

use memchr::memmem::Finder;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// A WebSocket message that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncomingMessage<'a> {
    /// A text message.
    Text(&'a str),
    /// A binary message.
    Binary(&'a [u8]),
}

impl<'a> IncomingMessage<'a> {
    /// Returns the message's bytes.
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Binary(bytes) => bytes,
        }
    }
}

/// Pattern of a whole message.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// Exactly this text message.
    Text(Vec<u8>),
    /// Exactly this binary message.
    Binary(Vec<u8>),
    /// A text message of JSON that contains at least this.
    Json(Value),
    /// A message of this many bytes.
    Bytes(u32),
    /// A message that contains these bytes.
    Contains(Vec<u8>),
}

/// A rule for a message, and whether other messages may come before it.
#[derive(Clone, Debug)]
pub struct MessagePattern {
    pattern: Pattern,
    finder: Option<Finder<'static>>,
    skips_others: bool,
}

impl MessagePattern {
    /// Creates a rule. Messages before a match are a mismatch unless `skips_others`.
    pub fn new(pattern: Pattern, skips_others: bool) -> Self {
        let finder = match &pattern {
            Pattern::Contains(part) => Some(Finder::new(part).into_owned()),
            _ => None,
        };
        Self { pattern, finder, skips_others }
    }

    /// Returns the pattern of the message.
    pub(super) fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// Reports whether other messages may come before a match.
    pub fn skips_others(&self) -> bool {
        self.skips_others
    }

    /// Describes the message for people; `shown` formats bytes.
    pub fn describe(&self, shown: impl Fn(&[u8]) -> String) -> String {
        match &self.pattern {
            Pattern::Text(bytes) => shown(bytes),
            Pattern::Binary(bytes) => format!("the binary message {}", shown(bytes)),
            Pattern::Json(value) => format!("JSON with {}", shown(value.to_string().as_bytes())),
            Pattern::Bytes(count) => format!("a message of {count} bytes"),
            Pattern::Contains(part) => format!("a message that contains {}", shown(part)),
        }
    }

    /// Reports whether `message` matches.
    pub fn matches(&self, message: IncomingMessage<'_>) -> bool {
        match (&self.pattern, message) {
            (Pattern::Text(expected), IncomingMessage::Text(text)) => expected == text.as_bytes(),
            (Pattern::Binary(expected), IncomingMessage::Binary(bytes)) => expected == bytes,
            (Pattern::Json(expected), IncomingMessage::Text(text)) => json_contains(text, expected),
            (Pattern::Bytes(count), message) => message.bytes().len() == *count as usize,
            (Pattern::Contains(_), message) => {
                self.finder.as_ref().is_some_and(|finder| finder.find(message.bytes()).is_some())
            }
            (Pattern::Text(_) | Pattern::Json(_), IncomingMessage::Binary(_))
            | (Pattern::Binary(_), IncomingMessage::Text(_)) => false,
        }
    }
}

impl PartialEq for MessagePattern {
    fn eq(&self, other: &Self) -> bool {
        self.pattern == other.pattern && self.skips_others == other.skips_others
    }
}

/// Reports whether `text` is JSON that contains `expected`. Allocates nothing for the text.
fn json_contains(text: &str, expected: &Value) -> bool {
    let mut reader = serde_json::Deserializer::from_str(text);
    let held = Part(expected).deserialize(&mut reader);
    held.unwrap_or(false) && reader.end().is_ok()
}

/// Deserializes a value and reports whether it contains the expected one: an object has at least
/// these members, an array exactly these items, everything else is equal.
#[derive(Clone, Copy)]
struct Part<'e>(&'e Value);

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<bool, E> {
        Ok(self.0.as_bool() == Some(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<bool, E> {
        Ok(self.0.as_i64() == Some(value) || self.0.as_f64() == Some(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<bool, E> {
        Ok(self.0.as_u64() == Some(value) || self.0.as_f64() == Some(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<bool, E> {
        Ok(self.0.as_f64() == Some(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<bool, E> {
        Ok(self.0.as_str() == Some(value))
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(self.0.is_null())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let expected = self.0.as_array().map_or(&[][..], Vec::as_slice);
        let (mut held, mut count) = (self.0.is_array(), 0);
        for item in expected {
            match items.next_element_seed(Part(item))? {
                Some(same) => (held, count) = (held & same, count + 1),
                None => break,
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {
            held = false;
        }
        Ok(held && count == expected.len())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<bool, A::Error> {
        let expected = self.0.as_object();
        let (mut held, mut found) = (expected.is_some(), 0);
        while let Some(member) = members.next_key_seed(Key(self.0))? {
            match member {
                Some(value) => {
                    (held, found) = (held & members.next_value_seed(Part(value))?, found + 1)
                }
                None => _ = members.next_value::<IgnoredAny>()?,
            }
        }
        Ok(held && expected.is_some_and(|expected| found >= expected.len()))
    }
}

/// Deserializes a key and returns the expected value under it.
struct Key<'e>(&'e Value);

impl<'de, 'e> DeserializeSeed<'de> for Key<'e> {
    type Value = Option<&'e Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'e> Visitor<'_> for Key<'e> {
    type Value = Option<&'e Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.get(key))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_part_of_json_is_found_in_the_whole() {
        let whole = r#" {"a": 1, "b": {"c": [1, {"d": "x\n", "e": null}], "f": true}, "g": -2.5} "#;
        for expected in [
            json!({}),
            json!({"a": 1}),
            json!({"a": 1.0}),
            json!({"g": -2.5, "b": {}}),
            json!({"b": {"f": true, "c": [1, {"d": "x\n"}]}}),
            json!({"b": {"c": [1, {"e": null}]}}),
        ] {
            assert!(json_contains(whole, &expected), "{expected}");
        }
        for expected in [
            json!({"a": 2}),
            json!({"a": "1"}),
            json!({"z": null}),
            json!({"b": {"c": [1]}}),
            json!({"b": {"c": [1, {}, 3]}}),
            json!({"b": {"c": {}}}),
            json!([]),
            json!(null),
        ] {
            assert!(!json_contains(whole, &expected), "{expected}");
        }
        assert!(!json_contains("{\"a\": 1", &json!({"a": 1})), "cut short");
        assert!(!json_contains("{\"a\": 1} x", &json!({"a": 1})), "something follows");
        assert!(json_contains("[1, \"x\"]", &json!([1, "x"])) && json_contains("7", &json!(7)));
    }

    #[test]
    fn each_pattern_takes_its_messages_and_no_others() {
        let pattern = |pattern| MessagePattern::new(pattern, false);
        let (text, binary) = (IncomingMessage::Text("hello"), IncomingMessage::Binary(b"hello"));
        for (pattern, of_text, of_binary) in [
            (Pattern::Text(b"hello".to_vec()), true, false),
            (Pattern::Text(b"hell".to_vec()), false, false),
            (Pattern::Binary(b"hello".to_vec()), false, true),
            (Pattern::Bytes(5), true, true),
            (Pattern::Bytes(4), false, false),
            (Pattern::Contains(b"ell".to_vec()), true, true),
            (Pattern::Contains(b"elo".to_vec()), false, false),
            (Pattern::Json(json!("hello")), false, false),
        ]
        .map(|(kind, of_text, of_binary)| (pattern(kind), of_text, of_binary))
        {
            assert_eq!(
                (pattern.matches(text), pattern.matches(binary)),
                (of_text, of_binary),
                "{pattern:?}"
            );
        }
    }
}
