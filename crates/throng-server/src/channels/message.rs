//! Messages to connections and cores of a server of channels.

use std::sync::Arc;

use throng_pubsub::Publication;
use throng_pubsub::presence::Diff;

use super::channel::Info;
use super::longpoll::exchange::{Requester, SessionAnswer, SessionRequest};
use super::longpoll::inbox::Text;

/// A message to a connection of a server of channels, made by an [`Address`](super::Address).
pub struct ChannelMessage(pub(crate) ChannelMessageKind);

pub(crate) enum ChannelMessageKind {
    /// For the channel of this topic, if it still has this serial.
    Info { topic: Arc<str>, serial: u32, info: Info },
    /// For a long-poll session: a request of its client.
    Request(SessionRequest),
    /// For a client's connection: the answer of its long-poll session.
    Answer(SessionAnswer),
    /// For a client's connection: the long-poll session of its request has ended.
    SessionGone { request: u32 },
    /// For a long-poll session: the connection of the waiting poll has ended.
    ClientDisconnected { from: Requester },
    /// For a long-poll session: these messages of an answer did not reach a connection.
    MessagesReturned { messages: Vec<Text> },
    /// For a long-poll session that was never used: a new session has its permit.
    SessionReplaced,
    /// For a core: the presence changes of another core, and the publication for this core's
    /// members.
    Presence { diff: Arc<Diff>, publication: Arc<Publication> },
}

impl ChannelMessage {
    pub(crate) fn info(topic: Arc<str>, serial: u32, info: Info) -> Self {
        Self(ChannelMessageKind::Info { topic, serial, info })
    }

    /// Returns the info that a full mailbox refused.
    pub(crate) fn into_info(self) -> Info {
        match self.0 {
            ChannelMessageKind::Info { info, .. } => info,
            _ => unreachable!("a full mailbox returns the message it refused"),
        }
    }
}
