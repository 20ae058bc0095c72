//! The client's side, as phoenix.js speaks it: an encoder of requests, and a decoder for a client
//! that receives millions of messages.

use std::borrow::Cow;

use super::json::Scanner;
use super::text::{self, Head};
use super::{
    FrameDecodeError, FrameEncodeError, FrameKind, PhoenixMessage, PhoenixPayload, Vsn, binary,
    names,
};

/// A message from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PhoenixClientEvent<'a> {
    /// The reply to a push, join, leave or heartbeat of this client.
    Reply(PushReply<'a>),
    /// Any other message: a push, a broadcast, or `phx_close` and `phx_error`, whose ref is their
    /// join_ref.
    Message(PhoenixMessage<'a>),
}

/// The reply to the push with the same ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushReply<'a> {
    /// The join_ref of the channel; none for heartbeats, unmatched topics, and V1.
    pub join_ref: Option<Cow<'a, str>>,
    /// The ref of the push.
    pub r#ref: Option<Cow<'a, str>>,
    /// The topic of the push.
    pub topic: Cow<'a, str>,
    /// The status: `ok`, `error` or an application-defined word.
    pub status: Cow<'a, str>,
    /// The payload of the reply.
    pub response: PhoenixPayload<'a>,
}

/// Decodes a server's text frame. It allocates only if a name contains escapes.
///
/// The payload of V2 is not scanned. It is the text before the last bracket of the frame, because a
/// client trusts the server to send JSON. Replies are scanned as a whole for their status, and so
/// is all of V1.
pub fn decode_text(vsn: Vsn, frame: &str) -> Result<PhoenixClientEvent<'_>, FrameDecodeError> {
    let message = match vsn {
        Vsn::V1 => text::decode_v1(frame)?,
        Vsn::V2 => {
            let mut scanner = Scanner::new(frame);
            let (join_ref, r#ref, topic, event) = text::decode_v2_head(&mut scanner)?;
            let Some(payload) = scanner.rest().trim_ascii().strip_suffix(']') else {
                return Err(FrameDecodeError::Shape("the array has no end"));
            };
            PhoenixMessage {
                join_ref,
                r#ref,
                topic,
                event,
                payload: PhoenixPayload::Json(payload.trim_ascii_end()),
            }
        }
    };
    match message.payload {
        PhoenixPayload::Json(payload) if message.event == names::REPLY => {
            let (status, response) = status_and_response(payload)?;
            let PhoenixMessage { join_ref, r#ref, topic, .. } = message;
            Ok(PhoenixClientEvent::Reply(PushReply {
                join_ref,
                r#ref,
                topic,
                status,
                response: PhoenixPayload::Json(response),
            }))
        }
        _ => Ok(PhoenixClientEvent::Message(message)),
    }
}

/// Decodes a server's binary frame (V2): a push, a reply or a broadcast. An empty ref means none.
pub fn decode_binary(frame: &[u8]) -> Result<PhoenixClientEvent<'_>, FrameDecodeError> {
    let Some((kind, rest)) = frame.split_first() else {
        return Err(FrameDecodeError::Binary("the frame is empty"));
    };
    let message = |join_ref, topic, event, data| {
        let (topic, event) = (Cow::Borrowed(topic), Cow::Borrowed(event));
        PhoenixClientEvent::Message(PhoenixMessage {
            join_ref,
            r#ref: None,
            topic,
            event,
            payload: PhoenixPayload::Binary(data),
        })
    };
    match *kind {
        binary::PUSH => {
            let ([join_ref, topic, event], data) = binary::decode(rest)?;
            Ok(message(binary::non_empty(join_ref), topic, event, data))
        }
        binary::REPLY => {
            let ([join_ref, r#ref, topic, status], data) = binary::decode(rest)?;
            Ok(PhoenixClientEvent::Reply(PushReply {
                join_ref: binary::non_empty(join_ref),
                r#ref: binary::non_empty(r#ref),
                topic: Cow::Borrowed(topic),
                status: Cow::Borrowed(status),
                response: PhoenixPayload::Binary(data),
            }))
        }
        binary::BROADCAST => {
            let ([topic, event], data) = binary::decode(rest)?;
            Ok(message(None, topic, event, data))
        }
        _ => Err(FrameDecodeError::Binary("a server sends no frames of this kind")),
    }
}

/// Appends `phx_join`. Its ref becomes the join_ref of the channel. `payload` is JSON text.
pub fn join(vsn: Vsn, r#ref: &str, topic: &str, payload: &str, out: &mut Vec<u8>) {
    Head { join_ref: Some(r#ref), r#ref: Some(r#ref), topic, event: names::JOIN }
        .write(vsn, payload, out);
}

/// Appends a push to a channel.
pub fn push(
    vsn: Vsn,
    join_ref: Option<&str>,
    r#ref: &str,
    topic: &str,
    event: &str,
    payload: PhoenixPayload<'_>,
    out: &mut Vec<u8>,
) -> Result<FrameKind, FrameEncodeError> {
    match (vsn, payload) {
        (_, PhoenixPayload::Json(json)) => {
            Ok(Head { join_ref, r#ref: Some(r#ref), topic, event }.write(vsn, json, out))
        }
        (Vsn::V2, PhoenixPayload::Binary(data)) => {
            let names = [
                ("join_ref", join_ref.unwrap_or("")),
                ("ref", r#ref),
                ("topic", topic),
                ("event", event),
            ];
            binary::encode(binary::PUSH, names, data, out)
        }
        (Vsn::V1, PhoenixPayload::Binary(_)) => Err(FrameEncodeError::BinaryInV1),
    }
}

/// Appends `phx_leave`.
pub fn leave(vsn: Vsn, join_ref: Option<&str>, r#ref: &str, topic: &str, out: &mut Vec<u8>) {
    Head { join_ref, r#ref: Some(r#ref), topic, event: names::LEAVE }.write(vsn, "{}", out);
}

/// Appends a heartbeat.
pub fn heartbeat(vsn: Vsn, r#ref: &str, out: &mut Vec<u8>) {
    Head { join_ref: None, r#ref: Some(r#ref), topic: names::PHOENIX, event: names::HEARTBEAT }
        .write(vsn, "{}", out);
}

/// Returns the status and the response in the payload of a reply, in any order of the keys.
fn status_and_response(payload: &str) -> Result<(Cow<'_, str>, &str), FrameDecodeError> {
    let (mut status, mut response) = (None, None);
    text::each_pair(&mut Scanner::new(payload), |key, scanner| {
        match key {
            "status" => status = Some(scanner.string()?),
            "response" => response = Some(scanner.value()?),
            _ => return scanner.value().map(drop),
        }
        Ok(())
    })?;
    status.zip(response).ok_or(FrameDecodeError::Shape("a reply has no status or no response"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::phoenix;

    #[test]
    fn requests_are_those_of_phoenix_js() {
        let mut out = Vec::new();
        join(Vsn::V2, "1", "rooms:lobby", r#"{"user":"7"}"#, &mut out);
        assert_eq!(out, br#"["1","1","rooms:lobby","phx_join",{"user":"7"}]"#);
        out.clear();
        leave(Vsn::V2, Some("1"), "4", "rooms:lobby", &mut out);
        assert_eq!(out, br#"["1","4","rooms:lobby","phx_leave",{}]"#);
        out.clear();
        heartbeat(Vsn::V2, "5", &mut out);
        assert_eq!(out, br#"[null,"5","phoenix","heartbeat",{}]"#);
        out.clear();
        heartbeat(Vsn::V1, "5", &mut out);
        assert_eq!(out, br#"{"topic":"phoenix","event":"heartbeat","payload":{},"ref":"5"}"#);
        out.clear();
        join(Vsn::V1, "1", "t", "{}", &mut out);
        assert_eq!(
            out,
            br#"{"topic":"t","event":"phx_join","payload":{},"ref":"1","join_ref":"1"}"#
        );
    }

    /// The test vector of the reference, §6.4.
    #[test]
    fn a_binary_push_is_that_of_the_reference() {
        let mut out = Vec::new();
        let data = PhoenixPayload::Binary(&[0x65, 0x66, 0x67]);
        assert_eq!(
            push(Vsn::V2, Some("12"), "123", "topic", "event", data, &mut out),
            Ok(FrameKind::Binary)
        );
        assert_eq!(out, b"\x00\x02\x03\x05\x0512123topicevent\x65\x66\x67");
        assert_eq!(
            push(Vsn::V1, None, "1", "t", "e", data, &mut out),
            Err(FrameEncodeError::BinaryInV1)
        );
    }

    #[test]
    fn the_payload_of_a_v2_message_is_borrowed_unscanned() {
        for (frame, want) in [
            (r#"[null,null,"t","e",{"a":"]"}]"#, r#"{"a":"]"}"#),
            (" [ null , null , \"t\" , \"e\" , [1] ] \n", "[1]"),
            (r#"[null,null,"t","e",not json]"#, "not json"),
        ] {
            let Ok(PhoenixClientEvent::Message(message)) = decode_text(Vsn::V2, frame) else {
                panic!("{frame}")
            };
            assert_eq!(message.payload, PhoenixPayload::Json(want));
        }
        assert!(decode_text(Vsn::V2, r#"[null,null,"t","e",{}"#).is_err());
        assert!(decode_text(Vsn::V2, r#"[null,null,"t","e""#).is_err());
    }

    #[test]
    fn replies_are_distinguished_from_messages() {
        for (vsn, frame) in [
            (Vsn::V2, r#"["1","2","t","phx_reply",{"status":"ok","response":{"a":1}}]"#),
            (
                Vsn::V2,
                concat!(
                    r#"["1","2","t","phx_reply", "#,
                    r#"{ "response" : {"a":1} , "x":[], "status" : "\u006fk" } ]"#
                ),
            ),
            (
                Vsn::V1,
                concat!(
                    r#"{"topic":"t","event":"phx_reply","payload":{"response":{"a":1},"#,
                    r#""status":"ok"},"ref":"2","join_ref":"1"}"#
                ),
            ),
        ] {
            let Ok(PhoenixClientEvent::Reply(reply)) = decode_text(vsn, frame) else {
                panic!("{frame}")
            };
            assert_eq!((reply.join_ref.as_deref(), reply.r#ref.as_deref()), (Some("1"), Some("2")));
            assert_eq!((&*reply.topic, &*reply.status), ("t", "ok"));
            assert_eq!(reply.response, PhoenixPayload::Json(r#"{"a":1}"#));
        }
        for payload in [
            "{}",
            "1",
            r#"{"status":"ok"}"#,
            r#"{"status":1,"response":{}}"#,
            r#"{"status":"ok","response":{}}x"#,
        ] {
            let frame = format!(r#"["1","2","t","phx_reply",{payload}]"#);
            assert!(decode_text(Vsn::V2, &frame).is_err(), "{frame}");
        }
    }

    #[test]
    fn servers_send_three_kinds_of_binary_frames() {
        let decoded = decode_binary(b"\x00\x02\x05\x0512topicevent!");
        let Ok(PhoenixClientEvent::Message(push)) = decoded else { panic!("{decoded:?}") };
        assert_eq!(
            (push.join_ref.as_deref(), push.r#ref, &*push.event),
            (Some("12"), None, "event")
        );
        let decoded = decode_binary(b"\x01\x02\x03\x05\x0212123topicok!");
        let Ok(PhoenixClientEvent::Reply(reply)) = decoded else { panic!("{decoded:?}") };
        assert_eq!(
            (reply.r#ref.as_deref(), &*reply.status, reply.response),
            (Some("123"), "ok", PhoenixPayload::Binary(b"!"))
        );
        let decoded = decode_binary(b"\x02\x05\x05topicevent!");
        let Ok(PhoenixClientEvent::Message(broadcast)) = decoded else { panic!("{decoded:?}") };
        assert_eq!((broadcast.join_ref, &*broadcast.topic), (None, "topic"));
        for frame in [&b""[..], b"\x03\x00\x00", b"\x02\x05\x05top", b"\x01\x00"] {
            assert!(decode_binary(frame).is_err());
        }
    }

    proptest! {
        #[test]
        fn the_server_decodes_what_the_client_encodes(
            v2 in any::<bool>(), join_ref in prop::option::of(".{1,9}"), r#ref in ".{1,9}",
            topic in ".*", event in ".*", data in prop::option::of(any::<Vec<u8>>()),
            json in r#"\{"a":"[^"\\\x00-\x1f]*"\}|1|\[\]"#,
        ) {
            let vsn = if v2 { Vsn::V2 } else { Vsn::V1 };
            let payload =
                data.as_deref().map_or(PhoenixPayload::Json(&json), PhoenixPayload::Binary);
            let mut out = Vec::new();
            match push(vsn, join_ref.as_deref(), &r#ref, &topic, &event, payload, &mut out) {
                Ok(kind) => {
                    let read = match kind {
                        FrameKind::Text => {
                            phoenix::decode_text(vsn, std::str::from_utf8(&out).unwrap())
                        }
                        FrameKind::Binary => phoenix::decode_binary(&out),
                    };
                    let (join_ref, r#ref) = (join_ref.map(Cow::from), Some(r#ref.into()));
                    let (topic, event) = (topic.into(), event.into());
                    let want = PhoenixMessage { join_ref, r#ref, topic, event, payload };
                    prop_assert_eq!(read, Ok(want));
                }
                Err(FrameEncodeError::BinaryInV1) => prop_assert!(!v2),
                Err(FrameEncodeError::FieldTooLong { bytes, .. }) => {
                    prop_assert!(bytes > 255 && v2);
                }
            }
        }

        #[test]
        fn the_client_decodes_what_the_server_encodes(
            v2 in any::<bool>(), join_ref in prop::option::of(".{1,9}"),
            r#ref in prop::option::of(".{1,9}"), topic in ".*", event in ".*", status in ".*",
            data in prop::option::of(any::<Vec<u8>>()),
        ) {
            let vsn = if v2 { Vsn::V2 } else { Vsn::V1 };
            let fits = [&topic, &event, &status].iter().all(|name| name.len() < 256);
            let data = data.filter(|_| v2 && fits);
            let json = PhoenixPayload::Json(r#"{"a":[",]}"]}"#);
            let payload = data.as_deref().map_or(json, PhoenixPayload::Binary);
            let (join_ref, r#ref) = (join_ref.as_deref(), r#ref.as_deref());
            let message = |join_ref| PhoenixClientEvent::Message(PhoenixMessage {
                join_ref, r#ref: None, topic: (&topic).into(), event: (&event).into(), payload,
            });
            let expected_ref = join_ref.filter(|_| v2).map(Cow::from);
            let mut out = Vec::new();
            let kind = phoenix::push(vsn, join_ref, &topic, &event, payload, &mut out).unwrap();
            prop_assert_eq!(decode(vsn, kind, &out), Ok(message(expected_ref.clone())));
            out.clear();
            let kind = phoenix::broadcast(vsn, &topic, &event, payload, &mut out).unwrap();
            prop_assert_eq!(decode(vsn, kind, &out), Ok(message(None)));
            out.clear();
            let kind =
                phoenix::reply(vsn, join_ref, r#ref, &topic, &status, payload, &mut out).unwrap();
            prop_assert_eq!(decode(vsn, kind, &out), Ok(PhoenixClientEvent::Reply(PushReply {
                join_ref: expected_ref, r#ref: r#ref.map(Cow::from), topic: (&topic).into(),
                status: (&status).into(), response: payload,
            })));
        }
    }

    fn decode(
        vsn: Vsn,
        kind: FrameKind,
        frame: &[u8],
    ) -> Result<PhoenixClientEvent<'_>, FrameDecodeError> {
        match kind {
            FrameKind::Text => decode_text(vsn, std::str::from_utf8(frame).unwrap()),
            FrameKind::Binary => decode_binary(frame),
        }
    }
}
