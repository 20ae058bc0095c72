//! A broadcast: the value that travels between cores, and its frames.

use std::sync::Arc;

use throng_proto::phoenix::{self, FrameKind, PhoenixPayload, Vsn, json, names};
use throng_proto::websocket::{Deflater, encode_deflated, encode_frame};
use throng_pubsub::presence::Diff;
use throng_pubsub::{Dialect, Publication};

use super::client::Client;
use super::core_state::CoreState;
use super::frame::{self, opcode};
use super::longpoll::inbox::{Entry, Text};
use super::longpoll::session;

/// The body of a publication; the publication has the topic.
pub(crate) struct Broadcast {
    event: Box<str>,
    payload: Owned,
}

enum Owned {
    Json(Box<str>),
    Binary(Box<[u8]>),
    Presence(Arc<Diff>),
}

impl Broadcast {
    pub(crate) fn new(event: &str, payload: PhoenixPayload<'_>) -> Self {
        let payload = match payload {
            PhoenixPayload::Json(json) => Owned::Json(json.into()),
            PhoenixPayload::Binary(data) => Owned::Binary(data.into()),
        };
        Self { event: event.into(), payload }
    }

    /// Makes a publication of it for `topic`. Queues count its event and its payload.
    pub(crate) fn publication(self, topic: impl Into<Arc<str>>) -> Publication {
        let payload = match self.payload() {
            PhoenixPayload::Json(json) => json.len(),
            PhoenixPayload::Binary(data) => data.len(),
        };
        let bytes = self.event.len() + payload;
        Publication::new(topic, self).with_body_bytes(bytes)
    }

    /// Appends the form in which it crosses to other nodes. Returns false for presence, which
    /// crosses in its own way.
    pub(crate) fn encode_shared(&self, out: &mut Vec<u8>) -> bool {
        let (kind, payload) = match &self.payload {
            Owned::Json(json) => (0, json.as_bytes()),
            Owned::Binary(data) => (1, &data[..]),
            Owned::Presence(_) => return false,
        };
        out.push(kind);
        out.extend_from_slice(&(self.event.len() as u32).to_le_bytes());
        out.extend_from_slice(self.event.as_bytes());
        out.extend_from_slice(payload);
        true
    }

    /// Reads a broadcast of another node.
    pub(crate) fn decode_shared(body: &[u8]) -> Option<Self> {
        let (kind, rest) = body.split_first()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (event, payload) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        let payload = match kind {
            0 => PhoenixPayload::Json(str::from_utf8(payload).ok()?),
            1 => PhoenixPayload::Binary(payload),
            _ => return None,
        };
        Some(Self::new(str::from_utf8(event).ok()?, payload))
    }

    /// Makes a `presence_diff`.
    pub(crate) fn presence(diff: &Arc<Diff>) -> Self {
        Self { event: names::PRESENCE_DIFF.into(), payload: Owned::Presence(Arc::clone(diff)) }
    }

    pub(crate) fn event(&self) -> &str {
        &self.event
    }

    pub(crate) fn payload(&self) -> PhoenixPayload<'_> {
        match &self.payload {
            Owned::Json(json) => PhoenixPayload::Json(json),
            Owned::Binary(data) => PhoenixPayload::Binary(data),
            Owned::Presence(diff) => PhoenixPayload::Json(diff.payload()),
        }
    }

    /// Appends the message without a WebSocket frame. Returns `None` if it cannot be written:
    /// binary in V1.
    pub(crate) fn encode(&self, vsn: Vsn, topic: &str, out: &mut Vec<u8>) -> Option<FrameKind> {
        phoenix::broadcast(vsn, topic, &self.event, self.payload(), out).ok()
    }
}

/// Sends a broadcast to one client, in the frame that all clients of its dialect share.
pub(crate) fn send_to(
    conn: &mut Client<'_>,
    core: &mut CoreState,
    vsn: Vsn,
    publication: &Publication,
) {
    let is_poll = conn.state().is_poll();
    let spoken = if is_poll {
        poll_dialect(vsn)
    } else if !conn.protocol().is_open() {
        return;
    } else {
        dialect(vsn, conn.protocol().is_deflated())
    };
    let CoreState { frame, deflater, .. } = core;
    let rendered =
        publication.frame(spoken, |out| render(publication, spoken, frame, deflater, out));
    if !is_poll {
        conn.send(rendered);
    } else if !rendered.is_empty() {
        session::keep(conn, Entry::Text(Text::Shared(Arc::clone(rendered))));
    }
    frame::shrink(frame);
}

/// Returns the hub's dialect of a WebSocket.
pub(crate) fn dialect(vsn: Vsn, deflated: bool) -> Dialect {
    Dialect::new(u8::from(vsn == Vsn::V2) | u8::from(deflated) << 1)
}

/// Returns the dialect of long-poll sessions: a message is a JSON string, as an answer contains it.
fn poll_dialect(vsn: Vsn) -> Dialect {
    Dialect::new(u8::from(vsn == Vsn::V2) | 1 << 2)
}

/// Appends the frame, or the JSON string, that all clients of the dialect `spoken` receive. Appends
/// nothing if the broadcast cannot be written: binary in V1 and in a long-poll's answer.
pub(crate) fn render(
    publication: &Publication,
    spoken: Dialect,
    message: &mut Vec<u8>,
    deflater: &mut Deflater,
    out: &mut Vec<u8>,
) {
    let Some(broadcast) = publication.body::<Broadcast>() else { return };
    for vsn in [Vsn::V1, Vsn::V2] {
        let (plain, deflated, poll) = (dialect(vsn, false), dialect(vsn, true), poll_dialect(vsn));
        if ![plain, deflated, poll].contains(&spoken) {
            continue;
        }
        message.clear();
        let Some(kind) = broadcast.encode(vsn, publication.topic(), message) else { return };
        if spoken == deflated {
            encode_deflated(opcode(kind), message, deflater, out);
        } else if spoken == plain {
            encode_frame(opcode(kind), message, out);
        } else if let (FrameKind::Text, Ok(text)) = (kind, str::from_utf8(message)) {
            json::write_string(text, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use throng_base::Instant;
    use throng_pubsub::presence::Presence;

    use super::*;

    #[test]
    fn a_broadcast_crosses_as_it_is() {
        for payload in [PhoenixPayload::Json(r#"{"a":1}"#), PhoenixPayload::Binary(&[0, 255])] {
            let mut bytes = Vec::new();
            assert!(Broadcast::new("new_msg", payload).encode_shared(&mut bytes));
            let read = Broadcast::decode_shared(&bytes).unwrap();
            assert_eq!((read.event(), read.payload()), ("new_msg", payload));
            for end in 0..12 {
                assert!(Broadcast::decode_shared(&bytes[..end]).is_none(), "{end}");
            }
        }
        assert!(Broadcast::decode_shared(&[2, 0, 0, 0, 0]).is_none());
    }

    #[test]
    fn queues_count_the_event_and_the_payload_of_every_broadcast() {
        let of_nothing = Publication::new("t", ()).weight();
        let broadcast = Broadcast::new("said", PhoenixPayload::Json(r#"{"a":1}"#)).publication("t");
        assert_eq!(broadcast.weight(), of_nothing + 4 + 7);
        let mut presence = Presence::new(0, 0);
        let meta = format!(r#"{{"text":"{}"}}"#, "x".repeat(1_000));
        presence.track(Instant::ZERO, 1, "t", "ann", &meta).unwrap();
        let diff = presence.drain().next().unwrap();
        assert!(Broadcast::presence(&diff).publication("t").weight() > of_nothing + 1_000);
    }
}
