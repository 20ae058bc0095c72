//! What happened to all users of a run at once, to the millisecond: the target fell silent, or away.
//!
//! Counters of a second cannot tell when within it something began. The generator's cores note these
//! moments themselves, and the recorder puts them on the clock of the run.

use serde::{Deserialize, Serialize};

/// A time in which users waited for answers and none came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnswerGap {
    /// When it began, in milliseconds since the run began: after the last answer before it, and not
    /// before a question was asked.
    pub from_ms: u64,
    /// When it ended: the next answer.
    pub to_ms: u64,
}

impl AnswerGap {
    /// Returns how long it was, in milliseconds.
    pub fn length_ms(&self) -> u64 {
        self.to_ms.saturating_sub(self.from_ms)
    }
}

/// When the target went away and came back, within one interval. All in milliseconds since the run
/// began; what did not happen is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outage {
    /// The first connection that the target ended although more was wanted of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_ms: Option<u64>,
    /// The first connect that was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_ms: Option<u64>,
    /// The last connect that was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_last_ms: Option<u64>,
    /// The first connect that was established after one of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back_ms: Option<u64>,
}
