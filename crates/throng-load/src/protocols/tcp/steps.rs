//! The steps of users of raw TCP.

use crate::scenario::step::StepKind;
use crate::steps::{FLOW, FLOW_OF_RULE, VALUES, connect, expect, receive, send};

/// Steps of a user, in the order in which mistakes name them.
pub(crate) const OF_USER: &[&[StepKind]] =
    &[&[connect::KIND, send::KIND, expect::KIND, receive::KIND], VALUES, FLOW];

/// Steps of a rule of `on_message`, none of which waits.
pub(crate) const OF_RULE: &[&[StepKind]] = &[&[send::KIND], FLOW_OF_RULE];
