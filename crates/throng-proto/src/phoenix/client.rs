//! The client's side, as phoenix.js speaks it: an encoder of requests, and a decoder for a client
//! that receives millions of messages.

mod requests;

use std::borrow::Cow;

use super::json::Scanner;
use super::text::{self, V1Fields};
use super::{Decimal, FrameDecodeError, PhoenixMessage, PhoenixPayload, Vsn, binary, names};

pub use requests::{heartbeat, join, leave, push};

/// A message from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PhoenixClientEvent<'a> {
    /// The reply to a push, join, leave or heartbeat of this client.
    Reply(PushReply<'a>),
    /// The end of a channel: `phx_close` or `phx_error`.
    ChannelEnd(ChannelEnd<'a>),
    /// Any other message: a push or a broadcast.
    Message(PhoenixMessage<'a>),
}

/// The end of a channel by the server, or by the client's own leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelEnd<'a> {
    /// True for `phx_error`, false for `phx_close`.
    pub is_crash: bool,
    /// The topic of the channel.
    pub topic: Cow<'a, str>,
    join_ref: Option<Cow<'a, str>>,
    /// The ref of a V1 message. In V2 it says nothing.
    v1_ref: Option<Cow<'a, str>>,
}

impl<'a> ChannelEnd<'a> {
    fn new(vsn: Vsn, message: PhoenixMessage<'a>) -> Self {
        let PhoenixMessage { join_ref, r#ref, topic, event, .. } = message;
        let v1_ref = r#ref.filter(|_| vsn == Vsn::V1);
        Self { is_crash: event == names::ERROR, topic, join_ref, v1_ref }
    }

    /// Reports whether the message has a join_ref, which is enough to know the channel.
    pub fn has_join_ref(&self) -> bool {
        self.join_ref.is_some()
    }

    /// Reports whether this is the end of the channel of the same topic that was joined with ref
    /// `join_ref`, as phoenix.js decides it.
    ///
    /// A join_ref must be that of the channel. Without one the ref is of no account: a server may
    /// send null, or the ref of a push. A V1 message never has a join_ref, so its ref is compared,
    /// as phoenix.js of 1.2 does: one from before the join is that of an earlier channel.
    pub fn ends(&self, join_ref: u64) -> bool {
        match (&self.join_ref, &self.v1_ref) {
            (Some(own), _) => *own == Decimal::new(join_ref).as_str(),
            (None, Some(own)) => !own.parse::<u64>().is_ok_and(|own| own < join_ref),
            (None, None) => true,
        }
    }
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

impl PushReply<'_> {
    /// Reports whether this is a reply in the channel of the same topic that was joined with ref
    /// `join_ref`. phoenix.js drops any other, even one with the ref of a push.
    pub fn is_of(&self, join_ref: u64) -> bool {
        self.join_ref.as_ref().is_none_or(|own| *own == Decimal::new(join_ref).as_str())
    }
}

/// Decodes a server's text frame, as leniently as phoenix.js. It allocates only if a name contains
/// escapes.
///
/// The payload of V2 is not scanned. It is the text before the last bracket of the frame, because a
/// client trusts the server to send JSON. Replies are scanned as a whole for their status, and so
/// is all of V1. A missing payload, and a missing response of a reply, are `null`.
pub fn decode_text(vsn: Vsn, frame: &str) -> Result<PhoenixClientEvent<'_>, FrameDecodeError> {
    let message = match vsn {
        Vsn::V1 => decode_v1(frame)?,
        Vsn::V2 => decode_v2(frame)?,
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
        _ => Ok(end_or_message(vsn, message)),
    }
}

fn end_or_message(vsn: Vsn, message: PhoenixMessage<'_>) -> PhoenixClientEvent<'_> {
    match &*message.event {
        names::ERROR | names::CLOSE => {
            PhoenixClientEvent::ChannelEnd(ChannelEnd::new(vsn, message))
        }
        _ => PhoenixClientEvent::Message(message),
    }
}

fn decode_v1(frame: &str) -> Result<PhoenixMessage<'_>, FrameDecodeError> {
    let fields = V1Fields::read(frame)?;
    let (topic, event) = fields.names()?;
    let read = |text| read_ref(&mut Scanner::new(text));
    Ok(PhoenixMessage {
        topic,
        event,
        payload: PhoenixPayload::Json(fields.payload.unwrap_or("null")),
        r#ref: fields.r#ref.map_or(Ok(None), read)?.map(ServerRef::number_or_text),
        join_ref: fields.join_ref.map_or(Ok(None), read)?.map(ServerRef::text),
    })
}

fn decode_v2(frame: &str) -> Result<PhoenixMessage<'_>, FrameDecodeError> {
    let mut scanner = Scanner::new(frame);
    let fewer = FrameDecodeError::Shape("the array has fewer than four elements");
    let comma = |scanner: &mut Scanner<'_>| scanner.consume(b',').then_some(()).ok_or(fewer);
    if !scanner.consume(b'[') {
        return Err(FrameDecodeError::Shape("the text is not an array"));
    }
    let join_ref = read_ref(&mut scanner)?.map(ServerRef::text);
    comma(&mut scanner)?;
    let r#ref = read_ref(&mut scanner)?.map(ServerRef::number_or_text);
    comma(&mut scanner)?;
    let topic = text::read_name(&mut scanner, "the topic is not a string")?;
    comma(&mut scanner)?;
    let event = text::read_name(&mut scanner, "the event is not a string")?;
    let has_payload = scanner.consume(b',');
    let rest = scanner.rest().trim_ascii().strip_suffix(']').map(str::trim_ascii);
    let payload = match rest {
        Some(payload) if has_payload => payload,
        Some("") => "null",
        _ => return Err(FrameDecodeError::Shape("the array has no end")),
    };
    Ok(PhoenixMessage { join_ref, r#ref, topic, event, payload: PhoenixPayload::Json(payload) })
}

/// A ref that JavaScript takes for true.
enum ServerRef<'a> {
    Text(Cow<'a, str>),
    Number(&'a str),
    Other,
}

impl<'a> ServerRef<'a> {
    /// Returns the ref of a reply, which phoenix.js turns into a text: a number is as good.
    fn number_or_text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => Cow::Borrowed(number),
            Self::Other => Cow::Borrowed(NO_REF),
        }
    }

    /// Returns a join_ref, which phoenix.js compares with its own text: a number differs from it.
    fn text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text,
            Self::Number(_) | Self::Other => Cow::Borrowed(NO_REF),
        }
    }
}

/// A ref that no client sends.
const NO_REF: &str = "";

/// Reads a ref. What JavaScript takes for false is none: null, "", 0, false.
fn read_ref<'a>(scanner: &mut Scanner<'a>) -> Result<Option<ServerRef<'a>>, FrameDecodeError> {
    scanner.skip_space();
    if scanner.peek() == Some(b'"') {
        return Ok(Some(scanner.string()?).filter(|text| !text.is_empty()).map(ServerRef::Text));
    }
    let value = scanner.value()?;
    Ok(match value.as_bytes() {
        b"null" | b"false" => None,
        [b'-' | b'0'..=b'9', ..] if value.parse() == Ok(0.0) => None,
        [b'-' | b'0'..=b'9', ..] => Some(ServerRef::Number(value)),
        _ => Some(ServerRef::Other),
    })
}

/// Decodes a server's binary frame (V2): a push, a reply or a broadcast. An empty ref means none.
pub fn decode_binary(frame: &[u8]) -> Result<PhoenixClientEvent<'_>, FrameDecodeError> {
    let Some((kind, rest)) = frame.split_first() else {
        return Err(FrameDecodeError::Binary("the frame is empty"));
    };
    let message = |join_ref, topic, event, data| {
        let (topic, event) = (Cow::Borrowed(topic), Cow::Borrowed(event));
        let payload = PhoenixPayload::Binary(data);
        end_or_message(Vsn::V2, PhoenixMessage { join_ref, r#ref: None, topic, event, payload })
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

/// Returns the status and the response in the payload of a reply, in any order of the keys. What
/// follows the payload in its array is ignored.
fn status_and_response(payload: &str) -> Result<(Cow<'_, str>, &str), FrameDecodeError> {
    let (mut status, mut response) = (None, "null");
    let read = text::each_pair(&mut Scanner::new(payload), |key, scanner| {
        match key {
            "status" => status = Some(scanner.string()?),
            "response" => response = scanner.value()?,
            _ => return scanner.value().map(drop),
        }
        Ok(())
    });
    if let Err(error) = read {
        let mut scanner = Scanner::new(payload);
        let first = scanner.value()?;
        return if scanner.consume(b',') { status_and_response(first) } else { Err(error) };
    }
    Ok((status.ok_or(FrameDecodeError::Shape("a reply has no status"))?, response))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::phoenix::{self, FrameEncodeError, FrameKind};

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
    fn what_a_message_lacks_is_null() {
        for (vsn, frame) in [
            (Vsn::V2, r#"[null,null,"t","e"]"#),
            (Vsn::V1, r#"{"topic":"t","event":"e"}"#),
            (Vsn::V1, r#"{"topic":"t","event":"e","ref":"","join_ref":0,"payload":null}"#),
            (Vsn::V2, r#"[false,"","t","e",null]"#),
        ] {
            let Ok(PhoenixClientEvent::Message(message)) = decode_text(vsn, frame) else {
                panic!("{frame}")
            };
            assert_eq!((message.join_ref, message.r#ref), (None, None), "{frame}");
            assert_eq!(message.payload, PhoenixPayload::Json("null"), "{frame}");
        }
        for frame in [
            r#"["1","2","t","phx_reply",{"status":"ok"}]"#,
            r#"["1",2,"t","phx_reply",{"status":"ok"},{"more":[]}]"#,
        ] {
            let Ok(PhoenixClientEvent::Reply(reply)) = decode_text(Vsn::V2, frame) else {
                panic!("{frame}")
            };
            assert_eq!((&*reply.status, reply.r#ref.as_deref()), ("ok", Some("2")));
            assert_eq!(reply.response, PhoenixPayload::Json("null"));
        }
    }

    /// What npm's `phoenix` makes of each message: `node/ends.test.js` of throng-cli writes it.
    #[test]
    fn channels_end_and_pushes_are_answered_as_in_every_release_of_phoenix_js() {
        let table = include_str!("../../tests/phoenix/npm_clients.json");
        let table: serde_json::Value = serde_json::from_str(table).unwrap();
        let cases = table["cases"].as_array().unwrap();
        assert!(cases.len() > 40, "{}", cases.len());
        for case in cases {
            let text = |name: &str| case[name].as_str().unwrap();
            let vsn = Vsn::from_query(Some(text("vsn"))).unwrap();
            assert_eq!(outcome(vsn, text("frame")), text("expected"), "{case}");
        }
    }

    /// Returns what a frame means for the channel `rooms:a`, joined with ref 3, and its push 4.
    fn outcome(vsn: Vsn, frame: &str) -> String {
        let Ok(event) = decode_text(vsn, frame) else { return "bad message".to_owned() };
        match event {
            PhoenixClientEvent::ChannelEnd(end) if end.topic == "rooms:a" && end.ends(3) => {
                if end.is_crash { "error" } else { "close" }.to_owned()
            }
            PhoenixClientEvent::Reply(reply) if reply.topic == "rooms:a" && reply.is_of(3) => {
                let PhoenixPayload::Json(response) = reply.response else { panic!("{reply:?}") };
                match reply.r#ref.as_deref() {
                    Some("4") => format!("reply {} {response}", reply.status),
                    _ => "nothing".to_owned(),
                }
            }
            _ => "nothing".to_owned(),
        }
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
            r#"{"response":{}}"#,
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
