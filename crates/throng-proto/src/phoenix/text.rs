//! Text frames: V2's array of five and V1's object of four or five.

use std::borrow::Cow;

use super::json::{self, Scanner};
use super::{DecodeError, Kind, Message, Payload, Vsn};

/// Everything of a frame but its payload.
pub(super) struct Head<'a> {
    pub(super) join_ref: Option<&'a str>,
    pub(super) r#ref: Option<&'a str>,
    pub(super) topic: &'a str,
    pub(super) event: &'a str,
}

impl Head<'_> {
    /// Appends the frame that carries `payload`, which is JSON text.
    pub(super) fn around(&self, vsn: Vsn, payload: &str, out: &mut Vec<u8>) -> Kind {
        self.around_with(vsn, out, |out| out.extend_from_slice(payload.as_bytes()))
    }

    /// Appends the frame; `payload` appends what it carries. A V1 frame names its join_ref only where there is one.
    pub(super) fn around_with(
        &self,
        vsn: Vsn,
        out: &mut Vec<u8>,
        payload: impl FnOnce(&mut Vec<u8>),
    ) -> Kind {
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
        Kind::Text
    }
}

/// `[join_ref, ref, topic, event, payload]`; what follows the fifth is ignored, though it must be JSON.
pub(super) fn decode_v2(frame: &str) -> Result<Message<'_>, DecodeError> {
    let mut scanner = Scanner::new(frame);
    let (join_ref, r#ref, topic, event) = decode_v2_head(&mut scanner)?;
    let payload = Payload::Json(scanner.value()?);
    while scanner.take(b',') {
        scanner.value()?;
    }
    scanner.expect(b']', "expected , or ]")?;
    scanner.end()?;
    Ok(Message { join_ref, r#ref, topic, event, payload })
}

type V2Head<'a> = (Option<Cow<'a, str>>, Option<Cow<'a, str>>, Cow<'a, str>, Cow<'a, str>);

/// The four before the payload, with the comma behind each.
pub(super) fn decode_v2_head<'a>(scanner: &mut Scanner<'a>) -> Result<V2Head<'a>, DecodeError> {
    if !scanner.take(b'[') {
        return Err(DecodeError::Shape("it is no array"));
    }
    let comma = |scanner: &mut Scanner<'a>| {
        if scanner.take(b',') {
            Ok(())
        } else {
            Err(DecodeError::Shape("an array of fewer than five"))
        }
    };
    let join_ref = read_ref(scanner)?;
    comma(scanner)?;
    let r#ref = read_ref(scanner)?;
    comma(scanner)?;
    let topic = read_name(scanner, "a topic that is no string")?;
    comma(scanner)?;
    let event = read_name(scanner, "an event that is no string")?;
    comma(scanner)?;
    Ok((join_ref, r#ref, topic, event))
}

/// `{"topic", "event", "payload", "ref", "join_ref"?}` in any order, among any others; the last of a name counts.
pub(super) fn decode_v1(frame: &str) -> Result<Message<'_>, DecodeError> {
    let (mut join_ref, mut r#ref, mut topic, mut event, mut payload) =
        (None, None, None, None, None);
    each_pair(&mut Scanner::new(frame), |key, scanner| {
        match key {
            "topic" => topic = Some(read_name(scanner, "a topic that is no string")?),
            "event" => event = Some(read_name(scanner, "an event that is no string")?),
            "payload" => payload = Some(Payload::Json(scanner.value()?)),
            "ref" => r#ref = Some(read_ref(scanner)?),
            "join_ref" => join_ref = read_ref(scanner)?,
            _ => return scanner.value().map(drop),
        }
        Ok(())
    })?;
    match (topic, event, payload, r#ref) {
        (Some(topic), Some(event), Some(payload), Some(r#ref)) => {
            Ok(Message { join_ref, r#ref, topic, event, payload })
        }
        (None, ..) => Err(DecodeError::Shape("no topic")),
        (_, None, ..) => Err(DecodeError::Shape("no event")),
        (_, _, None, _) => Err(DecodeError::Shape("no payload")),
        (.., None) => Err(DecodeError::Shape("no ref")),
    }
}

/// Walks over a text that is one object; `read` takes the value of each key.
pub(super) fn each_pair<'a>(
    scanner: &mut Scanner<'a>,
    mut read: impl FnMut(&str, &mut Scanner<'a>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    if !scanner.take(b'{') {
        return Err(DecodeError::Shape("it is no object"));
    }
    let mut more = !scanner.take(b'}');
    while more {
        let key = scanner.string()?;
        scanner.expect(b':', "expected :")?;
        read(&key, scanner)?;
        more = scanner.take(b',');
        if !more {
            scanner.expect(b'}', "expected , or }")?;
        }
    }
    scanner.end()
}

fn read_name<'a>(
    scanner: &mut Scanner<'a>,
    what: &'static str,
) -> Result<Cow<'a, str>, DecodeError> {
    scanner.skip_space();
    if scanner.peek() == Some(b'"') { scanner.string() } else { Err(DecodeError::Shape(what)) }
}

/// A string, a number (as it is written) or null.
fn read_ref<'a>(scanner: &mut Scanner<'a>) -> Result<Option<Cow<'a, str>>, DecodeError> {
    scanner.skip_space();
    match scanner.peek() {
        Some(b'"') => scanner.string().map(Some),
        Some(b'-' | b'0'..=b'9') => scanner.value().map(|number| Some(Cow::Borrowed(number))),
        Some(b'n') => scanner.value().map(|_| None),
        _ => Err(DecodeError::Shape("a ref that is no string, number or null")),
    }
}

fn write_ref(r#ref: Option<&str>, out: &mut Vec<u8>) {
    match r#ref {
        Some(r#ref) => json::write_string(r#ref, out),
        None => out.extend_from_slice(b"null"),
    }
}
