//! Incidents that affect all users of a run at once, to the millisecond: the target fell silent or
//! went away.
//!
//! Counters of a second cannot show when within it something began. The generator's cores note
//! these times themselves, and the recorder converts them to the clock of the run.

use serde::{Deserialize, Serialize};

/// A time in which users waited for answers and none arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnswerGap {
    /// The start of the gap, in milliseconds since the run began: after the last answer before it,
    /// and not before a request was sent.
    pub from_ms: u64,
    /// The end of the gap, in milliseconds since the run began: the next answer.
    pub to_ms: u64,
}

impl AnswerGap {
    /// Returns the length of the gap, in milliseconds.
    pub fn length_ms(&self) -> u64 {
        self.to_ms.saturating_sub(self.from_ms)
    }
}

/// The times at which the target went away and came back, within one interval. All in milliseconds
/// since the run began; absent if it did not happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outage {
    /// The first connection that the target closed before the user was done with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_ms: Option<u64>,
    /// The first connect that was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_ms: Option<u64>,
    /// The last connect that was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_last_ms: Option<u64>,
    /// The first connect that was established after a loss or a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back_ms: Option<u64>,
}
