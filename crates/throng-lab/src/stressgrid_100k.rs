//! The lab `stressgrid-100k`: how fast can a server take connections, and does it matter how it accepts?

mod verdict;

use serde::Serialize;
use throng_base::units::show_duration;
use throng_report::render::{count, micros, or_dash, rate};
use throng_report::{Grade, Interval, Summary};

use crate::calibrate::{self, calibrate};
use crate::ends::{Go, LoadSpec, Run, ServerSpec};
use crate::lab::{Lab, LabError, LabInfo, LabProgress};
use crate::measure::{grown, latency, most};
use crate::report::{LabReport, LabTable, SCHEMA};

pub(crate) const INFO: LabInfo = LabInfo {
    name: "stressgrid-100k",
    article: "Achieving 100k connections per second with Elixir (Stressgrid, 2019)",
    summary: "connections per second, once for each way to accept: one registry, one listener, one a core",
};

/// In the article's order, from the slowest to the fastest.
const VARIANTS: [&str; 3] = ["dispatch", "shared", "reuseport"];

/// What one way to accept came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Row {
    pub(crate) accept: String,
    /// Connections per second in the best second.
    pub(crate) rate_most: Option<f64>,
    /// While the load was at its height.
    pub(crate) connect_p90_us: Option<u64>,
    /// The worst second.
    pub(crate) connect_p90_us_most: Option<u64>,
    pub(crate) syn_recv_most: Option<u64>,
    pub(crate) accept_queue_most: Option<u64>,
    /// `TcpExt.ListenOverflows`.
    pub(crate) overflows: Option<u64>,
    /// `TcpExt.ListenDrops`.
    pub(crate) drops: Option<u64>,
    pub(crate) registry_mailbox_most: Option<u64>,
    /// The server's CPU per connection, in microseconds.
    pub(crate) server_cpu_us: Option<f64>,
    /// The generator's.
    pub(crate) load_cpu_us: Option<f64>,
    /// CPUs that each end kept busy on average.
    pub(crate) server_cpus: Option<f64>,
    pub(crate) load_cpus: Option<f64>,
    pub(crate) connected_most: u64,
    pub(crate) failed: u64,
    pub(crate) grade: Grade,
    pub(crate) reasons: Vec<String>,
}

pub(crate) fn run(
    lab: &Lab<'_>,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<LabReport, LabError> {
    let rows_of = VARIANTS.len() + usize::from(lab.options.users.is_none());
    let calibrated = match lab.options.users {
        Some(_) => None,
        None => Some(calibrate(lab, "  - connect\n  - close\n", rows_of, progress)?),
    };
    let mut interrupted = calibrated.is_some_and(|calibrated| calibrated.interrupted);
    let capacity = calibrated.and_then(|calibrated| calibrated.rate);
    let users = lab.users(users_for(capacity.unwrap_or(0.0)));
    lab.check(users)?;
    let seconds = lab.options.seconds.unwrap_or(30);
    let text = scenario(users, seconds);
    let mut rows = Vec::new();
    for (i, accept) in VARIANTS.into_iter().enumerate() {
        if interrupted || lab.stage.is_stopped() {
            interrupted = true;
            break;
        }
        let number = rows_of - VARIANTS.len() + i + 1;
        progress(LabProgress::Row { name: accept, number, of: rows_of, seconds });
        // A connection that its client has closed is open at the server for a moment more.
        let cores = lab.machine.cores_for(users + users / 4);
        let server =
            lab.stage.serve(ServerSpec { accept, ..ServerSpec::new(accept, "ok", cores) })?;
        let spec = LoadSpec::tcp(accept, &text, seconds);
        let run = lab.stage.load(&spec, &server.at, progress, |_| Go::On)?;
        server.stop();
        interrupted |= run.interrupted;
        rows.push(row(accept, &run));
    }
    let mut setup = format!(
        "{} users, each connects, waits 1 s ±10 %, closes, comes back; {seconds} s a row on {} CPUs",
        count(users as f64),
        lab.machine.cpus
    );
    if let Some(capacity) = capacity {
        setup += &format!(
            "; {} % of the {} that it took in a {} s calibration with both ends on it",
            SHARE_OFFERED_PERCENT,
            rate(capacity),
            calibrate::SECONDS
        );
    }
    if lab.stage.is_isolated() {
        setup += ", each end in its own network namespace";
    }
    Ok(LabReport {
        schema: SCHEMA,
        diagnoses: Vec::new(),
        lab: INFO.name,
        article: INFO.article,
        setup,
        tables: tables(&rows),
        verdict: verdict::verdict(&rows, users, capacity),
        notes: notes(&rows),
        grade: rows.iter().map(|row| row.grade).max().unwrap_or_default(),
        interrupted,
        rows: serde_json::to_value(&rows).expect("rows are plain data"),
    })
}

/// Each user makes nearly one connection a second, so that many users offer their share of `capacity`.
fn users_for(capacity: f64) -> u64 {
    ((capacity / 100.0 * SHARE_OFFERED_PERCENT as f64) as u64).clamp(1, 100_000)
}

/// The article's script for `users`, in `seconds` instead of its 31 minutes.
fn scenario(users: u64, seconds: u64) -> String {
    // The article: 15 minutes up, 1 minute sustained, 15 minutes down. Ramps that a server cannot
    // follow would say nothing, so half of the time goes up and the height gets its share.
    let ms = |percent: u64| show_duration(std::time::Duration::from_millis(seconds * 10 * percent));
    text(users, &ms(50), &ms(35), &ms(15))
}

fn text(users: u64, up: &str, hold: &str, down: &str) -> String {
    format!(
        "target: tcp://127.0.0.1:5555
load:
  - ramp: {{to: {users}, over: {up}}}
  - hold: {{for: {hold}}}
  - ramp: {{to: 0, over: {down}}}
user:
  - connect
  - wait: 1s ±10%
  - close
"
    )
}

fn row(accept: &str, run: &Run) -> Row {
    let intervals = &run.file.intervals;
    let summary = Summary::of(&run.file);
    let at_height = |interval: &&Interval| {
        interval.load.as_ref().is_some_and(|load| load.phase.starts_with("hold"))
    };
    let height = latency(intervals.iter().filter(at_height), |load| &load.connect);
    let worst = intervals
        .iter()
        .filter_map(|interval| interval.load.as_ref())
        .filter(|load| !load.connect.is_empty())
        .map(|load| load.connect.percentile(90.0))
        .max();
    let server = summary.server.as_ref();
    Row {
        accept: accept.to_owned(),
        rate_most: summary.connect.rate_most,
        connect_p90_us: (height.count > 0).then_some(height.p90).or(worst),
        connect_p90_us_most: worst,
        syn_recv_most: most(intervals, "listener.syn_recv"),
        accept_queue_most: most(intervals, "listener.accept_queue_most"),
        overflows: grown(intervals, "TcpExt.ListenOverflows"),
        drops: grown(intervals, "TcpExt.ListenDrops"),
        registry_mailbox_most: server.map(|server| server.counters.registry_mailbox_most),
        server_cpu_us: server.and_then(|server| server.cpu_us_per_connection),
        load_cpu_us: summary.generator.cpu_us_per_connect,
        server_cpus: server.and_then(|server| server.cpu_cores_used),
        load_cpus: summary.generator.cpu_cores_used,
        connected_most: summary.users.connected_most,
        failed: summary.connect.failed.total(),
        grade: summary.validity.grade,
        reasons: summary.validity.reasons.clone(),
    }
}

fn tables(rows: &[Row]) -> Vec<LabTable> {
    let mut rates = LabTable::new(
        "Connections",
        [
            "--accept",
            "rate",
            "p90 at height",
            "p90 worst second",
            "failed",
            "",
            "the article, 36 cores",
        ],
    );
    let mut queues = LabTable::new(
        "Where they wait, and what they cost",
        [
            "--accept",
            "SYN-RECV",
            "accept queue",
            "overflows",
            "drops",
            "registry mailbox",
            "server µs each",
            "generator µs each",
            "server CPUs",
            "generator CPUs",
        ],
    );
    let number = |n: Option<u64>| or_dash(n, |n| count(n as f64));
    for row in rows {
        rates.row([
            row.accept.clone(),
            or_dash(row.rate_most, rate),
            or_dash(row.connect_p90_us, micros),
            or_dash(row.connect_p90_us_most, micros),
            count(row.failed as f64),
            row.grade.to_string(),
            article(&row.accept).to_owned(),
        ]);
        let decimal = |n: Option<f64>| or_dash(n, |n| format!("{n:.1}"));
        queues.row([
            row.accept.clone(),
            number(row.syn_recv_most),
            number(row.accept_queue_most),
            number(row.overflows),
            number(row.drops),
            match row.accept.as_str() {
                "dispatch" => number(row.registry_mailbox_most),
                _ => "-".to_owned(),
            },
            decimal(row.server_cpu_us),
            decimal(row.load_cpu_us),
            or_dash(row.server_cpus, |n| format!("{n:.2}")),
            or_dash(row.load_cpus, |n| format!("{n:.2}")),
        ]);
    }
    vec![rates, queues]
}

/// What the article reports for the same way to accept.
fn article(accept: &str) -> &'static str {
    match accept {
        "dispatch" => "Ranch 1.7: breaks at 70k/s, peak 82k/s, p90 1 s, 20-200 messages wait",
        "shared" => "multi-supervisor: breaks at 70k/s, p90 1 s, 1k in SYN-RECV",
        _ => "SO_REUSEPORT: 99k/s, p90 1-2 ms",
    }
}

fn notes(rows: &[Row]) -> Vec<String> {
    let of = |row: &Row| {
        let reasons = row.reasons.join("; ");
        (row.grade != Grade::Valid).then(|| format!("{} is {}: {reasons}", row.accept, row.grade))
    };
    rows.iter().filter_map(of).collect()
}

/// How much of what the machine takes is offered at the height: more, and whoever is late is the
/// generator; less, and no way to accept is tried.
const SHARE_OFFERED_PERCENT: u64 = 80;

#[cfg(test)]
mod tests {
    use throng_load::scenario::Scenario;

    use super::*;
    use crate::lab::assert_same_scenario;

    #[test]
    fn the_article_s_sizes_give_the_bundled_scenario() {
        let bundled = include_str!("../../../labs/stressgrid-100k.yaml");
        assert_same_scenario(&text(100_000, "15m", "1m", "15m"), bundled);
    }

    #[test]
    fn four_fifths_of_what_the_machine_takes_are_offered() {
        assert_eq!(users_for(12_500.0), 10_000);
        assert_eq!(users_for(1e9), 100_000, "the article's number is the most");
        assert_eq!(users_for(0.0), 1);
    }

    #[test]
    fn any_length_is_a_scenario() {
        for seconds in [1, 3, 30, 1860] {
            Scenario::parse(&scenario(10, seconds), "scaled").unwrap();
        }
    }
}
