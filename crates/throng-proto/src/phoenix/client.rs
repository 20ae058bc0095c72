//! The client's side, as phoenix.js speaks it: requests encoded, and a decoder for a client that hears millions of messages.

use std::borrow::Cow;

use super::json::Scanner;
use super::text::{self, Head};
use super::{DecodeError, EncodeError, Kind, Message, Payload, Vsn, binary, names};

/// What a client hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard<'a> {
    /// The answer to one of its own pushes, joins, leaves or heartbeats.
    Reply(Reply<'a>),
    /// Everything else: pushes, broadcasts, and `phx_close` and `phx_error`, whose ref is their join_ref.
    Message(Message<'a>),
}

/// The answer to the push whose ref it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The channel's, unless it is no channel's answer (heartbeats, unmatched topics) or the version is V1.
    pub join_ref: Option<Cow<'a, str>>,
    /// The answered push's.
    pub r#ref: Option<Cow<'a, str>>,
    /// The answered push's.
    pub topic: Cow<'a, str>,
    /// `ok`, `error` or the application's own word.
    pub status: Cow<'a, str>,
    /// What it carries.
    pub response: Payload<'a>,
}

/// Decodes a server's text frame. It allocates only where a name is written with escapes.
///
/// V2's payload is not even scanned, it is what lies before the frame's last bracket: a server is trusted to send JSON. Replies are
/// scanned whole, for their status; so is all of V1.
pub fn decode_text(vsn: Vsn, frame: &str) -> Result<Heard<'_>, DecodeError> {
    let message = match vsn {
        Vsn::V1 => text::decode_v1(frame)?,
        Vsn::V2 => {
            let mut scanner = Scanner::new(frame);
            let (join_ref, r#ref, topic, event) = text::decode_v2_head(&mut scanner)?;
            let Some(payload) = scanner.rest().trim_ascii().strip_suffix(']') else {
                return Err(DecodeError::Shape("an array without an end"));
            };
            Message {
                join_ref,
                r#ref,
                topic,
                event,
                payload: Payload::Json(payload.trim_ascii_end()),
            }
        }
    };
    match message.payload {
        Payload::Json(payload) if message.event == names::REPLY => {
            let (status, response) = status_and_response(payload)?;
            let Message { join_ref, r#ref, topic, .. } = message;
            Ok(Heard::Reply(Reply {
                join_ref,
                r#ref,
                topic,
                status,
                response: Payload::Json(response),
            }))
        }
        _ => Ok(Heard::Message(message)),
    }
}

/// Decodes a server's binary frame (V2): a push, a reply or a broadcast. Empty refs count as none.
pub fn decode_binary(frame: &[u8]) -> Result<Heard<'_>, DecodeError> {
    let Some((kind, rest)) = frame.split_first() else {
        return Err(DecodeError::Binary("it is empty"));
    };
    let message = |join_ref, topic, event, data| {
        let (topic, event) = (Cow::Borrowed(topic), Cow::Borrowed(event));
        Heard::Message(Message {
            join_ref,
            r#ref: None,
            topic,
            event,
            payload: Payload::Binary(data),
        })
    };
    match *kind {
        binary::PUSH => {
            let ([join_ref, topic, event], data) = binary::decode(rest)?;
            Ok(message(binary::present(join_ref), topic, event, data))
        }
        binary::REPLY => {
            let ([join_ref, r#ref, topic, status], data) = binary::decode(rest)?;
            Ok(Heard::Reply(Reply {
                join_ref: binary::present(join_ref),
                r#ref: binary::present(r#ref),
                topic: Cow::Borrowed(topic),
                status: Cow::Borrowed(status),
                response: Payload::Binary(data),
            }))
        }
        binary::BROADCAST => {
            let ([topic, event], data) = binary::decode(rest)?;
            Ok(message(None, topic, event, data))
        }
        _ => Err(DecodeError::Binary("servers send no frames of this kind")),
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
    payload: Payload<'_>,
    out: &mut Vec<u8>,
) -> Result<Kind, EncodeError> {
    match (vsn, payload) {
        (_, Payload::Json(json)) => {
            Ok(Head { join_ref, r#ref: Some(r#ref), topic, event }.around(vsn, json, out))
        }
        (Vsn::V2, Payload::Binary(data)) => {
            let names = [
                ("join_ref", join_ref.unwrap_or("")),
                ("ref", r#ref),
                ("topic", topic),
                ("event", event),
            ];
            binary::encode(binary::PUSH, names, data, out)
        }
        (Vsn::V1, Payload::Binary(_)) => Err(EncodeError::BinaryInV1),
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
fn status_and_response(payload: &str) -> Result<(Cow<'_, str>, &str), DecodeError> {
    let (mut status, mut response) = (None, None);
    text::each_pair(&mut Scanner::new(payload), |key, scanner| {
        match key {
            "status" => status = Some(scanner.string()?),
            "response" => response = Some(scanner.value()?),
            _ => return scanner.value().map(drop),
        }
        Ok(())
    })?;
    status.zip(response).ok_or(DecodeError::Shape("a reply without status or response"))
}
