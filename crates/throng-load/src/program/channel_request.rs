//! What users of Phoenix Channels ask, and what about.

use std::time::Duration;

use super::{Broadcast, Probe, Template};

/// A question to the server.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelRequest {
    /// Which.
    pub kind: ChannelRequestKind,
    /// The index of its [`Topic`].
    pub topic: u16,
    /// Of a push; empty otherwise.
    pub event: Template,
    /// The text of a JSON object; nothing for a leave.
    pub payload: Template,
    /// Whether the user waits for the answer.
    pub awaits_reply: bool,
    /// After this long without it it is an error.
    pub timeout: Duration,
}

/// The three questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelRequestKind {
    /// `phx_join`.
    Join,
    /// An event of the application's.
    Push,
    /// `phx_leave`.
    Leave,
}

impl ChannelRequest {
    pub(super) fn join(topic: u16, payload: Template, timeout: Duration) -> Self {
        let event = Template::from_bytes(Vec::new());
        Self { kind: ChannelRequestKind::Join, topic, event, payload, awaits_reply: true, timeout }
    }

    pub(super) fn leave(topic: u16, timeout: Duration) -> Self {
        let nothing = Template::from_bytes(Vec::new());
        Self {
            kind: ChannelRequestKind::Leave,
            topic,
            event: nothing.clone(),
            payload: nothing,
            awaits_reply: true,
            timeout,
        }
    }
}

/// A channel's name.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicTemplate {
    /// The same text each time that one user renders it.
    pub name: Template,
    probe_reach: ProbeReach,
}

/// Whether a probe is heard in a topic.
#[derive(Clone, Debug, PartialEq)]
enum ProbeReach {
    Always,
    Never,
    /// By the users whose topic is this one.
    Where(String),
}

impl TopicTemplate {
    pub(super) fn new(name: Template, probe: Option<&Probe>) -> Self {
        let heard = match probe.map(|probe| &probe.broadcast) {
            Some(Broadcast::Push { topic, .. }) => match name.as_literal() {
                Some(literal) if literal == topic.as_bytes() => ProbeReach::Always,
                Some(_) => ProbeReach::Never,
                None => ProbeReach::Where(topic.clone()),
            },
            _ => ProbeReach::Never,
        };
        Self { name, probe_reach: heard }
    }

    /// Whether the probe is heard by those whose topic is `rendered`.
    pub fn receives_probe(&self, rendered: &[u8]) -> bool {
        match &self.probe_reach {
            ProbeReach::Always => true,
            ProbeReach::Never => false,
            ProbeReach::Where(topic) => topic.as_bytes() == rendered,
        }
    }
}
