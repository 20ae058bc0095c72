//! Requests of Phoenix Channels users, and their topics.

use std::time::Duration;

use throng_measure::ErrorKind;

use crate::program::{Broadcast, MessagePattern, Probe, Template};

/// A request to the server.
#[derive(Clone, Debug)]
pub(crate) struct ChannelRequest {
    /// Type of the request.
    pub(crate) kind: ChannelRequestKind,
    /// Index of its [`TopicTemplate`].
    pub(crate) topic: u16,
    /// Event of a push; empty otherwise.
    pub(crate) event: Template,
    /// Text of a JSON object; empty for a leave.
    pub(crate) payload: Template,
    /// True if the user waits for the reply.
    pub(crate) awaits_reply: bool,
    /// Time-out of the reply.
    pub(crate) timeout: Duration,
    /// What the response of an ok must be.
    pub(crate) response: Option<MessagePattern>,
}

/// Type of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelRequestKind {
    /// Joins a topic (`phx_join`).
    Join,
    /// Pushes an event of the application.
    Push,
    /// Leaves a topic (`phx_leave`).
    Leave,
}

impl ChannelRequestKind {
    /// Returns the error of a request that the server refused.
    pub(super) const fn refusal_error(self) -> ErrorKind {
        match self {
            Self::Join => ErrorKind::JoinRefused,
            Self::Push => ErrorKind::PushRefused,
            Self::Leave => ErrorKind::LeaveRefused,
        }
    }

    /// Returns the error of a request that the server did not answer in time.
    pub(super) const fn timeout_error(self) -> ErrorKind {
        match self {
            Self::Join => ErrorKind::JoinTimeout,
            Self::Push => ErrorKind::PushTimeout,
            Self::Leave => ErrorKind::LeaveTimeout,
        }
    }
}

/// The name of a channel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TopicTemplate {
    /// Template of the name; a user renders the same text each time.
    pub(crate) name: Template,
    probe_reach: ProbeReach,
}

/// The users of a topic to whom the probe is delivered.
#[derive(Clone, Debug, PartialEq)]
enum ProbeReach {
    Always,
    Never,
    /// Those whose topic is this one.
    Where(String),
}

impl TopicTemplate {
    pub(crate) fn new(name: Template, probe: Option<&Probe>) -> Self {
        let probe_reach = match probe.map(|probe| &probe.broadcast) {
            Some(Broadcast::Push { topic, .. }) => match name.as_literal() {
                Some(literal) if literal == topic.as_bytes() => ProbeReach::Always,
                Some(_) => ProbeReach::Never,
                None => ProbeReach::Where(topic.clone()),
            },
            _ => ProbeReach::Never,
        };
        Self { name, probe_reach }
    }

    /// Reports whether the probe is delivered to users whose topic is `rendered`.
    pub(crate) fn receives_probe(&self, rendered: &[u8]) -> bool {
        match &self.probe_reach {
            ProbeReach::Always => true,
            ProbeReach::Never => false,
            ProbeReach::Where(topic) => topic.as_bytes() == rendered,
        }
    }
}
