//! What a run measures: histograms, counters, operations, events, limits, the run file, findings.
//!
//! One [`Interval`] a second holds everything that the generator, the server and the kernel
//! reported. The run file is those lines. What is made of it (a summary, a verdict on thresholds, a
//! report) is in `throng-report`.
//!
//! ```
//! use throng_measure::Interval;
//! use throng_measure::runfile::{self, RunEnd, RunFileWriter, RunHeader};
//!
//! let mut writer = RunFileWriter::create(Vec::new(), &RunHeader::default())?;
//! let _ = writer.interval(&Interval { at_ms: 1000, span_ms: 1000, ..Interval::default() });
//! let _ = writer.end(&RunEnd::default());
//!
//! let file = runfile::read(&mut writer.into_inner().as_slice())?;
//! assert_eq!(file.intervals.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address_connects;
pub mod arrival;
mod better_clock;
mod ceiling;
mod counters;
mod cue_waits;
mod diagnosis;
mod endpoint;
mod endpoint_facts;
pub mod error_kind;
pub mod events;
pub mod exchange;
pub mod finding;
mod followed;
pub mod histogram;
pub mod http_status;
mod incident;
mod inspection;
pub mod interval;
mod interval_work;
mod kernel_counters;
mod latency_stats;
mod latency_total;
pub mod limit;
mod limit_use;
pub mod metric;
mod operation;
mod operation_interval;
mod operation_times;
mod percentile;
pub mod probe;
mod run_machine;
pub mod runfile;
mod series;
pub mod snapshot;
mod step_interval;
mod target_tls;
pub mod unanswered;
pub mod validity;
pub mod watch;

pub use address_connects::AddressConnects;
pub use arrival::ArrivalLatencies;
pub use counters::*;
pub use cue_waits::CueWaits;
pub use diagnosis::Diagnosis;
pub use endpoint::Endpoint;
pub use endpoint_facts::EndpointFacts;
pub use error_kind::{ErrorClass, ErrorKey, ErrorKind};
pub use events::{RunEvent, RunEventKind, SERVER_SILENT};
pub use exchange::{
    AnswerFault, AnswerPart, ErrorExchange, ErrorTimes, ExchangeSummary, SpokenProtocol,
};
pub use finding::{Evidence, Finding, Severity, Side};
pub use followed::{EarlyClose, FollowedAnswers};
pub use histogram::{Histogram, LatencySummary};
pub use incident::{AnswerGap, Outage};
pub use inspection::{
    BusyConnection, CoreInspection, NodeInspection, ServerInspection, SlowConnection,
    TopicInspection,
};
pub use interval::{Interval, LEAVING, LoadInterval, server_side};
pub use interval_work::{IntervalWork, server_cpu_us};
pub use kernel_counters::KernelCounters;
pub use latency_stats::LatencyStats;
pub use latency_total::LatencyTotal;
pub use limit::Limit;
pub use limit_use::LimitUse;
pub use metric::{Metric, ProcessMetric};
pub use operation::{Operation, OperationCounting, OperationCounts, PerOperation};
pub use operation_interval::OperationInterval;
pub use operation_times::OperationTimes;
pub use percentile::Percentile;
pub use probe::ProbeReport;
pub use run_machine::{MachineInterval, RunMachine};
pub use series::{Growth, Peak, Series};
pub use snapshot::*;
pub use step_interval::{STEP_NAMES_MAX, StepInterval};
pub use target_tls::{CertificateFacts, TargetTls, TlsAgreement, TlsFailure, TlsOffer};
pub use validity::{Grade, Validity};
pub use watch::{WatchHeader, WatchLine};
