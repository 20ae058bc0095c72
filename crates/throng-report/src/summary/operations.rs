//! What users do: the numbers of any operation, and those that only messages, heartbeats and probes
//! have.

use serde::{Deserialize, Serialize};
use throng_measure::{LatencySummary, Operation, ProbeCounters, ProbeReport};

/// The numbers of one operation in a summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperationSummary {
    /// Begun.
    #[serde(skip_serializing, alias = "sent")]
    pub started: u64,
    /// Ended as expected.
    pub ok: u64,
    /// Ended otherwise.
    pub failed: u64,
    /// Without an end when the user was stopped.
    pub waiting: u64,
    /// Ended as expected per second in the best second.
    pub rate_most: Option<f64>,
    /// Ended as expected per second.
    pub rate_mean: Option<f64>,
    /// Time from the intended moment until the answer arrived.
    pub latency_us: LatencySummary,
    /// Time from the intended moment until the generator read the answer: larger if it read late.
    pub seen_us: LatencySummary,
    /// Waits for an answer that never came.
    pub unanswered_us: LatencySummary,
    /// `latency_us` and `unanswered_us` combined, as a threshold compares it.
    pub judged_us: LatencySummary,
}

/// Reports whether a summary has of an operation what it has of any, and no more.
pub(super) const fn is_plain(operation: Operation) -> bool {
    use Operation::{Broadcast, Connect, Http, Message, Tcp};
    !matches!(operation, Connect | Tcp | Message | Http | Broadcast)
}

/// Messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MessageSummary {
    /// Messages sent.
    pub sent: u64,
    /// Steps that were about to send when their user was stopped, while the server did not take the
    /// bytes sent before.
    pub sends_waiting: u64,
    /// `expect` steps begun.
    pub expected: u64,
    /// `expect` steps answered as expected.
    pub answered: u64,
    /// `expect` steps answered with something else, or not in time, or that lost their connection.
    pub failed: u64,
    /// `expect` steps without an answer when their user was stopped.
    pub waiting: u64,
    /// Turns of `every` due per second.
    pub intended_rate: Option<f64>,
    /// Messages per second in the best second.
    pub rate_most: Option<f64>,
    /// Messages per second.
    pub rate_mean: Option<f64>,
    /// Time from the intended moment until the answer arrived.
    pub latency_us: LatencySummary,
    /// Time from the intended moment until the generator read the answer: larger if it read late.
    pub seen_us: LatencySummary,
    /// Time from the moment at which the message was sent until the answer arrived, of the
    /// connections that the generator follows.
    pub from_send_us: LatencySummary,
    /// Waits for an answer that never came.
    pub unanswered_us: LatencySummary,
    /// `latency_us` and `unanswered_us` combined, as a threshold compares it.
    pub judged_us: LatencySummary,
    /// Answers that may belong to another user.
    pub doubtful: u64,
    /// Answers that may be late answers to an earlier request that timed out.
    pub out_of_step: u64,
    /// Messages that answered nothing.
    pub unasked: u64,
    /// Complete messages received over WebSockets, requested or not.
    pub received: u64,
    /// Complete messages received per second in the best second.
    pub received_rate_most: Option<f64>,
}

impl MessageSummary {
    /// Returns the share of answers that may belong to another user or to an earlier request.
    pub fn doubtful_share(&self) -> f64 {
        (self.doubtful + self.out_of_step) as f64 / self.answered.max(1) as f64
    }
}

/// Heartbeats.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeartbeatSummary {
    /// Heartbeats sent.
    pub sent: u64,
    /// Heartbeats answered.
    pub answered: u64,
    /// Heartbeats not answered until the next was due; each ended a connection.
    pub missed: u64,
}

/// Messages that rules of `on_message` took and sent. Those of the steps have none of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RulesSummary {
    /// Messages that a rule took.
    pub matched: u64,
    /// Messages that rules sent.
    pub sent: u64,
    /// Messages that rules did not send: the server did not take the bytes sent before.
    pub blocked: u64,
}

/// Probes: messages to all users, and the times of their deliveries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BroadcastSummary {
    /// Counters over all probes.
    #[serde(flatten)]
    pub counters: ProbeCounters,
    /// Time from the moment when a probe was due until it arrived at a user: all deliveries of all
    /// probes.
    pub latency_us: LatencySummary,
    /// Time from the moment when a probe was due until the generator read it: larger if it read
    /// late.
    pub seen_us: LatencySummary,
    /// The earliest of all deliveries.
    pub first_us: Option<u64>,
    /// The latest of all deliveries.
    pub last_us: Option<u64>,
    /// The report of each probe.
    pub probes: Vec<ProbeReport>,
}
