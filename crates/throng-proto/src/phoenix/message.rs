//! One message, borrowed from the frame that it came in.

use std::borrow::Cow;

/// What a frame says. Strings are borrowed unless they were written with escapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhoenixMessage<'a> {
    /// The ref of the join that made the channel; a client sends it with every later push, V1 clients may not.
    pub join_ref: Option<Cow<'a, str>>,
    /// The sender's number for this message, which a reply repeats; nothing for a server's own pushes and broadcasts.
    pub r#ref: Option<Cow<'a, str>>,
    /// The channel's name.
    pub topic: Cow<'a, str>,
    /// What happened, or what is asked for; some names are reserved: see [`super::names`].
    pub event: Cow<'a, str>,
    /// What it carries.
    pub payload: PhoenixPayload<'a>,
}

/// What a message carries: it is passed through, never taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhoenixPayload<'a> {
    /// JSON text, unchanged.
    Json(&'a str),
    /// Bytes, which make the frame that carries them a binary one.
    Binary(&'a [u8]),
}

impl PhoenixPayload<'_> {
    /// An empty JSON object.
    pub const EMPTY: PhoenixPayload<'static> = PhoenixPayload::Json("{}");
}

/// Which WebSocket message carries what an encoder appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A text message: the appended bytes are UTF-8.
    Text,
    /// A binary message.
    Binary,
}
