//! How far a limit that the scenario sets was felt.

use serde::{Deserialize, Serialize};

/// Counters of one of the scenario's own limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitUse {
    /// The limit: `all` or `user`, and `send`, `connect` or `request`, as in `all.send`.
    pub name: String,
    /// Its rate, per second.
    pub per_second: f64,
    /// Steps that it counted.
    pub steps: u64,
    /// Steps that it held back until their turn.
    pub held: u64,
    /// Time that these had to wait, in microseconds.
    pub held_us: u64,
}
