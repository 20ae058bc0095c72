//! The client's side, as phoenix.js speaks it: requests encoded, and a decoder for a client that hears millions of messages.

use std::borrow::Cow;

use super::json::Scanner;
use super::text::{self, Head};
use super::{
    FrameDecodeError, FrameEncodeError, FrameKind, PhoenixMessage, PhoenixPayload, Vsn, binary,
    names,
};

/// What a client hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PhoenixClientEvent<'a> {
    /// The answer to one of its own pushes, joins, leaves or heartbeats.
    Reply(PushReply<'a>),
    /// Everything else: pushes, broadcasts, and `phx_close` and `phx_error`, whose ref is their join_ref.
    Message(PhoenixMessage<'a>),
}

/// The answer to the push whose ref it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushReply<'a> {
    /// The channel's, unless it is no channel's answer (heartbeats, unmatched topics) or the version is V1.
    pub join_ref: Option<Cow<'a, str>>,
    /// The answered push's.
    pub r#ref: Option<Cow<'a, str>>,
    /// The answered push's.
    pub topic: Cow<'a, str>,
    /// `ok`, `error` or the application's own word.
    pub status: Cow<'a, str>,
    /// What it carries.
    pub response: PhoenixPayload<'a>,
}

/// Decodes a server's text frame. It allocates only where a name is written with escapes.
///
/// V2's payload is not even scanned, it is what lies before the frame's last bracket: a server is trusted to send JSON. Replies are
/// scanned whole, for their status; so is all of V1.
pub fn decode_text(vsn: Vsn, frame: &str) -> Result<PhoenixClientEvent<'_>, FrameDecodeError> {
    let message = match vsn {
        Vsn::V1 => text::decode_v1(frame)?,
        Vsn::V2 => {
            let mut scanner = Scanner::new(frame);
            let (join_ref, r#ref, topic, event) = text::decode_v2_head(&mut scanner)?;
            let Some(payload) = scanner.rest().trim_ascii().strip_suffix(']') else {
                return Err(FrameDecodeError::Shape("an array without an end"));
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

/// Decodes a server's binary frame (V2): a push, a reply or a broadcast. Empty refs count as none.
pub fn decode_binary(frame: &[u8]) -> Result<PhoenixClientEvent<'_>, FrameDecodeError> {
    let Some((kind, rest)) = frame.split_first() else {
        return Err(FrameDecodeError::Binary("it is empty"));
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
            Ok(message(binary::present(join_ref), topic, event, data))
        }
        binary::REPLY => {
            let ([join_ref, r#ref, topic, status], data) = binary::decode(rest)?;
            Ok(PhoenixClientEvent::Reply(PushReply {
                join_ref: binary::present(join_ref),
                r#ref: binary::present(r#ref),
                topic: Cow::Borrowed(topic),
                status: Cow::Borrowed(status),
                response: PhoenixPayload::Binary(data),
            }))
        }
        binary::BROADCAST => {
            let ([topic, event], data) = binary::decode(rest)?;
            Ok(message(None, topic, event, data))
        }
        _ => Err(FrameDecodeError::Binary("servers send no frames of this kind")),
    }
}

/// Appends `phx_join`, whose ref becomes the channel's join_ref. `payload` is JSON text.
pub fn join(vsn: Vsn, r#ref: &str, topic: &str, payload: &str, out: &mut Vec<u8>) {
    Head { join_ref: Some(r#ref), r#ref: Some(r#ref), topic, event: names::JOIN }
        .around(vsn, payload, out);
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
            Ok(Head { join_ref, r#ref: Some(r#ref), topic, event }.around(vsn, json, out))
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
    Head { join_ref, r#ref: Some(r#ref), topic, event: names::LEAVE }.around(vsn, "{}", out);
}

/// Appends a heartbeat.
pub fn heartbeat(vsn: Vsn, r#ref: &str, out: &mut Vec<u8>) {
    Head { join_ref: None, r#ref: Some(r#ref), topic: names::PHOENIX, event: names::HEARTBEAT }
        .around(vsn, "{}", out);
}

/// Takes a reply's payload apart, whatever the order of its keys.
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
    status.zip(response).ok_or(FrameDecodeError::Shape("a reply without status or response"))
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

    /// The vector of the reference, §6.4.
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
    fn the_payload_of_a_v2_message_is_lent_without_a_look() {
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
    fn replies_are_told_from_messages() {
        for (vsn, frame) in [
            (Vsn::V2, r#"["1","2","t","phx_reply",{"status":"ok","response":{"a":1}}]"#),
            (
                Vsn::V2,
                r#"["1","2","t","phx_reply", { "response" : {"a":1} , "x":[], "status" : "\u006fk" } ]"#,
            ),
            (
                Vsn::V1,
                r#"{"topic":"t","event":"phx_reply","payload":{"response":{"a":1},"status":"ok"},"ref":"2","join_ref":"1"}"#,
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
        let heard = decode_binary(b"\x00\x02\x05\x0512topicevent!");
        let Ok(PhoenixClientEvent::Message(push)) = heard else { panic!("{heard:?}") };
        assert_eq!(
            (push.join_ref.as_deref(), push.r#ref, &*push.event),
            (Some("12"), None, "event")
        );
        let heard = decode_binary(b"\x01\x02\x03\x05\x0212123topicok!");
        let Ok(PhoenixClientEvent::Reply(reply)) = heard else { panic!("{heard:?}") };
        assert_eq!(
            (reply.r#ref.as_deref(), &*reply.status, reply.response),
            (Some("123"), "ok", PhoenixPayload::Binary(b"!"))
        );
        let heard = decode_binary(b"\x02\x05\x05topicevent!");
        let Ok(PhoenixClientEvent::Message(broadcast)) = heard else { panic!("{heard:?}") };
        assert_eq!((broadcast.join_ref, &*broadcast.topic), (None, "topic"));
        for frame in [&b""[..], b"\x03\x00\x00", b"\x02\x05\x05top", b"\x01\x00"] {
            assert!(decode_binary(frame).is_err());
        }
    }

    proptest! {
        #[test]
        fn the_server_reads_what_the_client_writes(
            v2 in any::<bool>(), join_ref in prop::option::of(".{1,9}"), r#ref in ".{1,9}", topic in ".*", event in ".*",
            data in prop::option::of(any::<Vec<u8>>()), json in r#"\{"a":"[^"\\\x00-\x1f]*"\}|1|\[\]"#,
        ) {
            let vsn = if v2 { Vsn::V2 } else { Vsn::V1 };
            let payload = data.as_deref().map_or(PhoenixPayload::Json(&json), PhoenixPayload::Binary);
            let mut out = Vec::new();
            match push(vsn, join_ref.as_deref(), &r#ref, &topic, &event, payload, &mut out) {
                Ok(kind) => {
                    let read = match kind {
                        FrameKind::Text => phoenix::decode_text(vsn, std::str::from_utf8(&out).unwrap()),
                        FrameKind::Binary => phoenix::decode_binary(&out),
                    };
                    let (join_ref, r#ref) = (join_ref.map(Cow::from), Some(r#ref.into()));
                    let want = PhoenixMessage { join_ref, r#ref, topic: topic.into(), event: event.into(), payload };
                    prop_assert_eq!(read, Ok(want));
                }
                Err(FrameEncodeError::BinaryInV1) => prop_assert!(!v2),
                Err(FrameEncodeError::FieldTooLong { bytes, .. }) => prop_assert!(bytes > 255 && v2),
            }
        }

        #[test]
        fn the_client_hears_what_the_server_says(
            v2 in any::<bool>(), join_ref in prop::option::of(".{1,9}"), r#ref in prop::option::of(".{1,9}"), topic in ".*",
            event in ".*", status in ".*", data in prop::option::of(any::<Vec<u8>>()),
        ) {
            let vsn = if v2 { Vsn::V2 } else { Vsn::V1 };
            let data = data.filter(|_| v2 && topic.len() < 256 && event.len() < 256 && status.len() < 256);
            let payload = data.as_deref().map_or(PhoenixPayload::Json(r#"{"a":[",]}"]}"#), PhoenixPayload::Binary);
            let told = join_ref.clone().filter(|_| v2).map(Cow::from);
            let mut out = Vec::new();
            let kind = phoenix::push(vsn, join_ref.as_deref(), &topic, &event, payload, &mut out).unwrap();
            prop_assert_eq!(hear(vsn, kind, &out), Ok(PhoenixClientEvent::Message(PhoenixMessage {
                join_ref: told.clone(), r#ref: None, topic: (&topic).into(), event: (&event).into(), payload,
            })));
            out.clear();
            let kind = phoenix::broadcast(vsn, &topic, &event, payload, &mut out).unwrap();
            prop_assert_eq!(hear(vsn, kind, &out), Ok(PhoenixClientEvent::Message(PhoenixMessage {
                join_ref: None, r#ref: None, topic: (&topic).into(), event: (&event).into(), payload,
            })));
            out.clear();
            let kind = phoenix::reply(vsn, join_ref.as_deref(), r#ref.as_deref(), &topic, &status, payload, &mut out).unwrap();
            prop_assert_eq!(hear(vsn, kind, &out), Ok(PhoenixClientEvent::Reply(PushReply {
                join_ref: told, r#ref: r#ref.as_deref().map(Cow::from), topic: (&topic).into(), status: (&status).into(), response: payload,
            })));
        }
    }

    fn hear(
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
