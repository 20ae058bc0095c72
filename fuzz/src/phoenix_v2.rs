//! V2 text frames: to a server, and to a client.

use std::borrow::Cow;

use serde_json::Value;
use throng_proto::phoenix::client::{self, PhoenixClientEvent};
use throng_proto::phoenix::{PhoenixMessage, PhoenixPayload, Vsn, decode_text, names};

use super::oracle;

/// Checks that a frame is accepted exactly if another parser finds five elements of the right types
/// in it, that both find the same content, and that the frame round-trips.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    oracle::check_validity(text);
    let decoded = decode_text(Vsn::V2, text);
    if let Some(Value::Array(elements)) = oracle::value(text) {
        let fits = match &elements[..] {
            [join_ref, r#ref, topic, event, _, ..] => {
                let is_ref =
                    |value: &Value| value.is_string() || value.is_null() || value.is_number();
                is_ref(join_ref) && is_ref(r#ref) && topic.is_string() && event.is_string()
            }
            _ => false,
        };
        assert_eq!(decoded.is_ok(), fits, "{text:?}");
        if let Ok(message) = &decoded {
            let found = [&elements[0], &elements[1], &elements[2], &elements[3], &elements[4]];
            oracle::check_message(message, found);
        }
    }
    if let Ok(message) = decoded {
        let written = write(Vsn::V2, &message);
        assert_eq!(decode_text(Vsn::V2, &written).as_ref(), Ok(&message));
        check_fast_decoder(&written, &message);
    }
    // A client must not panic on any text of a server.
    let _ = client::decode_text(Vsn::V2, text);
}

/// Encodes the message as a client does.
pub fn write(vsn: Vsn, message: &PhoenixMessage<'_>) -> String {
    let mut out = Vec::new();
    let PhoenixMessage { join_ref, r#ref, topic, event, payload } = message;
    match r#ref {
        Some(r#ref) => {
            client::push(vsn, join_ref.as_deref(), r#ref, topic, event, *payload, &mut out)
                .unwrap();
        }
        // Only servers send messages without a ref.
        None => {
            throng_proto::phoenix::push(vsn, join_ref.as_deref(), topic, event, *payload, &mut out)
                .unwrap();
        }
    }
    String::from_utf8(out).unwrap()
}

/// Checks that the fast decoder finds the same content as the strict one.
fn check_fast_decoder(written: &str, message: &PhoenixMessage<'_>) {
    match client::decode_text(Vsn::V2, written) {
        Ok(PhoenixClientEvent::Message(decoded)) => {
            // To a client an empty ref is none.
            let some = |r#ref: &Option<Cow<'_, str>>| {
                r#ref.as_ref().filter(|text| !text.is_empty()).map(|text| text.to_string())
            };
            assert_eq!(some(&decoded.join_ref), some(&message.join_ref));
            assert_eq!(some(&decoded.r#ref), some(&message.r#ref));
            assert_eq!(
                (decoded.topic, decoded.event, decoded.payload),
                (message.topic.clone(), message.event.clone(), message.payload)
            );
        }
        Ok(PhoenixClientEvent::ChannelEnd(end)) => {
            let event = if end.is_crash { names::ERROR } else { names::CLOSE };
            assert_eq!((&end.topic, event), (&message.topic, &*message.event));
        }
        Ok(PhoenixClientEvent::Reply(reply)) => {
            assert_eq!((&reply.topic, &*message.event), (&message.topic, names::REPLY));
            let (PhoenixPayload::Json(response), PhoenixPayload::Json(payload)) =
                (reply.response, message.payload)
            else {
                panic!("a binary payload in a text frame")
            };
            assert!(response == "null" || payload.contains(response));
        }
        Err(error) => assert_eq!(&*message.event, names::REPLY, "{error}"),
    }
}
