//! The steps of users of Phoenix Channels.

use super::{join, leave, push, receive_event};
use crate::protocols::http;
use crate::protocols::ws::ping;
use crate::scenario::step::StepKind;
use crate::steps::{FLOW, FLOW_OF_RULE, VALUES, connect};

/// Steps of a user, in the order in which mistakes name them.
pub(crate) const OF_USER: &[&[StepKind]] = &[
    &[connect::KIND, receive_event::KIND, ping::PING, ping::PONG],
    VALUES,
    &[join::KIND, push::KIND, leave::KIND],
    http::steps::REQUESTS,
    FLOW,
];

/// Steps of a rule of `on_message`, none of which waits.
pub(crate) const OF_RULE: &[&[StepKind]] = &[&[push::OF_RULE], FLOW_OF_RULE];
