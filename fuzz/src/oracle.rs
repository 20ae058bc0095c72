//! Another JSON parser, as an oracle.

use serde::de::IgnoredAny;
use serde_json::Value;
use throng_proto::phoenix::{PhoenixMessage, PhoenixPayload, json};

/// Parses the text. Returns `None` if it is not JSON, nests too deep for that parser, or contains a
/// number that it cannot represent.
pub fn value(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

/// Checks that both parsers agree on the validity of `text`.
pub fn check_validity(text: &str) {
    let ours = json::is_valid(text);
    if value(text).is_some() {
        assert!(ours, "refused: {text:?}");
    }
    if ours && depth(text) < 100 {
        assert!(serde_json::from_str::<IgnoredAny>(text).is_ok(), "taken: {text:?}");
    }
    assert!(!json::is_object(text) || ours);
}

/// Checks that the message has the parts that the other parser found: refs, topic, event, payload.
pub fn check_message(message: &PhoenixMessage<'_>, found: [&Value; 5]) {
    let [join_ref, r#ref, topic, event, payload] = found;
    for (ours, theirs) in [(&message.join_ref, join_ref), (&message.r#ref, r#ref)] {
        // A number keeps its digits; the other parser may write it differently.
        if !theirs.is_number() {
            assert_eq!(ours.as_deref(), theirs.as_str());
        }
    }
    assert_eq!((Some(&*message.topic), Some(&*message.event)), (topic.as_str(), event.as_str()));
    let PhoenixPayload::Json(text) = message.payload else {
        panic!("a binary payload in a text frame")
    };
    assert_eq!(value(text).as_ref(), Some(payload));
}

/// Returns a lower bound of the nesting depth of a text.
fn depth(text: &str) -> usize {
    let mut deepest = 0;
    let mut open = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest
}
