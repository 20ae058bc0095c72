//! The steps of users of a WebSocket.

use super::ping;
use crate::protocols::http;
use crate::scenario::step::StepKind;
use crate::steps::{FLOW, FLOW_OF_RULE, VALUES, connect, expect, receive, send};

/// Steps of a user, in the order in which mistakes name them.
pub(crate) const OF_USER: &[&[StepKind]] = &[
    &[connect::KIND, send::KIND, expect::KIND, receive::KIND, ping::PING, ping::PONG],
    VALUES,
    http::steps::REQUESTS,
    FLOW,
];

/// Steps of a rule of `on_message`, none of which waits.
pub(crate) const OF_RULE: &[&[StepKind]] = &[&[send::KIND], FLOW_OF_RULE];
