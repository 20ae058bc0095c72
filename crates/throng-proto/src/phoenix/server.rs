//! The server's side: a decoder of client messages, and an encoder of server messages.

use std::borrow::Cow;

use super::text::{self, Head};
use super::{
    FrameDecodeError, FrameEncodeError, FrameKind, PhoenixMessage, PhoenixPayload, Vsn, binary,
    names,
};

/// Decodes a client's text frame. All of it is checked to be JSON; the payload is not interpreted.
///
/// A ref that is a number becomes its text. If V1 repeats a key, the last value counts, as in a
/// map.
pub fn decode_text(vsn: Vsn, frame: &str) -> Result<PhoenixMessage<'_>, FrameDecodeError> {
    match vsn {
        Vsn::V1 => text::decode_v1(frame),
        Vsn::V2 => text::decode_v2(frame),
    }
}

/// Decodes a client's binary frame (V2), which is a push. An empty ref means none.
pub fn decode_binary(frame: &[u8]) -> Result<PhoenixMessage<'_>, FrameDecodeError> {
    match frame.split_first() {
        Some((&binary::PUSH, rest)) => {
            let ([join_ref, r#ref, topic, event], data) = binary::decode(rest)?;
            Ok(PhoenixMessage {
                join_ref: binary::non_empty(join_ref),
                r#ref: binary::non_empty(r#ref),
                topic: Cow::Borrowed(topic),
                event: Cow::Borrowed(event),
                payload: PhoenixPayload::Binary(data),
            })
        }
        Some(_) => Err(FrameDecodeError::Binary("a client sends no frames of this kind")),
        None => Err(FrameDecodeError::Binary("the frame is empty")),
    }
}

/// Appends a push from a channel to its client. A JSON payload must be an object: see
/// [`super::json::is_object`].
pub fn push(
    vsn: Vsn,
    join_ref: Option<&str>,
    topic: &str,
    event: &str,
    payload: PhoenixPayload<'_>,
    out: &mut Vec<u8>,
) -> Result<FrameKind, FrameEncodeError> {
    match (vsn, payload) {
        (_, PhoenixPayload::Json(json)) => {
            Ok(head(vsn, join_ref, None, topic, event).write(vsn, json, out))
        }
        (Vsn::V2, PhoenixPayload::Binary(data)) => {
            let names = [("join_ref", join_ref.unwrap_or("")), ("topic", topic), ("event", event)];
            binary::encode(binary::PUSH, names, data, out)
        }
        (Vsn::V1, PhoenixPayload::Binary(_)) => Err(FrameEncodeError::BinaryInV1),
    }
}

/// Appends a push from a channel to its client without its payload, which must be a JSON object.
/// Returns the position in `out` at which the payload belongs.
pub fn push_without_payload(
    vsn: Vsn,
    join_ref: Option<&str>,
    topic: &str,
    event: &str,
    out: &mut Vec<u8>,
) -> usize {
    let mut place = 0;
    head(vsn, join_ref, None, topic, event).write_with(vsn, out, |out| place = out.len());
    place
}

/// Appends the reply to the push `ref`. `status` is `ok`, `error` or an application-defined word.
pub fn reply(
    vsn: Vsn,
    join_ref: Option<&str>,
    r#ref: Option<&str>,
    topic: &str,
    status: &str,
    response: PhoenixPayload<'_>,
    out: &mut Vec<u8>,
) -> Result<FrameKind, FrameEncodeError> {
    match (vsn, response) {
        (_, PhoenixPayload::Json(json)) => Ok(head(vsn, join_ref, r#ref, topic, names::REPLY)
            .write_with(vsn, out, |out| {
                out.extend_from_slice(b"{\"status\":");
                super::json::write_string(status, out);
                out.extend_from_slice(b",\"response\":");
                out.extend_from_slice(json.as_bytes());
                out.push(b'}');
            })),
        (Vsn::V2, PhoenixPayload::Binary(data)) => {
            let names = [
                ("join_ref", join_ref.unwrap_or("")),
                ("ref", r#ref.unwrap_or("")),
                ("topic", topic),
                ("status", status),
            ];
            binary::encode(binary::REPLY, names, data, out)
        }
        (Vsn::V1, PhoenixPayload::Binary(_)) => Err(FrameEncodeError::BinaryInV1),
    }
}

/// Appends a broadcast to all subscribers of `topic`: the same bytes for all clients of a version.
pub fn broadcast(
    vsn: Vsn,
    topic: &str,
    event: &str,
    payload: PhoenixPayload<'_>,
    out: &mut Vec<u8>,
) -> Result<FrameKind, FrameEncodeError> {
    match (vsn, payload) {
        (Vsn::V2, PhoenixPayload::Binary(data)) => {
            binary::encode(binary::BROADCAST, [("topic", topic), ("event", event)], data, out)
        }
        _ => push(vsn, None, topic, event, payload, out),
    }
}

/// Appends `phx_close`: the channel of `join_ref` has ended normally.
pub fn channel_closed(vsn: Vsn, join_ref: Option<&str>, topic: &str, out: &mut Vec<u8>) {
    head(vsn, join_ref, join_ref, topic, names::CLOSE).write(vsn, "{}", out);
}

/// Appends `phx_error` with the reason `channel_crash`: the channel of `join_ref` has crashed.
pub fn channel_crashed(vsn: Vsn, join_ref: Option<&str>, topic: &str, out: &mut Vec<u8>) {
    head(vsn, join_ref, join_ref, topic, names::ERROR).write(
        vsn,
        "{\"reason\":\"channel_crash\"}",
        out,
    );
}

/// Builds the head of a frame. A server sends no join_ref to V1 clients.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(vsn: Vsn, write: impl FnOnce(&mut Vec<u8>), want: &str) {
        let mut out = Vec::new();
        write(&mut out);
        assert_eq!(std::str::from_utf8(&out), Ok(want), "{vsn:?}");
    }

    fn message<'a>(
        join_ref: Option<&'a str>,
        r#ref: Option<&'a str>,
        topic: &'a str,
        event: &'a str,
        payload: PhoenixPayload<'a>,
    ) -> PhoenixMessage<'a> {
        PhoenixMessage {
            join_ref: join_ref.map(Cow::Borrowed),
            r#ref: r#ref.map(Cow::Borrowed),
            topic: topic.into(),
            event: event.into(),
            payload,
        }
    }

    #[test]
    fn v2_text_frames_are_arrays() {
        let out = &mut Vec::new();
        let json = PhoenixPayload::Json("{\"a\":1}");
        check(
            Vsn::V2,
            |out| _ = push(Vsn::V2, Some("1"), "t", "e", json, out),
            r#"["1",null,"t","e",{"a":1}]"#,
        );
        check(
            Vsn::V2,
            |out| _ = broadcast(Vsn::V2, "t", "e", json, out),
            r#"[null,null,"t","e",{"a":1}]"#,
        );
        check(
            Vsn::V2,
            |out| _ = reply(Vsn::V2, Some("1"), Some("2"), "t", "ok", json, out),
            r#"["1","2","t","phx_reply",{"status":"ok","response":{"a":1}}]"#,
        );
        check(
            Vsn::V2,
            |out| channel_closed(Vsn::V2, Some("1"), "t", out),
            r#"["1","1","t","phx_close",{}]"#,
        );
        check(
            Vsn::V2,
            |out| channel_crashed(Vsn::V2, Some("1"), "t", out),
            r#"["1","1","t","phx_error",{"reason":"channel_crash"}]"#,
        );
        assert_eq!(broadcast(Vsn::V2, "t", "e", json, out), Ok(FrameKind::Text));
    }

    #[test]
    fn a_payload_that_is_added_later_has_its_position() {
        for vsn in [Vsn::V1, Vsn::V2] {
            let mut around = Vec::new();
            let place = push_without_payload(vsn, Some("7"), "t\"", "e", &mut around);
            around.splice(place..place, *b"{\"a\":1}");
            let json = PhoenixPayload::Json("{\"a\":1}");
            check(vsn, |out| _ = push(vsn, Some("7"), "t\"", "e", json, out), str(&around));
        }
    }

    fn str(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn the_reply_to_a_heartbeat_has_no_join_ref() {
        check(
            Vsn::V2,
            |out| {
                _ = reply(
                    Vsn::V2,
                    None,
                    Some("9"),
                    names::PHOENIX,
                    "ok",
                    PhoenixPayload::EMPTY,
                    out,
                )
            },
            r#"[null,"9","phoenix","phx_reply",{"status":"ok","response":{}}]"#,
        );
    }

    #[test]
    fn v1_text_frames_are_objects_without_join_ref() {
        let json = PhoenixPayload::Json("{\"a\":1}");
        check(
            Vsn::V1,
            |out| _ = push(Vsn::V1, Some("1"), "t", "e", json, out),
            r#"{"topic":"t","event":"e","payload":{"a":1},"ref":null}"#,
        );
        check(
            Vsn::V1,
            |out| _ = broadcast(Vsn::V1, "t", "e", json, out),
            r#"{"topic":"t","event":"e","payload":{"a":1},"ref":null}"#,
        );
        check(
            Vsn::V1,
            |out| _ = reply(Vsn::V1, Some("1"), Some("2"), "t", "error", json, out),
            concat!(
                r#"{"topic":"t","event":"phx_reply","#,
                r#""payload":{"status":"error","response":{"a":1}},"ref":"2"}"#
            ),
        );
        check(
            Vsn::V1,
            |out| channel_closed(Vsn::V1, Some("1"), "t", out),
            r#"{"topic":"t","event":"phx_close","payload":{},"ref":"1"}"#,
        );
    }

    #[test]
    fn names_are_escaped() {
        check(
            Vsn::V2,
            |out| _ = push(Vsn::V2, Some("\""), "a\nb", "\u{1}\\", PhoenixPayload::EMPTY, out),
            r#"["\"",null,"a\nb","\u0001\\",{}]"#,
        );
        check(
            Vsn::V2,
            |out| _ = reply(Vsn::V2, None, None, "t", "\"", PhoenixPayload::EMPTY, out),
            r#"[null,null,"t","phx_reply",{"status":"\"","response":{}}]"#,
        );
    }

    /// The test vectors of the reference, §6.4.
    #[test]
    fn binary_frames_are_those_of_the_reference() {
        let data = PhoenixPayload::Binary(&[0x65, 0x66, 0x67]);
        let mut out = Vec::new();
        assert_eq!(
            decode_binary(b"\x00\x02\x03\x05\x0512123topicevent\x65\x66\x67"),
            Ok(message(Some("12"), Some("123"), "topic", "event", data))
        );
        assert_eq!(
            reply(Vsn::V2, Some("12"), Some("123"), "topic", "ok", data, &mut out),
            Ok(FrameKind::Binary)
        );
        assert_eq!(out, b"\x01\x02\x03\x05\x0212123topicok\x65\x66\x67");
        out.clear();
        assert_eq!(broadcast(Vsn::V2, "topic", "event", data, &mut out), Ok(FrameKind::Binary));
        assert_eq!(out, b"\x02\x05\x05topicevent\x65\x66\x67");
        out.clear();
        assert_eq!(
            push(Vsn::V2, Some("12"), "topic", "event", data, &mut out),
            Ok(FrameKind::Binary)
        );
        assert_eq!(out, b"\x00\x02\x05\x0512topicevent\x65\x66\x67");
    }

    #[test]
    fn empty_refs_of_a_binary_push_are_none() {
        let want = message(None, None, "t", "e", PhoenixPayload::Binary(b""));
        assert_eq!(decode_binary(b"\x00\x00\x00\x01\x01te"), Ok(want));
    }

    #[test]
    fn clients_send_binary_pushes_only() {
        for frame in [
            &b""[..],
            b"\x01\x00\x00\x00\x00",
            b"\x02\x01\x01te",
            b"\x03",
            b"\xff\x00\x00\x00\x00",
            b"\x00\x00\x00\x00",
        ] {
            assert!(matches!(decode_binary(frame), Err(FrameDecodeError::Binary(_))), "{frame:?}");
        }
    }

    #[test]
    fn binary_payloads_need_the_second_version() {
        let (data, mut out) = (PhoenixPayload::Binary(b"x"), Vec::new());
        assert_eq!(
            push(Vsn::V1, None, "t", "e", data, &mut out),
            Err(FrameEncodeError::BinaryInV1)
        );
        assert_eq!(broadcast(Vsn::V1, "t", "e", data, &mut out), Err(FrameEncodeError::BinaryInV1));
        assert_eq!(
            reply(Vsn::V1, None, None, "t", "ok", data, &mut out),
            Err(FrameEncodeError::BinaryInV1)
        );
        let long = "x".repeat(256);
        assert_eq!(
            broadcast(Vsn::V2, &long, "e", data, &mut out),
            Err(FrameEncodeError::FieldTooLong { field: "topic", bytes: 256 })
        );
        assert!(out.is_empty());
    }
}
