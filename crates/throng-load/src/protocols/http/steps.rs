//! The steps of users of HTTP, which users of other protocols have, too, before they connect.

use crate::scenario::step::StepKind;
use crate::steps::{FLOW, FLOW_OF_RULE, VALUES, http};

/// Steps of a user, in the order in which mistakes name them.
pub(crate) const OF_USER: &[&[StepKind]] = &[VALUES, REQUESTS, FLOW];

/// Steps of a rule of `on_message`, none of which waits.
pub(crate) const OF_RULE: &[&[StepKind]] = &[FLOW_OF_RULE];

/// Steps that send a request.
pub(crate) const REQUESTS: &[StepKind] =
    &[http::GET, http::HEAD, http::POST, http::PUT, http::PATCH, http::DELETE, http::OPTIONS];
