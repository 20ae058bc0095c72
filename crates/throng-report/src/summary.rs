//! A whole run in one JSON object: the `--json` file, the input of thresholds, the last page of a
//! report.
//!
//! Everything is computed from the run file alone. The rules behind the numbers:
//!
//! - *Leaving*: the measurement ends when all users begin to leave
//!   ([`LEAVING`](throng_measure::LEAVING)). Totals go on; rates, costs and shares of CPU cover the
//!   intervals before. The interval in which the leaving began is part of both, and counts only if
//!   there is nothing before it.
//! - *Rates*: `rate_most` is the best stretch of at least a second. `rate_mean` covers the time
//!   from the first to the last interval with any activity, without these two if there are four or
//!   more.
//! - *CPU per connect and per message*: all CPU time of the process (or machine) in the *busy
//!   intervals*, divided by the work done in them. An interval is busy with connects if it
//!   established at least a tenth as many a second as the best interval, and likewise for messages.
//!   So the quiet hold after a ramp is not charged to the connects, and a stray reconnect does not
//!   carry the cost of a second of messages. If an interval is busy with both, its CPU is charged
//!   to both: the two numbers cannot be added.
//! - *Messages* are the answered messages; in a run without an answer, the sent ones. CPU per
//!   message includes the pushes and the HTTP requests.
//! - *Shares*: errors of HTTP requests are divided by these, their statuses by all answers, other
//!   errors by everything that was attempted. A connect for an HTTP request is a part of it.
//! - *CPU of the machine* is that of every program on it, including programs that are no part of
//!   the run.
//! - *Memory per user or connection*: growth of resident memory since before the first connection,
//!   divided by the connections, at the interval with the most connections; `null` if there were
//!   fewer than [`MEMORY_CONNECTIONS_MIN`].
//! - *Latency* covers answered requests. Beside it stands the value that a threshold compares: the
//!   same latency with the waits that no answer ended ([`unanswered`](throng_measure::unanswered)),
//!   if these make it larger.
//! - *Connections at most* (`connected_most`, `open_most`) are gauges read at the ends of
//!   intervals: they hardly ever include connections that live shorter than an interval.
//! - *Machines of a fleet*: each has its own totals. Of its latencies the run file keeps the p99 of
//!   each interval, so the summary has that of the worst one.
//! - *Share of the ceiling*: connects and messages of the busiest second, each divided by the
//!   generator's measured maximum, added up, because both take the same CPUs. Pushes are messages.
//!   Work that the calibration did not measure is not included.
//! - *Server*: the growth of its counters since the first snapshot in the file. `null` if there is
//!   none.
//! - A number without a measurement is `null`, never 0.

mod attempts;
mod class_operations;
mod clocks;
mod cues;
mod deflate;
mod exchanges;
mod fold;
mod foreign;
mod growth;
mod http;
mod interval_growths;
mod limits;
mod machines;
mod memory;
mod operation_summary;
mod operations;
mod rates;
mod server;
mod step_summary;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use throng_base::units::{brief_count, brief_micros};
use throng_measure::runfile::{ImportedFrom, ReadError, RunEndReason, RunFile, RunFileReader};
use throng_measure::{
    ClassCounters, ExchangeSummary, Grade, LatencyStats, LatencySummary, LatencyTotal, Operation,
    PerOperation, Tally, Validity,
};

pub use class_operations::ClassSummary;
pub(crate) use class_operations::name_of as name_of_class_operation;
pub use cues::CueSummary;
pub use deflate::DeflateSummary;
pub use fold::SummaryFold;
pub use foreign::ServerCosts;
pub(crate) use growth::GrowthFold;
pub use http::HttpSummary;
pub use limits::LimitSummary;
pub use machines::{LostTime, RunMachineSummary};
pub use memory::MEMORY_CONNECTIONS_MIN;
pub use operations::{
    BroadcastSummary, HeartbeatSummary, MessageSummary, OperationSummary, RulesSummary,
};
pub(crate) use rates::IntervalGrowth;
pub use server::ServerSummary;
pub use step_summary::StepSummary;

/// The schema of [`Summary`] in JSON.
pub const SCHEMA: &str = "throng.summary/1";

/// The summary of a whole run. All latencies are in microseconds, all rates per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// The schema of this object, [`SCHEMA`].
    pub schema: String,
    /// The run's identity and end.
    pub run: RunSummary,
    /// Seconds from the run's beginning to its last interval.
    pub duration_s: f64,
    /// Seconds during which the load was paused with `throng ctl pause`: no user began.
    pub paused_s: f64,
    /// The grade of the run.
    pub validity: Validity,
    /// Users.
    pub users: UsersSummary,
    /// Connects.
    pub connect: ConnectSummary,
    /// Compression of WebSockets, if upgrades offered it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deflate: Option<DeflateSummary>,
    /// Messages.
    pub message: MessageSummary,
    /// The operations that have no numbers but those of any operation: joins of channels and pushes
    /// to them, if there were any.
    #[serde(flatten, serialize_with = "operation_summary::serialize")]
    pub plain: PerOperation<Option<OperationSummary>>,
    /// HTTP requests, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpSummary>,
    /// Heartbeats, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<HeartbeatSummary>,
    /// Rules of `on_message`, if they took messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_message: Option<RulesSummary>,
    /// Probes, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broadcast: Option<BroadcastSummary>,
    /// Steps with a name and transactions, in the order of the scenario.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepSummary>,
    /// Errors by kind, failed connects as `connect`.
    pub errors: Tally,
    /// The first error of each kind with its times, the most frequent kind first.
    pub exchanges: Vec<ExchangeSummary>,
    /// Arrivals, or users in the closed model.
    pub arrivals: ArrivalsSummary,
    /// Turns of `every`, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnsSummary>,
    /// Waits of users for one another, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cues: Option<CueSummary>,
    /// The scenario's own limits, if it has any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitSummary>,
    /// The generator's process.
    pub generator: GeneratorSummary,
    /// The machines of a fleet, in the order of their cores.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<RunMachineSummary>,
    /// The generator's machine. Loopback charges the kernel's receive work to the sending process.
    pub machine: MachineSummary,
    /// The server, if it reported its counters.
    pub server: Option<ServerSummary>,
    /// The costs of a server that is not throng's, if its process was sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign_server: Option<ServerCosts>,
    /// Users by class, if there is more than one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, ClassCounters>,
    /// The operations of the classes that a threshold is about.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub class_operations: BTreeMap<String, ClassSummary>,
    /// Latencies of which no values are known, by the names of thresholds: only an imported run has
    /// them, and what it has of a latency is here alone.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub latency_stats: BTreeMap<String, LatencyStats>,
    /// The histograms behind each latency, by its name in thresholds. Not in JSON.
    #[serde(skip)]
    pub latencies: BTreeMap<String, LatencyTotal>,
}

/// The identity and the end of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunSummary {
    /// The target.
    pub target: String,
    /// The path or name of the scenario.
    pub scenario: String,
    /// The start of the run, RFC 3339.
    pub started: String,
    /// The version of throng.
    pub throng_version: String,
    /// The log of another tool that the run was imported from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedFrom>,
    /// Whether the connections were over TLS and the server's certificate was not verified.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tls_unverified: bool,
    /// The share of the connects over TLS that were to offer a session, if there was one; absent
    /// where the connections were plain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_resume: Option<f64>,
    /// The reason why the run ended; `null` if the file does not say.
    pub end: Option<RunEndReason>,
    /// The reason why the run ended before its plan did, as a sentence without a final full stop;
    /// `null` if it completed its plan.
    pub incomplete: Option<String>,
    /// Lines of the run file that could not be written; absent if there is none.
    #[serde(skip_serializing_if = "is_zero")]
    pub lines_lost: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Users and their iterations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsersSummary {
    /// Users that should have started.
    pub intended: u64,
    /// Users that started; a user that starts again adds one iteration and no user.
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
    /// The most users in an iteration at the end of an interval.
    pub active_most: u64,
    /// The most joined channels, summed over users, at the end of an interval.
    pub joined_most: u64,
    /// Users that waited for an answer when all users began to leave.
    pub waiting: u64,
    /// The longest wait of one of these users, in microseconds.
    pub waiting_us_most: u64,
}

/// Connects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectSummary {
    /// Connects begun, and the connects of users that should have started and did not.
    pub intended: u64,
    /// Connects established.
    pub ok: u64,
    /// Connects failed, by errno or `timeout`.
    pub failed: Tally,
    /// Connects in progress when their user was stopped.
    pub waiting: u64,
    /// Waiting connects whose TCP was established; WebSockets only.
    pub upgrades_waiting: u64,
    /// Handshakes of TLS that resumed the session of an earlier connection; absent if none did.
    #[serde(skip_serializing_if = "is_zero")]
    pub tls_resumed: u64,
    /// Connects established per second in the best second.
    pub rate_most: Option<f64>,
    /// Connects established per second.
    pub rate_mean: Option<f64>,
    /// Time from the intended moment until the connection was established.
    pub latency_us: LatencySummary,
    /// Time from the intended moment until the generator read the event: larger if it read late.
    pub seen_us: LatencySummary,
    /// The part of the connect until TCP was established; WebSockets only.
    pub tcp_latency_us: LatencySummary,
    /// Waits for a connect that never completed.
    pub unanswered_us: LatencySummary,
    /// `latency_us` and `unanswered_us` combined, as a threshold compares it.
    pub judged_us: LatencySummary,
    /// `tcp_latency_us` and its unanswered waits combined, as a threshold compares it.
    pub tcp_judged_us: LatencySummary,
}

/// Arrivals that the schedule planned, and arrivals that started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ArrivalsSummary {
    /// Arrivals that were due.
    pub intended: u64,
    /// Arrivals that started.
    pub achieved: u64,
    /// `achieved` divided by `intended`.
    pub ratio: Option<f64>,
}

/// Turns of `every`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnsSummary {
    /// Turns that came due.
    pub intended: u64,
    /// Turns that began.
    pub started: u64,
    /// Turns that never began because an error ended their loop.
    pub failed: u64,
    /// Turns that had not begun when their user was stopped.
    pub waiting: u64,
}

/// The resources that the generator used, and its lag.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GeneratorSummary {
    /// CPU per established connect, in microseconds.
    pub cpu_us_per_connect: Option<f64>,
    /// CPU per message, in microseconds.
    pub cpu_us_per_message: Option<f64>,
    /// Resident memory per connected user.
    pub rss_bytes_per_user: Option<f64>,
    /// The lag of the generator's steps.
    pub lag_us: LatencySummary,
    /// The time of the largest lag, in seconds since the run began; `null` if the generator was
    /// never late.
    pub lag_most_at_s: Option<f64>,
    /// The grade that this lag alone would give the run.
    pub lag_grade: Grade,
    /// The grade that the run would have without this lag.
    #[serde(skip)]
    pub grade_without_lag: Grade,
    /// The share of messages, joins, pushes and probes whose arrival was timed by the kernel;
    /// `null` if there were none.
    pub by_kernels_clock: Option<f64>,
    /// The number of event loops.
    pub cores: u64,
    /// CPUs that it kept busy on average.
    pub cpu_cores_used: Option<f64>,
    /// The share of its ceiling that it used in the busiest second; `null` if none was measured
    /// before the run.
    pub ceiling_share: Option<f64>,
    /// Whether that ceiling was measured over TLS.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ceiling_over_tls: bool,
}

/// The resources that the whole machine used: generator, server and kernel, if all are on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineSummary {
    /// CPUs on line.
    pub cpus: u64,
    /// The share of CPU time that was neither idle nor stolen.
    pub cpu_busy_share: Option<f64>,
    /// The share of CPU time that the hypervisor gave to others.
    pub cpu_stolen_share: Option<f64>,
    /// CPU time of all programs per established connect, in microseconds.
    pub cpu_us_per_connect: Option<f64>,
    /// CPU time of all programs per message, in microseconds.
    pub cpu_us_per_message: Option<f64>,
}

/// The shortest wait that counts as overdue, in microseconds; …
const OVERDUE_US: u64 = 500_000;
/// … and the multiple of the slowest answer that it must exceed.
const OVERDUE_TIMES: u64 = 2;

impl Summary {
    /// Returns the costs of the server, throng's or another, as far as they are known.
    pub fn server_costs(&self) -> Option<ServerCosts> {
        let of = |server: &ServerSummary| ServerCosts {
            cpu_us_per_connection: server.cpu_us_per_connection,
            cpu_us_per_message: server.cpu_us_per_message,
            rss_bytes_per_connection: server.rss_bytes_per_connection,
            cpu_cores_used: server.cpu_cores_used,
        };
        self.server.as_ref().map(of).or(self.foreign_server)
    }

    /// Summarizes a run file that is in memory.
    pub fn of(file: &RunFile) -> Self {
        let mut fold = SummaryFold::new(&file.header);
        file.intervals.iter().for_each(|interval| fold.add(interval));
        fold.finish_read(file.end.as_ref(), file.lines_torn)
    }

    /// Summarizes a run file while reading it line by line, so the run may have any length.
    pub fn read(input: impl std::io::BufRead) -> Result<Self, ReadError> {
        let mut reader = RunFileReader::open(input)?;
        let mut fold = SummaryFold::new(reader.header());
        while let Some(interval) = reader.next_interval()? {
            fold.add(&interval);
        }
        Ok(fold.finish_read(reader.end(), reader.lines_torn()))
    }

    /// Describes the users that waited at the end for longer than any answer had taken, as a
    /// sentence without a final full stop. No histogram holds their full waits: the target may have
    /// stalled.
    pub fn overdue(&self) -> Option<String> {
        let slowest =
            Operation::requests().filter_map(|of| Some(self.operation(of)?.latency_us.max));
        let slowest_us = slowest.max().unwrap_or(0);
        let UsersSummary { waiting, waiting_us_most: waited_us, .. } = self.users;
        let is_overdue = waited_us > OVERDUE_US && waited_us / OVERDUE_TIMES > slowest_us;
        (waiting > 0 && is_overdue).then(|| {
            format!(
                "{} were waiting for an answer when the run ended, one of them for {}",
                if waiting == 1 {
                    "one user".to_owned()
                } else {
                    format!("{} users", brief_count(waiting as f64))
                },
                brief_micros(waited_us)
            )
        })
    }
}
