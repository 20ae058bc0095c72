//! Connections that the generator follows one by one: a sample, because millions are too many.

use serde::{Deserialize, Serialize};

/// A followed connection that the target ended before its user was done with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EarlyClose {
    /// The kind of the error, as among the errors: `ws_close_1011`, `closed_by_peer`.
    pub error: String,
    /// The time since it was established, in milliseconds.
    pub open_ms: u64,
    /// The time since its user had last sent or received something, in milliseconds.
    pub idle_ms: u64,
    /// The longest time before that in which its user neither sent nor received anything, in
    /// milliseconds: the connection outlived it.
    pub idle_ms_before: u64,
}

/// Counters of the answers on followed WebSockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FollowedAnswers {
    /// Answers that differ from the few answers before them on the same connection.
    pub answers: u64,
    /// Messages without a question that were equal, byte for byte, to one of these answers.
    pub repeats: u64,
}

impl FollowedAnswers {
    /// Reports whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the counters of another core.
    pub fn add(&mut self, other: &Self) {
        self.answers += other.answers;
        self.repeats += other.repeats;
    }
}
