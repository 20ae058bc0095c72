//! Why a message is not the one that a pattern describes.

use serde_json::Value;
use throng_base::Prng;

use super::{
    IncomingMessage, JsonPattern, MessagePattern, Pattern, Template, Variable, VariableScope,
};
use crate::excerpt::Excerpt;
use crate::protocols::phoenix::event_pattern::{self, EventPattern};

impl MessagePattern {
    /// Describes in words why `message` does not match.
    pub(crate) fn difference(&self, message: IncomingMessage<'_>, excerpt: Excerpt<'_>) -> String {
        let why = self.pattern.difference(message, excerpt);
        let is_missing = |why: &String| why.is_empty();
        match self.missing_capture(message).filter(|_| is_missing(&why)) {
            Some(capture) => capture.describe_missing(),
            None if why.is_empty() => "a value differs".to_owned(),
            None => why,
        }
    }
}

impl Pattern {
    /// Describes why `message` does not match; empty if no reason is known.
    fn difference(&self, message: IncomingMessage<'_>, excerpt: Excerpt<'_>) -> String {
        let is_text = matches!(message, IncomingMessage::Text(_));
        match (self, message) {
            (Self::Json(expected), IncomingMessage::Text(text)) => {
                json_difference(expected, text, excerpt)
            }
            (Self::Text(_) | Self::Json(_) | Self::Regex(_), IncomingMessage::Binary(_)) => {
                "it is a binary message, not a text".to_owned()
            }
            (Self::Binary(_), IncomingMessage::Text(_)) => {
                "it is a text, not a binary message".to_owned()
            }
            (Self::Text(expected) | Self::Binary(expected), message) => {
                let literal = expected.as_literal();
                let differ = |it| bytes_difference(it, message.bytes(), is_text, excerpt);
                literal.map(differ).unwrap_or_default()
            }
            (Self::Bytes(count), message) => {
                format!("it has {} bytes, not {count}", message.bytes().len())
            }
            (Self::Contains(part), _) => {
                format!("it does not contain {}", excerpt.written(part.to_string().as_bytes()))
            }
            (Self::Any, _) => String::new(),
            (Self::Regex(_), _) => "the expression does not match in it".to_owned(),
            (Self::OneOf(_), _) => "none of the patterns fits".to_owned(),
            (Self::Event(event), message) => event.difference(message, excerpt),
        }
    }
}

impl EventPattern {
    /// Describes why a frame is not this event; empty if no reason is known.
    fn difference(&self, frame: IncomingMessage<'_>, excerpt: Excerpt<'_>) -> String {
        let Some((topic, event, body)) = event_pattern::parts(frame) else {
            return "it is no event of a channel".to_owned();
        };
        let differs = |template: &Template, got: &str| {
            template.as_literal().is_some_and(|expected| expected != got.as_bytes())
        };
        if differs(&self.event, &event) || differs(&self.topic, &topic) {
            let (event, topic) = (excerpt.bytes(event.as_bytes()), excerpt.bytes(topic.as_bytes()));
            return format!("it is the event {event} of {topic}");
        }
        match (&self.payload, body) {
            (Some(expected), IncomingMessage::Text(text)) => {
                json_difference(expected, text, excerpt)
            }
            (Some(_), IncomingMessage::Binary(_)) => "its payload is binary, not JSON".to_owned(),
            (None, _) => String::new(),
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
    let rest = |bytes: &[u8]| match bytes.len() <= at {
        true => "the end".to_owned(),
        false => excerpt.piece(bytes, at, REST_BYTES_MAX),
    };
    format!("at byte {at} comes {}, expected {}", rest(got), rest(expected))
}

/// Describes the first members of `expected` that `text` does not have.
fn json_difference(expected: &JsonPattern, text: &str, excerpt: Excerpt<'_>) -> String {
    let got: Value = match serde_json::from_str(text) {
        Ok(got) => got,
        Err(error) => return format!("it is not JSON: {error}"),
    };
    let mut found = Differences { excerpt, certain: Vec::new(), possible: Vec::new() };
    found.compare("", expected, &got);
    // Values of the user are not known here. One of them differs if nothing else does.
    let mut differences = if found.certain.is_empty() { found.possible } else { found.certain };
    let more = differences.len().saturating_sub(DIFFERENCES_MAX);
    differences.truncate(DIFFERENCES_MAX);
    let mut text = differences.join("; ");
    if more > 0 {
        text += &format!("; and {more} more");
    }
    text
}

/// Differences between a pattern and a value.
struct Differences<'a> {
    excerpt: Excerpt<'a>,
    certain: Vec<String>,
    /// Members whose expected value is one of the user's.
    possible: Vec<String>,
}

impl Differences<'_> {
    fn compare(&mut self, path: &str, expected: &JsonPattern, got: &Value) {
        let name = if path.is_empty() { "it".to_owned() } else { format!("`{path}`") };
        match (expected, got) {
            (JsonPattern::Object(expected), Value::Object(got)) => {
                for (key, value) in expected {
                    let path =
                        if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
                    match got.get(&**key) {
                        Some(other) => self.compare(&path, value, other),
                        None if value.holds_if_absent() => {}
                        None => {
                            let value = self.excerpt.written(value.to_string().as_bytes());
                            self.certain.push(format!("`{path}` is missing, expected {value}"));
                        }
                    }
                }
            }
            (JsonPattern::List(expected), Value::Array(got)) if expected.len() == got.len() => {
                for (index, (value, other)) in expected.iter().zip(got).enumerate() {
                    self.compare(&format!("{path}[{index}]"), value, other);
                }
            }
            (JsonPattern::List(expected), Value::Array(got)) => {
                let (has, wants) = (got.len(), expected.len());
                self.certain.push(format!("{name} has {has} items, expected {wants}"));
            }
            (expected, got) => self.compare_value(&name, expected, got),
        }
    }

    fn compare_value(&mut self, name: &str, expected: &JsonPattern, got: &Value) {
        let is_own = expected.uses(&|part| !matches!(part, Variable::Number(_)));
        let scope = VariableScope::new(0, Prng::new(0));
        if !is_own && expected.is_in(&got.to_string(), scope, &mut Vec::new()) {
            return;
        }
        let value = self.excerpt.bytes(got.to_string().as_bytes());
        let wanted = self.excerpt.written(expected.to_string().as_bytes());
        let difference = format!("{name} is {value}, expected {wanted}");
        let differences = if is_own { &mut self.possible } else { &mut self.certain };
        differences.push(difference);
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
    use crate::program::{MessagePart, Template};

    #[track_caller]
    fn check(pattern: Pattern, message: IncomingMessage<'_>, expected: &str) {
        let pattern = MessagePattern::new(pattern, Vec::new(), false);
        assert_eq!(pattern.difference(message, Excerpt::short(&[])), expected);
    }

    fn template(text: &str) -> Template {
        Template::parse(text).unwrap()
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
            check(Pattern::Json(expected.into()), text(got), why);
        }
    }

    #[test]
    fn a_value_of_the_user_differs_where_nothing_else_does() {
        let expected = |kind: &str| {
            let kind = JsonPattern::from(json!(kind));
            let own = JsonPattern::Text(template("${user.id}"));
            Pattern::Json(JsonPattern::Object(vec![("type".into(), kind), ("id".into(), own)]))
        };
        let message = IncomingMessage::Text(r#"{"type":"a","id":"9"}"#);
        check(expected("a"), message, "`id` is `\"9\"`, expected `\"${user.id}\"`");
        check(expected("b"), message, "`type` is `\"a\"`, expected `\"b\"`");
    }

    #[test]
    fn names_of_events_and_topics_are_cut_escaped_and_masked() {
        let [topic, event] = ["user:hunter2", "told"].map(template);
        let event = EventPattern { topic, event, payload: None };
        let pattern = MessagePattern::new(Pattern::Event(Box::new(event)), Vec::new(), false);
        let secrets = ["hunter2".to_owned()];
        let excerpt = Excerpt::short(&secrets);
        let expected = pattern.describe(|bytes| excerpt.bytes(bytes));
        assert_eq!(expected, "the event `told` of `user:***`");
        let frame = r#"[null,null,"user:hunter2","a\u001b]0;xyz\u0007",{}]"#;
        let why = pattern.difference(IncomingMessage::Text(frame), excerpt);
        assert_eq!(why, r"it is the event `a\u{1b}]0;xyz\u{7}` of `user:***`");
        let frame = format!(r#"[null,null,"a","{}",{{}}]"#, "x".repeat(1 << 20));
        let why = pattern.difference(IncomingMessage::Text(&frame), excerpt);
        assert!(why.len() < 300, "{} bytes", why.len());
    }

    #[test]
    fn texts_differ_from_a_byte_on() {
        let text = |text| IncomingMessage::Text(text);
        let expects = |text: &str| Pattern::Text(template(text));
        check(expects("hello"), text("help"), "at byte 3 comes `p`, expected `lo`");
        check(expects("hello"), text("hell"), "at byte 4 comes the end, expected `o`");
        check(expects("ö"), text("ä"), "at byte 0 comes `ä`, expected `ö`");
        check(expects("a"), IncomingMessage::Binary(b"a"), "it is a binary message, not a text");
        check(Pattern::Bytes(3), text("ab"), "it has 2 bytes, not 3");
        let part = Pattern::Contains(Box::new(MessagePart::new(template("x"))));
        check(part, text("ab"), "it does not contain `x`");
        check(expects("a ${user.id}"), text("a 8"), "a value differs");
    }
}
