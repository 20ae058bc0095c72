//! What the server keeps for each connection: small, since there are millions.

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

use throng_proto::phoenix::Vsn;
use throng_pubsub::Membership;

use super::channel::ErasedChannel;
use super::config::ConnectGrant;
use super::longpoll::{Poll, StoredPoll};
use super::refs::Ref;

/// The state of a connection. The first channel lives in it, so that a user of one topic costs nothing more.
#[derive(Default)]
pub struct ClientState {
    first: Option<JoinedChannel>,
    /// What few connections have.
    pub(crate) extra: Option<Box<Extra>>,
    pub(crate) mode: Mode,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Requests, until one is upgraded.
    #[default]
    Http,
    /// A WebSocket of this version.
    Socket(Vsn),
    /// A request waits for the answer of its long-poll session.
    AwaitingSession { request: u32, is_poll: bool },
    /// A long-poll session of this version; it has no socket.
    Poll(Vsn),
    /// A close frame was sent; whatever comes now but the answer to it is nobody's.
    Closing,
}

#[derive(Default)]
pub(crate) struct Extra {
    /// The socket's id.
    pub(crate) id: Option<Arc<str>>,
    /// The application's own state of the whole connection.
    pub(crate) assigns: Option<Box<dyn Any>>,
    /// A long-poll session's own.
    pub(crate) poll: Option<Box<Poll>>,
    /// The request that waits for its session, should there turn out to be none.
    pub(crate) stored_poll: Option<Box<StoredPoll>>,
    /// The second channel and all later ones.
    pub(crate) more: Vec<JoinedChannel>,
}

/// A channel of a connection.
pub(crate) struct JoinedChannel {
    pub(crate) channel: Box<dyn ErasedChannel>,
    pub(crate) topic: Rc<Topic>,
    /// The ref of the join, which all of the channel's messages carry.
    pub(crate) join_ref: Ref,
    pub(crate) membership: Membership,
    /// Tells it from other channels of the same topic, before and after it.
    pub(crate) serial: u32,
}

/// A topic that somebody of this core is joined to.
pub(crate) struct Topic {
    pub(crate) name: Arc<str>,
    /// The place in [`Config::routes`](super::config::Config) of the pattern that it matches.
    pub(crate) route: u16,
}

impl Mode {
    /// The version that channels speak on it, where there are channels.
    pub(crate) const fn vsn(self) -> Option<Vsn> {
        match self {
            Self::Socket(vsn) | Self::Poll(vsn) => Some(vsn),
            Self::Http | Self::AwaitingSession { .. } | Self::Closing => None,
        }
    }
}

impl ClientState {
    /// A long-poll session that is about to begin.
    pub(crate) fn poll(vsn: Vsn, connected: ConnectGrant, poll: Poll) -> Self {
        let ConnectGrant { id, assigns } = connected;
        let extra = Extra { id, assigns, poll: Some(Box::new(poll)), ..Extra::default() };
        Self { first: None, extra: Some(Box::new(extra)), mode: Mode::Poll(vsn) }
    }

    /// The channel of a topic, taken out for the length of a callback.
    pub(crate) fn take(&mut self, topic: &str) -> Option<JoinedChannel> {
        if self.first.as_ref().is_some_and(|first| *first.topic.name == *topic) {
            return self.first.take();
        }
        let more = &mut self.extra.as_mut()?.more;
        let place = more.iter().position(|joined| *joined.topic.name == *topic)?;
        Some(more.swap_remove(place))
    }

    /// Any channel, taken out.
    pub(crate) fn take_any(&mut self) -> Option<JoinedChannel> {
        self.first.take().or_else(|| self.extra.as_mut()?.more.pop())
    }

    /// A channel that was taken out, or a new one.
    pub(crate) fn put(&mut self, joined: JoinedChannel) {
        match &mut self.first {
            first @ None => *first = Some(joined),
            Some(_) => self.extra().more.push(joined),
        }
    }

    /// The channel of a topic.
    pub(crate) fn find(&self, topic: &str) -> Option<&JoinedChannel> {
        let more = self.extra.iter().flat_map(|extra| &extra.more);
        self.first.iter().chain(more).find(|joined| *joined.topic.name == *topic)
    }

    /// Whether it is a long-poll session.
    pub(crate) fn is_poll(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.poll.is_some())
    }

    /// How many channels it has.
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
        // With when it was heard, its timeout, and its place in the hub.
        let slot = size_of::<crate::Slot<ClientState>>();
        assert!(slot <= 96, "{slot}");
        assert!(size_of::<Extra>() <= 72, "{}", size_of::<Extra>());
        assert!(size_of::<throng_proto::websocket::WebSocketServer>() <= 24);
    }
}
