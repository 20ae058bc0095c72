//! The server's side: what clients send, decoded, and what they are told, encoded.

use std::borrow::Cow;

use super::text::{self, Head};
use super::{DecodeError, EncodeError, Kind, Message, Payload, Vsn, binary, names};

/// Decodes a client's text frame. All of it is checked to be JSON, its payload is not looked into.
///
/// Refs that are numbers are taken as their text. Of V1's keys the last of a name counts, as in a map.
pub fn decode_text(vsn: Vsn, frame: &str) -> Result<Message<'_>, DecodeError> {
    match vsn {
        Vsn::V1 => text::decode_v1(frame),
        Vsn::V2 => text::decode_v2(frame),
    }
}

/// Decodes a client's binary frame (V2): a push. Empty refs count as none.
pub fn decode_binary(frame: &[u8]) -> Result<Message<'_>, DecodeError> {
    match frame.split_first() {
        Some((&binary::PUSH, rest)) => {
            let ([join_ref, r#ref, topic, event], data) = binary::decode(rest)?;
            Ok(Message {
                join_ref: binary::present(join_ref),
                r#ref: binary::present(r#ref),
                topic: Cow::Borrowed(topic),
                event: Cow::Borrowed(event),
                payload: Payload::Binary(data),
            })
        }
        Some(_) => Err(DecodeError::Binary("clients send no frames of this kind")),
        None => Err(DecodeError::Binary("it is empty")),
    }
}

/// Appends a message of a channel to its client. A JSON payload must be an object: see [`super::json::is_object`].
pub fn push(
    vsn: Vsn,
    join_ref: Option<&str>,
    topic: &str,
    event: &str,
    payload: Payload<'_>,
    out: &mut Vec<u8>,
) -> Result<Kind, EncodeError> {
    match (vsn, payload) {
        (_, Payload::Json(json)) => {
            Ok(head(vsn, join_ref, None, topic, event).around(vsn, json, out))
        }
        (Vsn::V2, Payload::Binary(data)) => {
            let names = [("join_ref", join_ref.unwrap_or("")), ("topic", topic), ("event", event)];
            binary::encode(binary::PUSH, names, data, out)
        }
        (Vsn::V1, Payload::Binary(_)) => Err(EncodeError::BinaryInV1),
    }
}

/// Appends the answer to the push `ref`: `status` is `ok`, `error` or the application's own word.
pub fn reply(
    vsn: Vsn,
    join_ref: Option<&str>,
    r#ref: Option<&str>,
    topic: &str,
    status: &str,
    response: Payload<'_>,
    out: &mut Vec<u8>,
) -> Result<Kind, EncodeError> {
    match (vsn, response) {
        (_, Payload::Json(json)) => Ok(head(vsn, join_ref, r#ref, topic, names::REPLY)
            .around_with(vsn, out, |out| {
                out.extend_from_slice(b"{\"status\":");
                super::json::write_string(status, out);
                out.extend_from_slice(b",\"response\":");
                out.extend_from_slice(json.as_bytes());
                out.push(b'}');
            })),
        (Vsn::V2, Payload::Binary(data)) => {
            let names = [
                ("join_ref", join_ref.unwrap_or("")),
                ("ref", r#ref.unwrap_or("")),
                ("topic", topic),
                ("status", status),
            ];
            binary::encode(binary::REPLY, names, data, out)
        }
        (Vsn::V1, Payload::Binary(_)) => Err(EncodeError::BinaryInV1),
    }
}

/// Appends a message to everyone who is joined to `topic`: the same bytes for all clients of a version.
pub fn broadcast(
    vsn: Vsn,
    topic: &str,
    event: &str,
    payload: Payload<'_>,
    out: &mut Vec<u8>,
) -> Result<Kind, EncodeError> {
    match (vsn, payload) {
        (Vsn::V2, Payload::Binary(data)) => {
            binary::encode(binary::BROADCAST, [("topic", topic), ("event", event)], data, out)
        }
        _ => push(vsn, None, topic, event, payload, out),
    }
}

/// Appends `phx_close`: the channel that `join_ref` made has ended normally.
pub fn channel_closed(vsn: Vsn, join_ref: Option<&str>, topic: &str, out: &mut Vec<u8>) {
    head(vsn, join_ref, join_ref, topic, names::CLOSE).around(vsn, "{}", out);
}

/// Appends `phx_error` with the reason `channel_crash`: the channel that `join_ref` made has crashed.
pub fn channel_crashed(vsn: Vsn, join_ref: Option<&str>, topic: &str, out: &mut Vec<u8>) {
    head(vsn, join_ref, join_ref, topic, names::ERROR).around(
        vsn,
        "{\"reason\":\"channel_crash\"}",
        out,
    );
}

/// A server never tells V1 clients a join_ref.
fn head<'a>(
    vsn: Vsn,
    join_ref: Option<&'a str>,
    r#ref: Option<&'a str>,
    topic: &'a str,
    event: &'a str,
) -> Head<'a> {
    let join_ref = if vsn == Vsn::V1 { None } else { join_ref };
    Head { join_ref, r#ref, topic, event }
}
