//! A topic, as the channels of a core share it.

use std::sync::Arc;

/// A topic that a client of this core has joined.
pub(crate) struct Topic {
    pub(crate) name: Arc<str>,
    /// The index in [`Config::routes`](super::config::Config) of the pattern that it matches.
    pub(crate) route: u16,
}
