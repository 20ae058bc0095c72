//! Compression of WebSockets: what servers agreed to.

use serde::{Deserialize, Serialize};
use throng_measure::LoadCounters;

/// Upgrades that offered permessage-deflate (RFC 7692).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeflateSummary {
    /// Upgrade requests that offered it.
    pub offered: u64,
    /// Upgrades whose server agreed to it.
    pub agreed: u64,
    /// Those on which both ends keep the context of the server's messages.
    pub server_contexts: u64,
    /// Those on which both ends keep the context of the user's messages.
    pub client_contexts: u64,
}

impl DeflateSummary {
    /// Summarizes the counters; `None` if no upgrade offered compression.
    pub(super) fn of(counters: &LoadCounters) -> Option<Self> {
        (counters.deflate_offered > 0).then_some(Self {
            offered: counters.deflate_offered,
            agreed: counters.deflate_agreed,
            server_contexts: counters.deflate_server_contexts,
            client_contexts: counters.deflate_client_contexts,
        })
    }
}
