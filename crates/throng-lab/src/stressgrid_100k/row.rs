//! A row of the lab: the run of one accept topology, and its result.

use serde::Serialize;
use throng_load::scenario::Quantity;
use throng_measure::{Grade, Interval, Metric, Operation};
use throng_report::Summary;
use throng_run::test_bed::{FinishedRun, LoadSpec, NextStep, ServerSpec};

use crate::error::LabError;
use crate::experiment::Experiment;
use crate::lab::Lab;
use crate::measure::{counter_growth, gauge_max, latency};
use crate::progress::LabProgress;
use crate::sized_scenario::SizedScenario;

/// The result of one accept topology.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Row {
    pub(crate) accept: String,
    /// Connections per second in the best second.
    pub(crate) rate_most: Option<f64>,
    /// p50 of the connects at the height of the load.
    pub(crate) connect_p50_us: Option<u64>,
    /// p90 of the connects at the height of the load.
    pub(crate) connect_p90_us: Option<u64>,
    /// p99 of the connects at the height of the load.
    pub(crate) connect_p99_us: Option<u64>,
    /// p90 of the connects in the worst second.
    pub(crate) connect_p90_us_most: Option<u64>,
    pub(crate) syn_recv_most: Option<u64>,
    pub(crate) accept_queue_most: Option<u64>,
    /// Growth of `TcpExt.ListenOverflows`.
    pub(crate) overflows: Option<u64>,
    /// Growth of `TcpExt.ListenDrops`.
    pub(crate) drops: Option<u64>,
    pub(crate) registry_mailbox_most: Option<u64>,
    /// The server's CPU time per connection, in microseconds.
    pub(crate) server_cpu_us: Option<f64>,
    /// The generator's CPU time per connection, in microseconds.
    pub(crate) load_cpu_us: Option<f64>,
    /// CPUs that the server kept busy on average.
    pub(crate) server_cpus: Option<f64>,
    /// CPUs that the generator kept busy on average.
    pub(crate) load_cpus: Option<f64>,
    pub(crate) connected_most: u64,
    pub(crate) failed: u64,
    /// Share of the TLS handshakes that resumed a session; `None` over plain connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resumed_share: Option<f64>,
    pub(crate) grade: Grade,
    pub(crate) reasons: Vec<String>,
}

/// Returns the lab's scenario for `users`, in `seconds` instead of the article's 31 minutes.
pub(super) fn size(
    lab: &Lab<'_>,
    experiment: &Experiment,
    users: u64,
    seconds: u64,
) -> Result<SizedScenario, LabError> {
    let ours = [
        ("users".to_owned(), Quantity::number(users as f64)),
        ("seconds".to_owned(), Quantity::seconds(seconds as f64)),
    ];
    experiment.size(lab.known().into_iter().chain(ours).collect())
}

/// Runs one accept topology under the article's script.
pub(super) fn run_row(
    lab: &Lab<'_>,
    name: &str,
    accept: &str,
    sized: &SizedScenario,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<FinishedRun, LabError> {
    let users = sized.param("users") as u64;
    // A connection that its client has closed stays open at the server for a moment.
    let cores = lab.machine.cores_for(users + users / 4);
    let server = lab.test_bed.serve(ServerSpec { accept, ..ServerSpec::new(name, "ok", cores) })?;
    let target = sized.target();
    let spec = LoadSpec::new(name, &target, &sized.text, sized.seconds());
    let run = lab.test_bed.load(
        &spec,
        &server.endpoint,
        &mut |event| progress(LabProgress::Run(event)),
        |_| NextStep::Continue,
    )?;
    server.stop();
    Ok(run)
}

/// Computes the row of a run.
pub(super) fn row(accept: &str, run: &FinishedRun) -> Row {
    let intervals = &run.file.intervals;
    let summary = Summary::of(&run.file);
    let at_height = |interval: &&Interval| {
        interval.load.as_ref().is_some_and(|load| load.phase.starts_with("hold"))
    };
    let height =
        latency(intervals.iter().filter(at_height), |load| load.latency(Operation::Connect));
    let worst = intervals
        .iter()
        .filter_map(|interval| interval.load.as_ref())
        .filter(|load| !load.latency(Operation::Connect).is_empty())
        .map(|load| load.latency(Operation::Connect).percentile(90.0))
        .max();
    let server = summary.server.as_ref();
    Row {
        accept: accept.to_owned(),
        rate_most: summary.connect.rate_most,
        connect_p50_us: (height.count > 0).then_some(height.p50),
        connect_p90_us: (height.count > 0).then_some(height.p90).or(worst),
        connect_p99_us: (height.count > 0).then_some(height.p99),
        connect_p90_us_most: worst,
        syn_recv_most: gauge_max(intervals, Metric::LISTENER_SYN_RECV),
        accept_queue_most: gauge_max(intervals, Metric::LISTENER_ACCEPT_QUEUE_MOST),
        overflows: counter_growth(intervals, Metric::TCPEXT_LISTEN_OVERFLOWS),
        drops: counter_growth(intervals, Metric::TCPEXT_LISTEN_DROPS),
        registry_mailbox_most: server.map(|server| server.counters.registry_mailbox_most),
        server_cpu_us: server.and_then(|server| server.cpu_us_per_connection),
        load_cpu_us: summary.generator.cpu_us_per_connect,
        server_cpus: server.and_then(|server| server.cpu_cores_used),
        load_cpus: summary.generator.cpu_cores_used,
        connected_most: summary.users.connected_most,
        failed: summary.connect.failed.total(),
        resumed_share: summary
            .operation(Operation::Tls)
            .map(|tls| summary.connect.tls_resumed as f64 / tls.ok.max(1) as f64),
        grade: summary.validity.grade,
        reasons: summary.validity.reasons.clone(),
    }
}
