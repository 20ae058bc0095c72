//! The state of each connection. It is small, because there are millions.

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

use throng_proto::phoenix::Vsn;
use throng_pubsub::Membership;

use super::channel::ErasedChannel;
use super::config::ConnectGrant;
use super::longpoll::exchange::StoredPoll;
use super::longpoll::session::Poll;
use super::more_channels::{MoreChannels, OfTopic};
use super::refs::Ref;
use super::topic::Topic;

/// The state of a connection. The first channel is stored inline, so that a client of one topic
/// needs no further allocation.
#[derive(Default)]
pub struct ClientState {
    first: Option<JoinedChannel>,
    /// Parts that few connections have.
    pub(crate) extra: Option<Box<Extra>>,
    pub(crate) mode: Mode,
}

/// The use of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// HTTP requests, until one is upgraded.
    #[default]
    Http,
    /// A WebSocket of this version.
    Socket(Vsn),
    /// A request waits for the answer of its long-poll session.
    AwaitingSession { request: u32, is_poll: bool },
    /// A long-poll session of this version; it has no socket.
    Poll(Vsn),
    /// A close frame was sent. Anything but the answer to it is ignored.
    Closing,
}

/// Parts of the state that few connections have.
#[derive(Default)]
pub(crate) struct Extra {
    /// The socket's id.
    pub(crate) id: Option<Arc<str>>,
    /// The application's own state of the whole connection.
    pub(crate) assigns: Option<Box<dyn Any>>,
    /// The state of a long-poll session.
    pub(crate) poll: Option<Box<Poll>>,
    /// The poll that waits for its session, to be repeated if the session has ended.
    pub(crate) stored_poll: Option<Box<StoredPoll>>,
    /// The second channel and all later ones.
    pub(crate) more: MoreChannels<JoinedChannel>,
}

/// A channel of a connection.
pub(crate) struct JoinedChannel {
    pub(crate) channel: Box<dyn ErasedChannel>,
    pub(crate) topic: Rc<Topic>,
    /// The ref of the join, which all messages of the channel carry.
    pub(crate) join_ref: Ref,
    pub(crate) membership: Membership,
    /// A number that distinguishes it from earlier and later channels of the same topic.
    pub(crate) serial: u32,
}

impl OfTopic for JoinedChannel {
    fn topic(&self) -> &Rc<Topic> {
        &self.topic
    }
}

impl Mode {
    /// Returns the version of the protocol, if the connection has channels.
    pub(crate) const fn vsn(self) -> Option<Vsn> {
        match self {
            Self::Socket(vsn) | Self::Poll(vsn) => Some(vsn),
            Self::Http | Self::AwaitingSession { .. } | Self::Closing => None,
        }
    }
}

impl ClientState {
    /// Makes the state of a long-poll session that is about to begin.
    pub(crate) fn poll(vsn: Vsn, grant: ConnectGrant, poll: Poll) -> Self {
        let ConnectGrant { id, assigns } = grant;
        let extra = Extra { id, assigns, poll: Some(Box::new(poll)), ..Extra::default() };
        Self { first: None, extra: Some(Box::new(extra)), mode: Mode::Poll(vsn) }
    }

    /// Takes out the channel of a topic, for the duration of a callback.
    pub(crate) fn take(&mut self, topic: &str) -> Option<JoinedChannel> {
        if self.first.as_ref().is_some_and(|first| first.is_of(topic)) {
            return self.first.take();
        }
        self.extra.as_mut()?.more.take(topic)
    }

    /// Takes out any channel.
    pub(crate) fn take_any(&mut self) -> Option<JoinedChannel> {
        self.first.take().or_else(|| self.extra.as_mut()?.more.take_any())
    }

    /// Puts back a channel, or adds a new one.
    pub(crate) fn put(&mut self, joined: JoinedChannel) {
        match &mut self.first {
            first @ None => *first = Some(joined),
            Some(_) => self.extra().more.put(joined),
        }
    }

    /// Returns the channel of a topic.
    pub(crate) fn find(&self, topic: &str) -> Option<&JoinedChannel> {
        let first = self.first.as_ref().filter(|first| first.is_of(topic));
        first.or_else(|| self.extra.as_ref()?.more.find(topic))
    }

    /// Reports whether this is a long-poll session.
    pub(crate) fn is_poll(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.poll.is_some())
    }

    /// Returns the number of channels.
    pub(crate) fn channels(&self) -> usize {
        let more = self.extra.as_ref().map_or(0, |extra| extra.more.len());
        usize::from(self.first.is_some()) + more
    }

    pub(crate) fn extra(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_with_a_channel_is_small() {
        assert!(size_of::<ClientState>() <= 64, "{}", size_of::<ClientState>());
        // With its last activity, its timeout and its place in the hub.
        let slot = size_of::<crate::Slot<ClientState>>();
        assert!(slot <= 96, "{slot}");
        assert!(size_of::<Extra>() <= 72, "{}", size_of::<Extra>());
        assert!(size_of::<throng_proto::websocket::WebSocketServer>() <= 24);
    }
}
