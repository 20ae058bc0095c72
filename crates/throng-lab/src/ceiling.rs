//! What the generator does at most on this machine, measured before a run against a peer that does nothing.
//!
//! Both ends are processes of this program, as in the labs: the generator that runs afterwards has not grown by what the
//! calibration took, and what a killed process held is gone. Connections are reset, so no port of theirs stays in TIME-WAIT.
//! Three short loads follow one another: users who connect and go, users who talk without a pause, and users who are
//! there and let their timers run. Each does what the scenario does, in the scenario's protocol, and nothing else.
//! One of the first two that tells nothing, as on a busy machine, is run again.

mod traffic;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use throng_doctor::ProcRoot;
use throng_doctor::cgroup::{CgroupCpu, CgroupReader};
use throng_load::scenario::Protocol;
use throng_report::runfile::Ceiling;
use throng_report::{Histogram, Interval, LoadCounters, Summary};

use crate::error::LabError;
use crate::measure::{rate_within, steps};
use crate::names::CALIBRATION;
use crate::options::LabOptions;
use crate::test_bed::{LoadSpec, NextStep, ServerEndpoint, ServerSpec, TestBed};
pub use traffic::Traffic;
use traffic::{Part, Parts};

/// What to measure, and how long it may take.
#[derive(Clone, Debug)]
pub struct CeilingOptions {
    /// About how long all of it takes; starting the processes comes on top, and so does what is run
    /// again. Default 2 s.
    pub length: Duration,
    /// What is spoken.
    pub protocol: Protocol,
    /// What users say.
    pub traffic: Traffic,
    /// Event loops of the generator, which are more useful than CPUs only for their fd tables. Default: one a CPU.
    pub cores: Option<usize>,
    /// Connections for which both ends have room.
    pub users_most: u64,
    /// Whether the target is on another machine: the CPU time that the peer takes here is then left out.
    pub target_is_remote: bool,
    /// The program whose `serve` and `run` are the two ends. Default: this one.
    pub program: Option<PathBuf>,
    /// Set to end it at once.
    pub stop: Arc<AtomicBool>,
}

impl Default for CeilingOptions {
    fn default() -> Self {
        Self {
            length: Duration::from_secs(2),
            protocol: Protocol::Tcp,
            traffic: Traffic::Silent,
            cores: None,
            users_most: USERS_MOST,
            target_is_remote: false,
            program: None,
            stop: Arc::default(),
        }
    }
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct Calibration {
    /// What the generator does at most.
    pub ceiling: Ceiling,
    /// What things cost both ends.
    pub costs: PeerCosts,
}

/// CPU time of each connect and message, and memory of each connection, at both ends of a calibration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PeerCosts {
    /// CPU time of the generator for each connect, in microseconds.
    pub load_connect_us: Option<f64>,
    /// CPU time of the generator for each message, in microseconds.
    pub load_message_us: Option<f64>,
    /// CPU time of the server for each connection, in microseconds.
    pub server_connect_us: Option<f64>,
    /// CPU time of the server for each message, in microseconds.
    pub server_message_us: Option<f64>,
    /// Resident memory of the server for each connection.
    pub server_bytes: Option<f64>,
}

/// Measures it.
///
/// # Errors
/// [`LabError`]: no peer could be started, or the calibration was ended early.
pub fn measure(options: &CeilingOptions) -> Result<Calibration, LabError> {
    let lab = LabOptions {
        program: options.program.clone(),
        stop: Arc::clone(&options.stop),
        ..LabOptions::default()
    };
    let test_bed = TestBed::new(CALIBRATION, &lab)?;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = options.cores.map_or(cpus, |cores| cores.min(cpus));
    let parts = Parts::new(options.protocol, options.traffic, options.length);
    let quota = Quota::now();
    let server = test_bed.serve(ServerSpec::new("peer", parts.handler(), cpus as u64))?;
    let load = |part: &Part| run_part(&test_bed, part, &server.endpoint, cores);

    let room = options.users_most;
    let busy_users = (USERS_PER_CPU * cpus as u64).min(room);
    let mut found = Calibration::default();
    let Calibration { ceiling, costs } = &mut found;

    let part = parts.connects(busy_users);
    let connects = |counters: &LoadCounters| counters.connects_ok;
    let ((_, summary), per_s) = run_until_measured(
        || load(&part),
        |(run, _)| rate_within(run, parts.busy_window(), connects),
    )?;
    ceiling.connects_per_s = per_s;
    costs.load_connect_us = summary.generator.cpu_us_per_connect;
    costs.server_connect_us = server_costs(&summary, |server| server.cpu_us_per_connection);

    if let Some(part) = parts.messages(busy_users) {
        let messages = |counters: &LoadCounters| {
            counters.pushes_ok
                + match options.traffic {
                    Traffic::Answered => counters.messages_answered,
                    _ => counters.messages_sent,
                }
        };
        let ((_, summary), per_s) = run_until_measured(
            || load(&part),
            |(run, _)| rate_within(run, parts.busy_window(), messages),
        )?;
        ceiling.messages_per_s = per_s;
        costs.load_message_us = summary.generator.cpu_us_per_message;
        costs.server_message_us = server_costs(&summary, |server| server.cpu_us_per_message);
    }

    let per_s = ceiling.connects_per_s.unwrap_or(0.0) * SHARE_WHILE_THEY_COME;
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

    let held_to = quota.limiting_cpus();
    if options.target_is_remote || held_to.is_some() {
        let cpus = held_to.map_or(cores as f64, |quota| quota.min(cores as f64));
        ceiling.connects_per_s = without_peer(ceiling.connects_per_s, costs.load_connect_us, cpus);
        ceiling.messages_per_s = without_peer(ceiling.messages_per_s, costs.load_message_us, cpus);
    }
    Ok(found)
}

/// The CPU quota of the control group that both ends of a calibration share. The server of the run may well be outside of it.
#[derive(Debug)]
struct Quota {
    began: Instant,
    before: Option<CgroupCpu>,
}

impl Quota {
    /// As it stands before the calibration.
    fn now() -> Self {
        Self { began: Instant::now(), before: quota() }
    }

    /// Returns the CPUs of the quota, where it kept the two ends waiting.
    fn limiting_cpus(&self) -> Option<f64> {
        let (before, after) = (self.before.as_ref()?, quota()?);
        let waited_us = after.throttled_us.saturating_sub(before.throttled_us);
        let is_held = waited_us as f64 > self.began.elapsed().as_micros() as f64 * HELD_SHARE_MIN;
        after.limit_millicpus.filter(|_| is_held).map(|limit| limit as f64 / 1000.0)
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
) -> Result<(Vec<Interval>, Summary), LabError> {
    let spec = LoadSpec {
        target: part.target,
        interval: INTERVAL,
        cores: Some(cores),
        killed_on_stop: true,
        ..LoadSpec::tcp(part.name, &part.scenario, part.seconds)
    };
    let run = test_bed.load(&spec, server, &mut |_| {}, |_| NextStep::Continue)?;
    let summary = Summary::of(&run.file);
    Ok((run.file.intervals, summary))
}

/// Runs a part until it tells a rate, [`TRIES_MAX`] times at most. Returns its last run and that
/// rate. On a machine that is busy with other things, a part may have no whole interval.
fn run_until_measured<R, E>(
    mut run: impl FnMut() -> Result<R, E>,
    rate: impl Fn(&R) -> Option<f64>,
) -> Result<(R, Option<f64>), E> {
    let mut tries = 1;
    loop {
        let ran = run()?;
        let rate = rate(&ran);
        if rate.is_some() || tries == TRIES_MAX {
            return Ok((ran, rate));
        }
        tries += 1;
    }
}

/// What so many CPUs do of something that takes the generator `each_us`, when no peer takes CPU time beside it; at least what it did
/// with one.
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

/// How late timers were while everybody was there and nobody went: both take time that the timers then wait for.
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

/// Connections and resident memory, for as long as connections became more.
fn points(run: &[Interval], of: impl Fn(&Interval) -> Option<(u64, u64)>) -> Vec<(u64, u64)> {
    let mut points: Vec<(u64, u64)> = Vec::new();
    for point in run.iter().filter_map(of).filter(|(_, bytes)| *bytes > 0) {
        if points.last().is_none_or(|last| point.0 > last.0) {
            points.push(point);
        }
    }
    points
}

/// Memory of each connection: by how much more of them the process grew from half of them on. What it grew by before that is
/// its buffers' and histograms', which are touched by the first.
fn bytes_each(points: &[(u64, u64)]) -> Option<f64> {
    let last = points.last()?;
    let half = points.iter().find(|(connections, _)| *connections >= last.0 / 2)?;
    let (connections, bytes) = (last.0 - half.0, last.1.saturating_sub(half.1));
    (connections >= MEMORY_SHOWS && bytes > 0).then(|| bytes as f64 / connections as f64)
}

/// A quota that held up less of the time is not what limits them.
const HELD_SHARE_MIN: f64 = 0.05;
/// How often a part is run that tells nothing.
const TRIES_MAX: usize = 3;
/// The shortest that `throng run` takes.
const INTERVAL: Duration = Duration::from_millis(100);
/// Enough to keep both ends busy, few enough to wait in no queue for long.
const USERS_PER_CPU: u64 = 500;
/// More would take longer and tell nothing new.
const USERS_MOST: u64 = 20_000;
/// With fewer connections, other things that the process takes memory for hide theirs.
const MEMORY_SHOWS: u64 = 1_500;
/// At what share of the most connects the users come whose timers and memory are measured: late ones would disturb both.
const SHARE_WHILE_THEY_COME: f64 = 0.7;

#[cfg(test)]
mod tests {
    use throng_report::LoadInterval;

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

    /// Checks how many runs it takes when run number n tells `rates[n - 1]`, and what comes of them.
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
    fn a_part_that_tells_nothing_is_run_again_a_few_times() {
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
        assert_eq!((failed, begun), (Err("no peer"), 1), "what fails is not tried again");
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
    fn timers_are_judged_while_nobody_comes_or_goes() {
        let mut run =
            users(&[(0, 9), (4_000, 9_000), (8_000, 8_000), (8_000, 150), (8_000, 5_000)]);
        run[4].load.as_mut().unwrap().counters.users_finished = 1;
        assert_eq!(timer_error(&run), Some(150));
        assert_eq!(timer_error(&run[..3]), None);
        assert_eq!(timer_error(&users(&[(0, 5), (0, 5)])), None, "nobody was there");
    }

    #[test]
    fn connections_that_go_are_no_points() {
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
