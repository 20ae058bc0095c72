//! Text frames: V2's array of five elements and V1's object of four or five keys.

use std::borrow::Cow;

use super::json::{self, Scanner};
use super::{FrameDecodeError, FrameKind, PhoenixMessage, PhoenixPayload, Vsn};

/// The parts of a frame before its payload.
pub(super) struct Head<'a> {
    pub(super) join_ref: Option<&'a str>,
    pub(super) r#ref: Option<&'a str>,
    pub(super) topic: &'a str,
    pub(super) event: &'a str,
}

impl Head<'_> {
    /// Appends the frame with `payload`, which is JSON text.
    pub(super) fn write(&self, vsn: Vsn, payload: &str, out: &mut Vec<u8>) -> FrameKind {
        self.write_with(vsn, out, |out| out.extend_from_slice(payload.as_bytes()))
    }

    /// Appends the frame; the closure `payload` appends the payload. A V1 frame has a join_ref only
    /// if there is one.
    pub(super) fn write_with(
        &self,
        vsn: Vsn,
        out: &mut Vec<u8>,
        payload: impl FnOnce(&mut Vec<u8>),
    ) -> FrameKind {
        match vsn {
            Vsn::V2 => {
                out.push(b'[');
                write_ref(self.join_ref, out);
                out.push(b',');
                write_ref(self.r#ref, out);
                out.push(b',');
                json::write_string(self.topic, out);
                out.push(b',');
                json::write_string(self.event, out);
                out.push(b',');
                payload(out);
                out.push(b']');
            }
            Vsn::V1 => {
                out.extend_from_slice(b"{\"topic\":");
                json::write_string(self.topic, out);
                out.extend_from_slice(b",\"event\":");
                json::write_string(self.event, out);
                out.extend_from_slice(b",\"payload\":");
                payload(out);
                out.extend_from_slice(b",\"ref\":");
                write_ref(self.r#ref, out);
                if self.join_ref.is_some() {
                    out.extend_from_slice(b",\"join_ref\":");
                    write_ref(self.join_ref, out);
                }
                out.push(b'}');
            }
        }
        FrameKind::Text
    }
}

/// Decodes `[join_ref, ref, topic, event, payload]`. Further elements must be JSON and are ignored.
pub(super) fn decode_v2(frame: &str) -> Result<PhoenixMessage<'_>, FrameDecodeError> {
    let mut scanner = Scanner::new(frame);
    let fewer = FrameDecodeError::Shape("the array has fewer than five elements");
    let comma = |scanner: &mut Scanner<'_>| scanner.consume(b',').then_some(()).ok_or(fewer);
    if !scanner.consume(b'[') {
        return Err(FrameDecodeError::Shape("the text is not an array"));
    }
    let join_ref = read_ref(&mut scanner)?;
    comma(&mut scanner)?;
    let r#ref = read_ref(&mut scanner)?;
    comma(&mut scanner)?;
    let topic = read_name(&mut scanner, "the topic is not a string")?;
    comma(&mut scanner)?;
    let event = read_name(&mut scanner, "the event is not a string")?;
    comma(&mut scanner)?;
    let payload = PhoenixPayload::Json(scanner.value()?);
    while scanner.consume(b',') {
        scanner.value()?;
    }
    scanner.expect(b']', "expected , or ]")?;
    scanner.end()?;
    Ok(PhoenixMessage { join_ref, r#ref, topic, event, payload })
}

/// The values of a V1 frame, as JSON texts. A client takes a frame that lacks some of them.
#[derive(Default)]
pub(super) struct V1Fields<'a> {
    pub(super) join_ref: Option<&'a str>,
    pub(super) r#ref: Option<&'a str>,
    topic: Option<&'a str>,
    event: Option<&'a str>,
    pub(super) payload: Option<&'a str>,
}

impl<'a> V1Fields<'a> {
    /// Reads `{"topic", "event", "payload", "ref", "join_ref"?}` in any order, among other keys. If
    /// a key is repeated, the last value counts, as in a map.
    pub(super) fn read(frame: &'a str) -> Result<Self, FrameDecodeError> {
        let mut fields = Self::default();
        each_pair(&mut Scanner::new(frame), |key, scanner| {
            let value = Some(scanner.value()?);
            match key {
                "topic" => fields.topic = value,
                "event" => fields.event = value,
                "payload" => fields.payload = value,
                "ref" => fields.r#ref = value,
                "join_ref" => fields.join_ref = value,
                _ => {}
            }
            Ok(())
        })?;
        Ok(fields)
    }

    /// Returns the topic and the event, without which a frame is no message.
    pub(super) fn names(&self) -> Result<(Cow<'a, str>, Cow<'a, str>), FrameDecodeError> {
        let topic = self.topic.ok_or(FrameDecodeError::Shape("the object has no topic"))?;
        let event = self.event.ok_or(FrameDecodeError::Shape("the object has no event"))?;
        Ok((
            read_name(&mut Scanner::new(topic), "the topic is not a string")?,
            read_name(&mut Scanner::new(event), "the event is not a string")?,
        ))
    }
}

/// Decodes a V1 frame as a server does: only `join_ref` may be missing.
pub(super) fn decode_v1(frame: &str) -> Result<PhoenixMessage<'_>, FrameDecodeError> {
    let fields = V1Fields::read(frame)?;
    let (topic, event) = fields.names()?;
    let payload = fields.payload.ok_or(FrameDecodeError::Shape("the object has no payload"))?;
    let r#ref = fields.r#ref.ok_or(FrameDecodeError::Shape("the object has no ref"))?;
    let read = |text| read_ref(&mut Scanner::new(text));
    Ok(PhoenixMessage {
        topic,
        event,
        payload: PhoenixPayload::Json(payload),
        r#ref: read(r#ref)?,
        join_ref: fields.join_ref.map_or(Ok(None), read)?,
    })
}

/// Walks over a text that is one object; the closure `read` takes the value of each key.
pub(super) fn each_pair<'a>(
    scanner: &mut Scanner<'a>,
    mut read: impl FnMut(&str, &mut Scanner<'a>) -> Result<(), FrameDecodeError>,
) -> Result<(), FrameDecodeError> {
    if !scanner.consume(b'{') {
        return Err(FrameDecodeError::Shape("the text is not an object"));
    }
    let mut more = !scanner.consume(b'}');
    while more {
        let key = scanner.string()?;
        scanner.expect(b':', "expected :")?;
        read(&key, scanner)?;
        more = scanner.consume(b',');
        if !more {
            scanner.expect(b'}', "expected , or }")?;
        }
    }
    scanner.end()
}

pub(super) fn read_name<'a>(
    scanner: &mut Scanner<'a>,
    what: &'static str,
) -> Result<Cow<'a, str>, FrameDecodeError> {
    scanner.skip_space();
    if scanner.peek() == Some(b'"') { scanner.string() } else { Err(FrameDecodeError::Shape(what)) }
}

/// Reads a ref: a string, a number (as written) or null.
fn read_ref<'a>(scanner: &mut Scanner<'a>) -> Result<Option<Cow<'a, str>>, FrameDecodeError> {
    scanner.skip_space();
    match scanner.peek() {
        Some(b'"') => scanner.string().map(Some),
        Some(b'-' | b'0'..=b'9') => scanner.value().map(|number| Some(Cow::Borrowed(number))),
        Some(b'n') => scanner.value().map(|_| None),
        _ => Err(FrameDecodeError::Shape("a ref is not a string, a number or null")),
    }
}

fn write_ref(r#ref: Option<&str>, out: &mut Vec<u8>) {
    match r#ref {
        Some(r#ref) => json::write_string(r#ref, out),
        None => out.extend_from_slice(b"null"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        decoded: Result<PhoenixMessage<'_>, FrameDecodeError>,
        want: [Option<&str>; 2],
        rest: [&str; 3],
    ) {
        let message = decoded.unwrap();
        assert_eq!([message.join_ref.as_deref(), message.r#ref.as_deref()], want);
        assert_eq!(PhoenixPayload::Json(rest[2]), message.payload);
        assert_eq!([&*message.topic, &*message.event], rest[..2]);
    }

    #[test]
    fn v2_frames_are_decoded() {
        for (frame, refs, rest) in [
            (r#"["1","2","t","e",{"a":[1]}]"#, [Some("1"), Some("2")], ["t", "e", r#"{"a":[1]}"#]),
            (r#"[null,null,"t","e",null]"#, [None, None], ["t", "e", "null"]),
            (r#"[1,-2.5,"","", "text" ]"#, [Some("1"), Some("-2.5")], ["", "", r#""text""#]),
            (
                " [ \"1\" , \"2\"\t,\r\n\"t\" , \"e\" , { } ] ",
                [Some("1"), Some("2")],
                ["t", "e", "{ }"],
            ),
            (r#"[null,"2","t","e",[],1,{"x":2},"more"]"#, [None, Some("2")], ["t", "e", "[]"]),
            (
                r#"["\u0031",null,"\u0041\n\ud83d\ude00","phx\u005fjoin",1]"#,
                [Some("1"), None],
                ["A\n😀", "phx_join", "1"],
            ),
        ] {
            check(decode_v2(frame), refs, rest);
        }
    }

    #[test]
    fn v1_frames_are_decoded() {
        for (frame, refs, rest) in [
            (
                r#"{"topic":"t","event":"e","payload":{},"ref":"1"}"#,
                [None, Some("1")],
                ["t", "e", "{}"],
            ),
            (
                r#"{"ref":null,"payload":[],"event":"e","topic":"t","join_ref":"7"}"#,
                [Some("7"), None],
                ["t", "e", "[]"],
            ),
            (
                r#"{"topic":"t","x":[{}],"event":"e","payload":1,"ref":2,"y":null}"#,
                [None, Some("2")],
                ["t", "e", "1"],
            ),
            (
                r#" { "\u0074opic" : "t" , "event":"\/","payload": 0 ,"ref":"" } "#,
                [None, Some("")],
                ["t", "/", "0"],
            ),
        ] {
            check(decode_v1(frame), refs, rest);
        }
    }

    #[test]
    fn the_last_of_a_repeated_key_counts() {
        let frame = r#"{"topic":{},"event":"e","payload":1,"ref":[],"topic":"t","ref":"1"}"#;
        check(decode_v1(frame), [None, Some("1")], ["t", "e", "1"]);
        let frame = concat!(
            r#"{"topic":"a","ref":"1","topic":"b","event":"e","payload":1,"payload":2,"#,
            r#""ref":null,"join_ref":"3","join_ref":null}"#
        );
        check(decode_v1(frame), [None, None], ["b", "e", "2"]);
    }

    /// The frame that the Phoenix article sends with tsung.
    #[test]
    fn spaces_after_commas_are_ignored() {
        let frame =
            r#"{"topic":"rooms:lobby", "event":"phx_join", "payload": {"user":"7"}, "ref":"1"}"#;
        check(decode_v1(frame), [None, Some("1")], ["rooms:lobby", "phx_join", r#"{"user":"7"}"#]);
    }

    #[test]
    fn strings_without_escapes_are_borrowed() {
        let message = decode_v2(r#"["1","2","topic","event",{"x":"\n"}]"#).unwrap();
        let borrowed = |text: &Cow<'_, str>| matches!(text, Cow::Borrowed(_));
        assert!(borrowed(&message.topic) && borrowed(&message.event));
        assert!(
            message.join_ref.as_ref().is_some_and(borrowed)
                && message.r#ref.as_ref().is_some_and(borrowed)
        );
    }

    #[test]
    fn frames_that_are_not_messages_are_refused() {
        for frame in [
            "",
            "null",
            "1",
            "{}",
            "[]",
            "[null]",
            r#"[null,null,"t","e"]"#,
            r#"[null,null,"t"]"#,
            r#"[null,null,"t","e",]"#,
            r#"[null,null,"t","e",{}"#,
            r#"[null,null,"t","e",{}]]"#,
            r#"[null,null,"t","e",{},]"#,
            r#"[null,null,"t","e",{}} "#,
            r#"[null,null,null,"e",{}]"#,
            r#"[null,null,1,"e",{}]"#,
            r#"[null,null,"t",{},{}]"#,
            r#"[true,null,"t","e",{}]"#,
            r#"[null,[],"t","e",{}]"#,
            r#"[null,null,"t","e",{} {}]"#,
            r#"[null null,"t","e",{}]"#,
            r#"[nul,null,"t","e",{}]"#,
            r#"[null,null,"\q","e",{}]"#,
            r#"[null,null,"t","e",tru]"#,
            r#"[null,null,"t","e",{"a"}]"#,
            "[null,null,\"t\0\",\"e\",1]",
        ] {
            assert!(decode_v2(frame).is_err(), "{frame}");
        }
        for frame in [
            "",
            "null",
            "[]",
            "{}",
            r#"{"topic":"t","event":"e","payload":{}}"#,
            r#"{"topic":"t","event":"e","ref":null}"#,
            r#"{"topic":"t","payload":{},"ref":null}"#,
            r#"{"event":"e","payload":{},"ref":null}"#,
            r#"{"topic":1,"event":"e","payload":{},"ref":null}"#,
            r#"{"topic":"t","event":null,"payload":{},"ref":null}"#,
            r#"{"topic":"t","event":"e","payload":{},"ref":{}}"#,
            r#"{"topic":"t","event":"e","payload":{},"ref":null"#,
            r#"{"topic":"t","event":"e","payload":{},"ref":null,}"#,
            r#"{"topic":"t","event":"e","payload":{},"ref":null}}"#,
            r#"{"topic":"t","event":"e","payload":{},"ref":null,"x"}"#,
            r#"{"topic":"t","event":"e","payload":{},"ref":null,"x":y}"#,
        ] {
            assert!(decode_v1(frame).is_err(), "{frame}");
        }
    }

    #[test]
    fn a_topic_of_a_megabyte_is_a_topic() {
        // Miri runs less.
        let topic = "é".repeat(if cfg!(miri) { 1 << 10 } else { 1 << 19 });
        let frame = format!(r#"[null,"1","{topic}","phx_join",{{}}]"#);
        check(decode_v2(&frame), [None, Some("1")], [&topic, "phx_join", "{}"]);
        let frame = format!(r#"{{"topic":"{topic}","event":"e","payload":{{}},"ref":null}}"#);
        check(decode_v1(&frame), [None, None], [&topic, "e", "{}"]);
    }

    #[test]
    fn json_nested_10_000_deep_is_passed_through() {
        // Miri runs less.
        let depth = if cfg!(miri) { 300 } else { 10_000 };
        let payload = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let frame = format!(r#"[null,"1","t","e",{payload}]"#);
        check(decode_v2(&frame), [None, Some("1")], ["t", "e", &payload]);
        let frame =
            format!(r#"{{"x":{payload},"topic":"t","event":"e","payload":{payload},"ref":null}}"#);
        check(decode_v1(&frame), [None, None], ["t", "e", &payload]);
        assert!(decode_v2(&"[".repeat(depth)).is_err());
        assert!(decode_v1(&"{\"a\":".repeat(depth)).is_err());
    }
}
