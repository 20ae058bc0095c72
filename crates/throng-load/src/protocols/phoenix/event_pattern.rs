//! An event of a channel that a `receive` waits for.

use std::borrow::Cow;

use throng_proto::phoenix::client::{self, PhoenixClientEvent};
use throng_proto::phoenix::{PhoenixMessage, PhoenixPayload, Vsn};

use crate::program::{IncomingMessage, JsonPattern, Template, Variable, VariableScope};

/// What an event of a channel must be.
#[derive(Clone, Debug)]
pub struct EventPattern {
    /// Name of the channel, which a user renders to the same text each time.
    pub topic: Template,
    /// Name of the event.
    pub event: Template,
    /// What the payload must contain; `None` for any payload.
    pub payload: Option<JsonPattern>,
}

impl EventPattern {
    /// Returns the payload of a frame that is such an event. Uses `scratch` to write variables out.
    pub(crate) fn payload_of<'m>(
        &self,
        frame: IncomingMessage<'m>,
        scope: VariableScope<'_>,
        scratch: &mut Vec<u8>,
    ) -> Option<IncomingMessage<'m>> {
        let (topic, event, payload) = parts(frame)?;
        let matches = self.topic.is_rendered(topic.as_bytes(), scope.of_topic(), scratch)
            && self.event.is_rendered(event.as_bytes(), scope, scratch)
            && match (&self.payload, payload) {
                (None, _) => true,
                (Some(pattern), IncomingMessage::Text(text)) => pattern.is_in(text, scope, scratch),
                (Some(_), IncomingMessage::Binary(_)) => false,
            };
        matches.then_some(payload)
    }

    /// Reports whether a part of one of its variables fits.
    pub(crate) fn uses(&self, is: &impl Fn(&Variable) -> bool) -> bool {
        let payload = self.payload.as_ref().is_some_and(|pattern| pattern.uses(is));
        payload || self.topic.uses(is) || self.event.uses(is)
    }

    /// Describes the event for people; `shown` formats bytes.
    pub(crate) fn describe(&self, shown: &impl Fn(&[u8]) -> String) -> String {
        let payload = self.payload.as_ref().map(|pattern| {
            let pattern = pattern.to_string();
            format!(" with {}", shown(pattern.as_bytes()))
        });
        let payload = payload.unwrap_or_default();
        let name = |template: &Template| shown(template.to_string().as_bytes());
        format!("the event {} of {}{payload}", name(&self.event), name(&self.topic))
    }
}

/// Returns the payload of the event that a frame is.
pub(crate) fn payload(frame: IncomingMessage<'_>) -> Option<IncomingMessage<'_>> {
    parts(frame).map(|(_, _, payload)| payload)
}

/// Returns the topic, the name and the payload of the event that a frame is.
pub(crate) fn parts(
    frame: IncomingMessage<'_>,
) -> Option<(Cow<'_, str>, Cow<'_, str>, IncomingMessage<'_>)> {
    let PhoenixMessage { topic, event, payload, .. } = decode(frame)?;
    let payload = match payload {
        PhoenixPayload::Json(text) => IncomingMessage::Text(text),
        PhoenixPayload::Binary(bytes) => IncomingMessage::Binary(bytes),
    };
    Some((topic, event, payload))
}

/// Decodes a frame that is no reply. A frame of version 1 is an object, one of version 2 a list.
fn decode(frame: IncomingMessage<'_>) -> Option<PhoenixMessage<'_>> {
    let decoded = match frame {
        IncomingMessage::Text(text) if text.starts_with('{') => client::decode_text(Vsn::V1, text),
        IncomingMessage::Text(text) => client::decode_text(Vsn::V2, text),
        IncomingMessage::Binary(bytes) => client::decode_binary(bytes),
    };
    match decoded {
        Ok(PhoenixClientEvent::Message(message)) => Some(message),
        Ok(PhoenixClientEvent::Reply(_) | PhoenixClientEvent::ChannelEnd(_)) | Err(_) => None,
    }
}
