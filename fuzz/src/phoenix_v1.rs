//! V1 text frames.

use serde_json::Value;
use throng_proto::phoenix::{Vsn, client, decode_text};

use super::{oracle, phoenix_v2};

/// Checks that a frame is accepted exactly if another parser finds the four keys with the right
/// types in it, that both find the same content, and that the frame round-trips.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    oracle::check_validity(text);
    let decoded = decode_text(Vsn::V1, text);
    if let Some(value) = oracle::value(text) {
        let get = |key| value.get(key).unwrap_or(&Value::Null);
        let is_ref = |key| get(key).is_string() || get(key).is_null() || get(key).is_number();
        let fits = get("topic").is_string()
            && get("event").is_string()
            && value.get("payload").is_some()
            && value.get("ref").is_some()
            && is_ref("ref")
            && is_ref("join_ref");
        assert_eq!(decoded.is_ok(), fits, "{text:?}");
        if let Ok(message) = &decoded {
            oracle::check_message(
                message,
                ["join_ref", "ref", "topic", "event", "payload"].map(get),
            );
        }
    }
    if let Ok(mut message) = decoded {
        if message.r#ref.is_none() {
            // A server writes it without the join_ref.
            message.join_ref = None;
        }
        let written = phoenix_v2::write(Vsn::V1, &message);
        assert_eq!(decode_text(Vsn::V1, &written).as_ref(), Ok(&message));
    }
    let _ = client::decode_text(Vsn::V1, text);
}
