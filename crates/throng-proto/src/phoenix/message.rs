//! A message that borrows the frame that it arrived in.

use std::borrow::Cow;

/// A decoded message. Its strings are borrowed unless they contain escapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhoenixMessage<'a> {
    /// The ref of the join that created the channel. A client sends it with every later push; V1
    /// clients may omit it.
    pub join_ref: Option<Cow<'a, str>>,
    /// The sender's number for this message, which the reply repeats. A server's own pushes and
    /// broadcasts have none.
    pub r#ref: Option<Cow<'a, str>>,
    /// The topic of the channel.
    pub topic: Cow<'a, str>,
    /// The event; some names are reserved: see [`super::names`].
    pub event: Cow<'a, str>,
    /// The payload.
    pub payload: PhoenixPayload<'a>,
}

/// The payload of a message. The codec passes it through unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhoenixPayload<'a> {
    /// JSON text, unchanged.
    Json(&'a str),
    /// Bytes, which require a binary frame.
    Binary(&'a [u8]),
}

impl PhoenixPayload<'_> {
    /// An empty JSON object.
    pub const EMPTY: PhoenixPayload<'static> = PhoenixPayload::Json("{}");
}

/// The kind of WebSocket message that carries an encoded frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A text message: the appended bytes are UTF-8.
    Text,
    /// A binary message.
    Binary,
}
