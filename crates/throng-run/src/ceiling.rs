//! The generator's ceiling on this machine, measured before a run against a peer that does as
//! little as possible.
//!
//! Server and generator are processes of this program, as in the labs. So the memory of the
//! calibration does not count for the generator that runs afterwards, and a killed process leaves
//! nothing behind. Connections are reset, so none of their ports stays in TIME-WAIT.
//!
//! Three short loads follow one another: users that connect and close, users that send messages
//! without a pause, and users that stay and run their timers. Each load does what the scenario
//! does, in the scenario's protocol, over TLS if its target is, and nothing else. Over TLS, the
//! users connect with full handshakes, and then once more with resumed ones. If a load of connects
//! or messages measures no rate, as on a busy machine, it runs again.

mod traffic;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

pub use throng_load::program::Traffic;
use throng_load::scenario::Protocol;
use throng_machine::ProcRoot;
use throng_machine::cgroup::{CgroupCpu, CgroupReader};
use throng_measure::runfile::Ceiling;
use throng_measure::{Histogram, Interval, LoadCounters};
use throng_report::Summary;

use crate::rates::{rate_within, steps};
use crate::test_bed::{
    LoadSpec, NextStep, ServerEndpoint, ServerSpec, TestBed, TestBedError, TestBedOptions,
};
use traffic::{Part, Parts};

/// The options of a calibration.
#[derive(Clone, Debug)]
pub struct CeilingOptions {
    /// The approximate length of all loads, without the start of the processes and without repeated
    /// loads. Default 2 s.
    pub length: Duration,
    /// The scenario's protocol.
    pub protocol: Protocol,
    /// The messages of the scenario's users.
    pub traffic: Traffic,
    /// The share of the connects that offer to resume a session of TLS; `None` for plain ones.
    pub resume: Option<f64>,
    /// The generator's cores. More cores than CPUs only give more fd tables. Default: one per CPU.
    pub cores: Option<usize>,
    /// The connections for which server and generator have room.
    pub users_most: u64,
    /// True when the target is on another machine. The ceiling then leaves out the CPU time that
    /// the peer takes here.
    pub target_is_remote: bool,
    /// The program that runs as `serve` and `run`. Default: this program.
    pub program: Option<PathBuf>,
    /// Set to end the calibration at once.
    pub stop: Arc<AtomicBool>,
}

impl Default for CeilingOptions {
    fn default() -> Self {
        Self {
            length: Duration::from_secs(2),
            protocol: Protocol::default(),
            traffic: Traffic::Silent,
            resume: None,
            cores: None,
            users_most: USERS_MOST,
            target_is_remote: false,
            program: None,
            stop: Arc::default(),
        }
    }
}

/// The result of a calibration.
#[derive(Clone, Debug, Default)]
pub struct Calibration {
    /// The most that the generator can do.
    pub ceiling: Ceiling,
    /// The costs of connections and messages.
    pub costs: PeerCosts,
}

/// CPU time of each connect and message, and memory of each connection, in a calibration's server
/// and generator.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PeerCosts {
    /// CPU time of the generator for each connect, in microseconds.
    pub load_connect_us: Option<f64>,
    /// CPU time of the generator for each connect that resumes a session of TLS, in microseconds.
    pub load_resumed_us: Option<f64>,
    /// CPU time of the generator for each message, in microseconds.
    pub load_message_us: Option<f64>,
    /// CPU time of the server for each connection, in microseconds.
    pub server_connect_us: Option<f64>,
    /// CPU time of the server for each message, in microseconds.
    pub server_message_us: Option<f64>,
    /// Resident memory of the server for each connection.
    pub server_bytes: Option<f64>,
}

/// Measures the generator's ceiling.
///
/// # Errors
/// [`TestBedError`]: the peer did not start, or the user ended the calibration early.
pub fn measure(options: &CeilingOptions) -> Result<Calibration, TestBedError> {
    let over_tls = options.resume.is_some();
    let bed = TestBedOptions {
        program: options.program.clone(),
        over_tls,
        stop: Arc::clone(&options.stop),
        ..TestBedOptions::default()
    };
    let test_bed = TestBed::new("calibration", &bed)?;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = options.cores.map_or(cpus, |cores| cores.min(cpus));
    let parts = Parts::new(options.protocol, options.traffic, options.length, over_tls);
    let quota = Quota::now();
    let server = test_bed.serve(ServerSpec::new("peer", parts.handler(), cpus as u64))?;
    let load = |part: &Part| run_part(&test_bed, part, &server.endpoint, cores);

    let room = options.users_most;
    let busy_users = (USERS_PER_CPU * cpus as u64).min(room);
    let mut calibration = Calibration::default();
    let Calibration { ceiling, costs } = &mut calibration;

    ceiling.over_tls = over_tls;
    let connects = |part: &Part| {
        let connects = |counters: &LoadCounters| counters.connects_ok;
        run_until_measured(
            || load(part),
            |(run, _)| rate_within(run, parts.busy_window(), connects),
        )
    };
    let ((_, summary), per_s) = connects(&parts.connects(busy_users))?;
    ceiling.connects_per_s = per_s;
    costs.load_connect_us = summary.generator.cpu_us_per_connect;
    costs.server_connect_us = server_costs(&summary, |server| server.cpu_us_per_connection);
    if options.resume.is_some_and(|share| share > 0.0) {
        let ((_, summary), per_s) = connects(&parts.resumed_connects(busy_users))?;
        ceiling.resumed_per_s = per_s;
        costs.load_resumed_us = summary.generator.cpu_us_per_connect;
    }

    if let Some(part) = parts.messages(busy_users) {
        let messages = |counters: &LoadCounters| match options.traffic {
            Traffic::Answered => counters.requests_answered(),
            _ => counters.messages_sent + counters.pushes_ok + counters.http_ok,
        };
        let ((_, summary), per_s) = run_until_measured(
            || load(&part),
            |(run, _)| rate_within(run, parts.busy_window(), messages),
        )?;
        ceiling.messages_per_s = per_s;
        costs.load_message_us = summary.generator.cpu_us_per_message;
        costs.server_message_us = server_costs(&summary, |server| server.cpu_us_per_message);
    }

    let per_s = ceiling.connects_per_s.unwrap_or(0.0) * ARRIVAL_SHARE;
    let (run, _) = load(&parts.users(per_s, room.min(USERS_MOST)))?;
    ceiling.timer_error_us_p99 = timer_error(&run);
    ceiling.bytes_per_user = bytes_each(&points(&run, |interval| {
        interval.load.as_ref().map(|load| (load.counters.connected, load.process.rss_bytes))
    }));
    costs.server_bytes = bytes_each(&points(&run, |interval| {
        let server = interval.server.as_ref()?;
        Some((server.counters.open, server.process.rss_bytes))
    }));
    server.stop();

    let quota_cpus = quota.limiting_cpus();
    if options.target_is_remote || quota_cpus.is_some() {
        let cpus = quota_cpus.map_or(cores as f64, |quota| quota.min(cores as f64));
        ceiling.connects_per_s = without_peer(ceiling.connects_per_s, costs.load_connect_us, cpus);
        ceiling.resumed_per_s = without_peer(ceiling.resumed_per_s, costs.load_resumed_us, cpus);
        ceiling.messages_per_s = without_peer(ceiling.messages_per_s, costs.load_message_us, cpus);
    }
    Ok(calibration)
}

/// The CPU quota of the control group that a calibration's server and generator share. The run's
/// server may be outside of that group.
#[derive(Debug)]
struct Quota {
    began: Instant,
    before: Option<CgroupCpu>,
}

impl Quota {
    /// Reads the quota before the calibration.
    fn now() -> Self {
        Self { began: Instant::now(), before: quota() }
    }

    /// Returns the CPUs of the quota, if it throttled server and generator.
    fn limiting_cpus(&self) -> Option<f64> {
        let (before, after) = (self.before.as_ref()?, quota()?);
        let throttled_us = after.throttled_us.saturating_sub(before.throttled_us) as f64;
        let is_limit = throttled_us > self.began.elapsed().as_micros() as f64 * THROTTLED_SHARE_MIN;
        after.limit_millicpus.filter(|_| is_limit).map(|limit| limit as f64 / 1000.0)
    }
}

fn quota() -> Option<CgroupCpu> {
    CgroupReader::locate(&ProcRoot::default(), std::process::id()).cpu().known().cloned()
}

/// Runs one part to its end.
fn run_part(
    test_bed: &TestBed,
    part: &Part,
    server: &ServerEndpoint,
    cores: usize,
) -> Result<(Vec<Interval>, Summary), TestBedError> {
    let spec = LoadSpec {
        interval: INTERVAL,
        cores: Some(cores),
        killed_on_stop: true,
        ..LoadSpec::new(part.name, &part.target, &part.scenario, part.seconds)
    };
    let run = test_bed.load(&spec, server, &mut |_| {}, |_| NextStep::Continue)?;
    let summary = Summary::of(&run.file);
    Ok((run.file.intervals, summary))
}

/// Runs a part until it measures a rate, [`TRIES_MAX`] times at most. Returns the last run and its
/// rate. On a busy machine, a part may have no whole interval.
fn run_until_measured<R, E>(
    mut run: impl FnMut() -> Result<R, E>,
    rate: impl Fn(&R) -> Option<f64>,
) -> Result<(R, Option<f64>), E> {
    let mut tries = 1;
    loop {
        let result = run()?;
        let rate = rate(&result);
        if rate.is_some() || tries == TRIES_MAX {
            return Ok((result, rate));
        }
        tries += 1;
    }
}

/// Returns the rate that the generator reaches on `cpus` without a peer on the same machine, where
/// each operation costs it `each_us`. The result is at least `per_s`, the rate with a peer.
fn without_peer(per_s: Option<f64>, each_us: Option<f64>, cpus: f64) -> Option<f64> {
    let full = each_us.filter(|us| *us > 0.0).map_or(0.0, |us| cpus * 1e6 / us);
    per_s.map(|per_s| per_s.max(full))
}

fn server_costs(
    summary: &Summary,
    cost: impl Fn(&throng_report::summary::ServerSummary) -> Option<f64>,
) -> Option<f64> {
    summary.server.as_ref().and_then(cost)
}

/// Returns the p99 of the timers' lag while all users were connected and none left. Arrivals and
/// departures take CPU time that delays the timers.
fn timer_error(run: &[Interval]) -> Option<u64> {
    let mut lag = Histogram::new();
    for (_, before, now, _) in steps(run) {
        let grown = now.counters.since(&before.counters);
        let is_quiet = grown.connects_ok == 0 && grown.users_finished + grown.users_failed == 0;
        if is_quiet && now.counters.connected > 0 {
            lag.merge(&now.lag);
        }
    }
    (!lag.is_empty()).then(|| lag.percentile(99.0))
}

/// Returns connections and resident memory at each interval in which the connections grew.
fn points(run: &[Interval], of: impl Fn(&Interval) -> Option<(u64, u64)>) -> Vec<(u64, u64)> {
    let mut points: Vec<(u64, u64)> = Vec::new();
    for point in run.iter().filter_map(of).filter(|(_, bytes)| *bytes > 0) {
        if points.last().is_none_or(|last| point.0 > last.0) {
            points.push(point);
        }
    }
    points
}

/// Returns the memory of each connection: the growth of the process over the second half of the
/// connections. The growth before that includes buffers and histograms, which the first ones touch.
fn bytes_each(points: &[(u64, u64)]) -> Option<f64> {
    let last = points.last()?;
    let half = points.iter().find(|(connections, _)| *connections >= last.0 / 2)?;
    let (connections, bytes) = (last.0 - half.0, last.1.saturating_sub(half.1));
    (connections >= MEMORY_SHOWS && bytes > 0).then(|| bytes as f64 / connections as f64)
}

/// The least share of throttled time with which a quota counts as the limit.
const THROTTLED_SHARE_MIN: f64 = 0.05;
/// The most runs of a part that measures no rate.
const TRIES_MAX: usize = 3;
/// The shortest interval that `throng run` accepts.
const INTERVAL: Duration = Duration::from_millis(100);
/// The users of a busy load: enough to keep server and generator busy, few enough for short queues.
const USERS_PER_CPU: u64 = 500;
/// The most users whose timers and memory are measured; more would take longer without new results.
const USERS_MOST: u64 = 20_000;
/// The fewest connections whose memory shows beside the other memory of the process.
const MEMORY_SHOWS: u64 = 1_500;
/// The share of the highest connect rate at which these users arrive. Late arrivals would disturb
/// both measurements.
const ARRIVAL_SHARE: f64 = 0.7;

#[cfg(test)]
mod tests {
    use throng_measure::LoadInterval;

    use super::*;

    #[test]
    fn memory_is_that_of_the_later_half() {
        let points = [(0, 5_000_000), (3_000, 8_000_000), (6_000, 8_660_000), (9_000, 9_320_000)];
        assert_eq!(bytes_each(&points), Some(220.0));
    }

    #[test]
    fn memory_of_too_few_is_unknown() {
        assert_eq!(bytes_each(&[]), None);
        assert_eq!(bytes_each(&[(1_000, 100), (2_000, 200_000)]), None);
        assert_eq!(bytes_each(&[(4_000, 1_000), (8_000, 1_000)]), None);
    }

    #[test]
    fn a_generator_without_its_peer_does_what_fits_into_its_cpus() {
        assert_eq!(without_peer(Some(20_000.0), Some(50.0), 2.0), Some(40_000.0));
        assert_eq!(without_peer(Some(2_000.0), Some(50.0), 0.2), Some(4_000.0), "of a quota");
        assert_eq!(without_peer(Some(20_000.0), Some(50.0), 1.0), Some(20_000.0));
        assert_eq!(without_peer(Some(20_000.0), None, 2.0), Some(20_000.0));
        assert_eq!(without_peer(None, Some(50.0), 2.0), None, "nothing was done at all");
    }

    /// Checks the number of runs and the result when run number n measures `rates[n - 1]`.
    #[track_caller]
    fn check_tries(rates: &[Option<f64>], runs: usize, rate: Option<f64>) {
        let mut begun = 0;
        let found = run_until_measured(
            || {
                begun += 1;
                Ok::<_, ()>(begun)
            },
            |number| rates[number - 1],
        );
        assert_eq!(found, Ok((runs, rate)), "{rates:?}");
        assert_eq!(begun, runs, "{rates:?}");
    }

    #[test]
    fn a_part_that_measures_no_rate_is_run_again_a_few_times() {
        check_tries(&[Some(5.0), Some(6.0)], 1, Some(5.0));
        check_tries(&[None, Some(6.0), Some(7.0)], 2, Some(6.0));
        check_tries(&[None, None, Some(7.0)], 3, Some(7.0));
        check_tries(&[None, None, None, Some(8.0)], 3, None);
        let mut begun = 0;
        let failed = run_until_measured(
            || {
                begun += 1;
                Err::<(), _>("no peer")
            },
            |()| None,
        );
        assert_eq!((failed, begun), (Err("no peer"), 1), "a failed run is not repeated");
    }

    fn users(at: &[(u64, u64)]) -> Vec<Interval> {
        let interval = |&(connects_ok, lag_us): &(u64, u64)| {
            let mut load = LoadInterval::default();
            load.counters.connects_ok = connects_ok;
            load.counters.connected = connects_ok;
            load.process.rss_bytes = 1;
            load.lag.record_n(lag_us, 100);
            Interval { load: Some(load), span_ms: 100, ..Interval::default() }
        };
        at.iter().map(interval).collect()
    }

    #[test]
    fn timers_are_judged_while_no_user_arrives_or_leaves() {
        let mut run =
            users(&[(0, 9), (4_000, 9_000), (8_000, 8_000), (8_000, 150), (8_000, 5_000)]);
        run[4].load.as_mut().unwrap().counters.users_finished = 1;
        assert_eq!(timer_error(&run), Some(150));
        assert_eq!(timer_error(&run[..3]), None);
        assert_eq!(timer_error(&users(&[(0, 5), (0, 5)])), None, "no user was connected");
    }

    #[test]
    fn closed_connections_are_no_points() {
        let run = users(&[(0, 0), (5, 0), (5, 0), (9, 0), (2, 0)]);
        let found = points(&run, |interval| {
            interval.load.as_ref().map(|load| (load.counters.connected, load.process.rss_bytes))
        });
        assert_eq!(found, [(0, 1), (5, 1), (9, 1)]);
    }

    #[test]
    fn a_calibration_without_a_peer_says_why() {
        let options = CeilingOptions {
            program: Some("/no/such/program".into()),
            ..CeilingOptions::default()
        };
        let error = measure(&options).unwrap_err().to_string();
        assert!(error.contains("could not be started"), "{error}");
    }
}
