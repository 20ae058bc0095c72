//! A whole run in one JSON object: the `--json` file, the thresholds' subject, the last page of a report.
//!
//! Everything is computed from the run file alone. The rules behind the numbers:
//!
//! - *Leaving*: the measurement ends when everybody begins to leave ([`LEAVING`](crate::LEAVING)). Totals go on;
//!   rates, costs and shares of CPU are of the intervals before. The interval in which the leaving began is
//!   part of both, and counts only where there is nothing before it.
//! - *Rates*: `rate_most` is the best stretch of at least a second, `rate_mean` is over the time from the first
//!   to the last interval in which there was any, without those two where there are four or more.
//! - *CPU per connect and per message*: all CPU time of the process (or machine) in the *busy intervals*, divided by
//!   what was done in them. An interval is busy with connects when it established at least a
//!   tenth as many a second as the best interval, and likewise for messages; so the quiet hold after a ramp is not
//!   charged to the connects, and a stray reconnect does not carry the cost of a second of messages. Where an
//!   interval is busy with both, its CPU is charged to both: neither number can then be added to the other.
//! - *Messages* are the answered ones; in a run without an answer, the sent ones. Where users push to channels, CPU per
//!   message is that of the pushes too.
//! - *CPU of the machine* is that of everything that ran on it, of programs that have nothing to do with the run too.
//! - *Memory per user or connection*: growth of resident memory since before the first connection, divided
//!   by the connections, at the interval with the most connections; `null` when those were fewer than
//!   [`MEMORY_CONNECTIONS_MIN`].
//! - *Latency* is of what was answered. Beside it stands what a threshold compares: the same with
//!   the waits that no answer ended ([`unanswered`](crate::unanswered)), where these make it
//!   larger.
//! - *Connections at most* (`connected_most`, `open_most`) are gauges read at the ends of intervals: connections
//!   that live shorter than an interval are hardly ever seen by them.
//! - *Share of the ceiling*: connects and messages of the busiest second, each divided by what the generator was measured to do at
//!   most, added up: both take the same CPUs. Pushes are messages. What the calibration did not measure is not in it.
//! - *Server*: what its counters grew by since the first snapshot in the file. `null` when there is none.
//! - A number that nothing was measured for is `null`, never 0.

mod fold;
mod memory;
mod rates;
mod server;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use throng_base::units::{brief_count, brief_micros};

pub use fold::SummaryFold;

use crate::runfile::{ReadError, RunEndReason, RunFile, RunFileReader};
use crate::{
    ClassCounters, Grade, LatencySummary, ProbeCounters, ProbeReport, ServerCounters, Tally,
    Validity,
};

/// The schema of [`Summary`] in JSON.
pub const SCHEMA: &str = "throng.summary/1";

/// Connections below which memory per connection is `null`: what a process grows by for other reasons (its
/// buffers, the stacks of its threads) would be most of it.
pub const MEMORY_CONNECTIONS_MIN: u64 = 1_000;

/// A whole run. All latencies are in microseconds, all rates per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// [`SCHEMA`].
    pub schema: String,
    /// Which run.
    pub run: RunSummary,
    /// Seconds from its beginning to its last interval.
    pub duration_s: f64,
    /// Seconds of that in which the load was paused by hand: no user began.
    pub paused_s: f64,
    /// Whether to believe it.
    pub validity: Validity,
    /// Users.
    pub users: UsersSummary,
    /// Connects.
    pub connect: ConnectSummary,
    /// Messages.
    pub message: MessageSummary,
    /// Joins of channels, when there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join: Option<JoinSummary>,
    /// Pushes to channels, when there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push: Option<PushSummary>,
    /// Heartbeats, when there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<HeartbeatSummary>,
    /// Probes, when there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broadcast: Option<BroadcastSummary>,
    /// Errors by kind, failed connects as `connect`.
    pub errors: Tally,
    /// Arrivals, or users in the closed model.
    pub arrivals: ArrivalsSummary,
    /// Turns of `every`, when there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnsSummary>,
    /// The generator's process.
    pub generator: GeneratorSummary,
    /// The generator's machine; loopback charges the kernel's receive work to whoever sends.
    pub machine: MachineSummary,
    /// The server, when it could be asked.
    pub server: Option<ServerSummary>,
    /// Users by class, when there is more than one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, ClassCounters>,
}

/// Which run it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunSummary {
    /// The target.
    pub target: String,
    /// The path or name of the scenario.
    pub scenario: String,
    /// When it began, RFC 3339.
    pub started: String,
    /// The version of throng.
    pub throng_version: String,
    /// How it ended; `null` when the file does not say.
    pub end: Option<RunEndReason>,
    /// Why it was over before its plan was, in a sentence without its point; `null` when it was
    /// not.
    pub incomplete: Option<String>,
}

/// Users, and what they went through.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsersSummary {
    /// Users that should have started.
    pub intended: u64,
    /// Users that started; the same user coming back is one more iteration.
    pub started: u64,
    /// Times that a user began its program.
    pub iterations: u64,
    /// Iterations that ended without an error.
    pub finished: u64,
    /// Iterations that ended with an error.
    pub failed: u64,
    /// Iterations that were cut off before their last step, without an error so far.
    pub cut: u64,
    /// The most connections established at the end of an interval.
    pub connected_most: u64,
    /// The most users in the midst of an iteration at the end of an interval.
    pub active_most: u64,
    /// The most channels that users were joined to at the end of an interval.
    pub joined_most: u64,
    /// Users who waited for an answer when everybody began to leave.
    pub waiting: u64,
    /// For how long the one of them had waited who had waited the longest, in microseconds.
    pub waiting_us_most: u64,
}

/// Connects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectSummary {
    /// Begun, and those of users that should have started and did not.
    pub intended: u64,
    /// Established.
    pub ok: u64,
    /// Failed, by errno or `timeout`.
    pub failed: Tally,
    /// Under way when their user was stopped.
    pub waiting: u64,
    /// Those of them whose TCP was established; of WebSockets only.
    pub upgrades_waiting: u64,
    /// Established per second in the best second.
    pub rate_most: Option<f64>,
    /// Established per second.
    pub rate_mean: Option<f64>,
    /// From the intended moment until established.
    pub latency_us: LatencySummary,
    /// The same until the generator saw it: larger where it looked late.
    pub seen_us: LatencySummary,
    /// The part of that until TCP was established; of WebSockets only.
    pub tcp_latency_us: LatencySummary,
    /// Waits for a connect that none has ended.
    pub unanswered_us: LatencySummary,
    /// `latency_us` with these, as a threshold compares it.
    pub judged_us: LatencySummary,
    /// The same of `tcp_latency_us`.
    pub tcp_judged_us: LatencySummary,
}

/// Messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MessageSummary {
    /// Sent.
    pub sent: u64,
    /// Steps that were about to send when their user was stopped, while the server did not take
    /// what had been sent before.
    pub sends_waiting: u64,
    /// `expect` steps begun.
    pub expected: u64,
    /// Answered as expected.
    pub answered: u64,
    /// Answered with something else, or not in time, or without their connection.
    pub failed: u64,
    /// Not answered when their user was stopped.
    pub waiting: u64,
    /// Turns of `every` due per second.
    pub intended_rate: Option<f64>,
    /// Messages per second in the best second.
    pub rate_most: Option<f64>,
    /// Messages per second.
    pub rate_mean: Option<f64>,
    /// From the intended moment until the answer arrived.
    pub latency_us: LatencySummary,
    /// The same until the generator saw the answer: larger where it read late.
    pub seen_us: LatencySummary,
    /// Waits for an answer that none has ended.
    pub unanswered_us: LatencySummary,
    /// `latency_us` with these, as a threshold compares it.
    pub judged_us: LatencySummary,
    /// Those of the answered that may have been another user's.
    pub doubtful: u64,
    /// Those of the answered that may have been late answers to a question that was given up.
    pub out_of_step: u64,
    /// Messages that answered nothing.
    pub unasked: u64,
    /// Whole messages that WebSockets brought, asked for or not.
    pub received: u64,
    /// The same per second in the best second.
    pub received_rate_most: Option<f64>,
}

impl MessageSummary {
    /// Returns the share of answers that may be another user's, or another question's.
    pub fn doubtful_share(&self) -> f64 {
        (self.doubtful + self.out_of_step) as f64 / self.answered.max(1) as f64
    }
}

/// Joins of channels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JoinSummary {
    /// Begun.
    pub started: u64,
    /// Answered ok.
    pub ok: u64,
    /// Refused, or not answered in time, or without their connection.
    pub failed: u64,
    /// Not answered when their user was stopped.
    pub waiting: u64,
    /// Answered ok, per second in the best second.
    pub rate_most: Option<f64>,
    /// Answered ok, per second.
    pub rate_mean: Option<f64>,
    /// From the intended moment until the answer arrived.
    pub latency_us: LatencySummary,
    /// The same until the generator saw the answer: larger where it read late.
    pub seen_us: LatencySummary,
    /// Waits for an answer that none has ended.
    pub unanswered_us: LatencySummary,
    /// `latency_us` with these, as a threshold compares it.
    pub judged_us: LatencySummary,
}

/// Pushes to channels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PushSummary {
    /// Sent.
    pub sent: u64,
    /// Answered ok.
    pub ok: u64,
    /// Refused, or not answered in time, or without their connection.
    pub failed: u64,
    /// Not answered when their user was stopped.
    pub waiting: u64,
    /// Answered ok, per second in the best second.
    pub rate_most: Option<f64>,
    /// Answered ok, per second.
    pub rate_mean: Option<f64>,
    /// From the intended moment until the answer arrived.
    pub latency_us: LatencySummary,
    /// The same until the generator saw the answer: larger where it read late.
    pub seen_us: LatencySummary,
    /// Waits for an answer that none has ended.
    pub unanswered_us: LatencySummary,
    /// `latency_us` with these, as a threshold compares it.
    pub judged_us: LatencySummary,
}

/// Heartbeats.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeartbeatSummary {
    /// Sent.
    pub sent: u64,
    /// Answered.
    pub answered: u64,
    /// Not answered until the next was due, which ended a connection each.
    pub missed: u64,
}

/// Messages to everybody, and when everybody had them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BroadcastSummary {
    /// What was counted of all probes.
    #[serde(flatten)]
    pub counters: ProbeCounters,
    /// From the moment at which a probe was due until it arrived at a user: all deliveries of all probes.
    pub latency_us: LatencySummary,
    /// The same until the generator saw it: larger where it read late.
    pub seen_us: LatencySummary,
    /// The earliest of all deliveries.
    pub first_us: Option<u64>,
    /// The latest of all deliveries.
    pub last_us: Option<u64>,
    /// Each probe.
    pub probes: Vec<ProbeReport>,
}

/// What the schedule asked for and what was done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ArrivalsSummary {
    /// Due.
    pub intended: u64,
    /// Those of them that started.
    pub achieved: u64,
    /// The latter to the former.
    pub ratio: Option<f64>,
}

/// Turns of `every`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnsSummary {
    /// Came due.
    pub intended: u64,
    /// Those of them that began.
    pub started: u64,
    /// Those that never began because an error ended their loop.
    pub failed: u64,
    /// Those that had not begun when their user was stopped.
    pub waiting: u64,
}

/// What the generator used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GeneratorSummary {
    /// CPU per established connect, in microseconds.
    pub cpu_us_per_connect: Option<f64>,
    /// CPU per message, in microseconds.
    pub cpu_us_per_message: Option<f64>,
    /// Resident memory per connected user.
    pub rss_bytes_per_user: Option<f64>,
    /// How late the generator was.
    pub lag_us: LatencySummary,
    /// When it was the latest, in seconds since the run began; `null` when it was never late.
    pub lag_most_at_s: Option<f64>,
    /// The grade that this lateness alone would give the run.
    pub lag_grade: Grade,
    /// The share of messages, joins, pushes and probes whose arrival the kernel's clock told; `null` when
    /// there were none.
    pub by_kernels_clock: Option<f64>,
    /// Event loops.
    pub cores: u64,
    /// CPUs that it kept busy on average.
    pub cpu_cores_used: Option<f64>,
    /// The share of its ceiling that it used in the busiest second; `null` when none was measured before the run.
    pub ceiling_share: Option<f64>,
}

/// What the whole machine used, both ends and the kernel where both are on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineSummary {
    /// CPUs on line.
    pub cpus: u64,
    /// Share of their time that was neither idle nor stolen.
    pub cpu_busy_share: Option<f64>,
    /// Share of their time that the hypervisor gave to others.
    pub cpu_stolen_share: Option<f64>,
    /// CPU of everything per established connect, in microseconds.
    pub cpu_us_per_connect: Option<f64>,
    /// CPU of everything per message, in microseconds.
    pub cpu_us_per_message: Option<f64>,
}

/// What the server did and used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerSummary {
    /// How it accepts.
    pub accept: String,
    /// Its handler.
    pub handler: String,
    /// Event loops.
    pub cores: u64,
    /// Its counters, of this run; gauges as of the end, maxima of the whole run.
    #[serde(flatten)]
    pub counters: ServerCounters,
    /// The most connections open at the end of an interval.
    pub open_most: u64,
    /// Failed accepts by errno.
    pub accept_errors: Tally,
    /// CPU per accepted connection, in microseconds.
    pub cpu_us_per_connection: Option<f64>,
    /// CPU per message received, in microseconds.
    pub cpu_us_per_message: Option<f64>,
    /// Resident memory per open connection.
    pub rss_bytes_per_connection: Option<f64>,
    /// CPUs that it kept busy on average.
    pub cpu_cores_used: Option<f64>,
}

/// A wait for less than this is no reason for doubt, …
const OVERDUE_US: u64 = 500_000;
/// … nor is one for less than so many times the slowest answer.
const OVERDUE_TIMES: u64 = 2;

impl Summary {
    /// The summary of a run file that is in memory.
    pub fn of(file: &RunFile) -> Self {
        let mut fold = SummaryFold::new(&file.header);
        file.intervals.iter().for_each(|interval| fold.add(interval));
        fold.finish_read(file.end.as_ref(), file.lines_torn)
    }

    /// The summary of a run file that is read line by line, which a run of any length allows.
    pub fn read(input: impl std::io::BufRead) -> Result<Self, ReadError> {
        let mut reader = RunFileReader::open(input)?;
        let mut fold = SummaryFold::new(reader.header());
        while let Some(interval) = reader.next_interval()? {
            fold.add(&interval);
        }
        Ok(fold.finish_read(reader.end(), reader.lines_torn()))
    }

    /// Who waited for an answer at the end for longer than any answer had taken, in a sentence without its point. What they would have
    /// waited is in no histogram: the target may have stood still.
    pub fn overdue(&self) -> Option<String> {
        let join = self.join.as_ref().map_or(0, |join| join.latency_us.max);
        let push = self.push.as_ref().map_or(0, |push| push.latency_us.max);
        let slowest_us = self.message.latency_us.max.max(join).max(push);
        let UsersSummary { waiting, waiting_us_most: waited_us, .. } = self.users;
        let is_overdue = waited_us > OVERDUE_US && waited_us / OVERDUE_TIMES > slowest_us;
        (waiting > 0 && is_overdue).then(|| {
            format!(
                "{} were waiting for an answer when it ended, one of them for {}",
                if waiting == 1 {
                    "one user".to_owned()
                } else {
                    format!("{} users", brief_count(waiting as f64))
                },
                brief_micros(waited_us)
            )
        })
    }

    /// Connects, messages, joins and pushes that were attempted.
    pub fn attempts(&self) -> u64 {
        let connects = self.connect.ok + self.connect.failed.total() + self.connect.waiting;
        let joins = self.join.as_ref().map_or(0, |join| join.started);
        let pushes = self.push.as_ref().map_or(0, |push| push.sent);
        let messages = self.message.sent.max(self.message.expected).max(self.message.answered);
        connects + messages + self.message.sends_waiting + joins + pushes
    }
}
