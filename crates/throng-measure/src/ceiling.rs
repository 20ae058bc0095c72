//! The most that a generator can do.

use serde::{Deserialize, Serialize};

/// The maximum load of a generator against a peer that does nothing, measured on the run's machine
/// just before the run. If the target is on another machine: the load that the generator would
/// reach if the peer took no CPU time beside it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ceiling {
    /// True if the connections were over TLS.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub over_tls: bool,
    /// Connects per second, each closed again; for Phoenix, each with a join. Over TLS, each with a
    /// full handshake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connects_per_s: Option<f64>,
    /// Connects per second over TLS, each with a handshake that resumes a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed_per_s: Option<f64>,
    /// Messages per second that were answered, or sent if the scenario waits for no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_per_s: Option<f64>,
    /// The error of the generator's timers that 99 % of them do not exceed, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_error_us_p99: Option<u64>,
    /// Resident memory of a connected user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_user: Option<f64>,
}
