//! What reaches a connection from elsewhere.

use std::sync::Arc;

use throng_pubsub::Publication;
use throng_pubsub::presence::Diff;

use super::channel::Info;
use super::longpoll::{Requester, SessionAnswer, SessionRequest, Text};

/// A message to a connection of a server of channels; an [`Address`](super::Address) makes one.
pub struct ChannelMessage(pub(crate) ChannelMessageKind);

pub(crate) enum ChannelMessageKind {
    /// For the channel of this topic, if it is still the one with this serial.
    Info { topic: Arc<str>, serial: u32, info: Info },
    /// For a long-poll session: what its client wants.
    Request(SessionRequest),
    /// For a client's connection: what its long-poll session answers.
    Answer(SessionAnswer),
    /// For a client's connection: the long-poll session is gone that its request was for.
    SessionGone { request: u32 },
    /// For a long-poll session: the connection has ended whose poll waits.
    ClientDisconnected { from: Requester },
    /// For a long-poll session: what it has said reached nobody.
    MessagesReturned { messages: Vec<Text> },
    /// For a core: who came and went on another, and what its members are to be told.
    Presence { diff: Arc<Diff>, publication: Arc<Publication> },
}

impl ChannelMessage {
    pub(crate) fn info(topic: Arc<str>, serial: u32, info: Info) -> Self {
        Self(ChannelMessageKind::Info { topic, serial, info })
    }

    /// What a channel wanted to tell another.
    pub(crate) fn into_info(self) -> Info {
        match self.0 {
            ChannelMessageKind::Info { info, .. } => info,
            _ => unreachable!("what comes back is what was sent"),
        }
    }
}
