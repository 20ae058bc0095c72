//! The machines of a run that several of them make together.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ceiling::Ceiling;
use crate::{EndpointFacts, MachineUse};

/// A machine of a run, as its first line names it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunMachine {
    /// The name of its agent.
    pub name: String,
    /// The name of the machine.
    pub host: String,
    /// The cores that it runs.
    pub cores: u64,
    /// Its part of the load, from 0 to 1.
    pub share: f64,
    /// The most users that its part of the scenario has at a time.
    pub users_planned: u64,
    /// The most connections that it can hold, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// The maximum of its load, if it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
    /// How much earlier or later than the others it may have begun, in microseconds: the error of
    /// its clock's offset.
    pub start_error_us: u64,
    /// Whether the target is an address of this machine.
    pub target_is_here: bool,
    /// Its limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<EndpointFacts>,
}

/// What one machine of the run has done: totals since the start, and statistics of the interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineInterval {
    /// The name of its agent.
    pub name: String,
    /// Whether it was lost: its numbers are as of its last report.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// Reports of its agent that are counted so far: their measurements are in this line or in one
    /// before it.
    pub reports: u64,
    /// The time in which its counters grew, from its report before to its last one; 0 if no report
    /// came in the interval.
    pub grown_us: u64,
    /// The totals of all its cores together, as of its last report; none before the first. A
    /// process that takes the run over goes on from those of the last line; of a file that is read
    /// whole, only these stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub totals: Option<serde_json::Value>,
    /// Users that have started.
    pub users_started: u64,
    /// Gauge: users now.
    pub users_active: u64,
    /// Gauge: connections now.
    pub connected: u64,
    /// Connects that succeeded.
    pub connects_ok: u64,
    /// Connects that failed.
    pub connects_failed: u64,
    /// Messages sent.
    pub messages_sent: u64,
    /// Requests of all kinds that were answered.
    pub answered: u64,
    /// Errors of established connections.
    pub errors: u64,
    /// The lag that 99 % of its steps did not exceed in the interval, in microseconds; none without
    /// a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_us_p99: Option<u64>,
    /// The latency of connects that 99 % did not exceed in the interval, in microseconds; none
    /// without a connect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_us_p99: Option<u64>,
    /// The latency of messages, pushes and HTTP requests that 99 % did not exceed in the interval,
    /// in microseconds; none without an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_us_p99: Option<u64>,
    /// The CPU time of its busiest core in the interval, in thousandths of a CPU; none if it is not
    /// known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busiest_core_permille: Option<u64>,
    /// CPU time of its generator since it began, in microseconds.
    pub cpu_us: u64,
    /// Resident memory of its generator.
    pub rss_bytes: u64,
    /// CPU time of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineUse>,
    /// What went wrong there since the run began, by the names that evidence has:
    /// `connect_failed.EMFILE`, `errors.timeout`, `TcpExt.TCPTimeouts`. What is zero is left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub troubles: BTreeMap<String, u64>,
}

impl MachineInterval {
    /// Merges the interval before this one into it: totals and gauges stay those of the end, the
    /// worse of two statistics stays.
    pub fn merge(&mut self, before: &Self) {
        self.grown_us = self.grown_us.saturating_add(before.grown_us);
        for (own, other) in [
            (&mut self.lag_us_p99, before.lag_us_p99),
            (&mut self.connect_us_p99, before.connect_us_p99),
            (&mut self.message_us_p99, before.message_us_p99),
            (&mut self.busiest_core_permille, before.busiest_core_permille),
        ] {
            // `None` is less than any value.
            *own = (*own).max(other);
        }
    }
}
