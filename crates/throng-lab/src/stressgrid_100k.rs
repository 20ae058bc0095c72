//! The lab `stressgrid-100k`: how fast can a server take connections, and does it matter how it accepts?

mod offer;
mod verdict;

use std::time::{Duration, Instant};

use serde::Serialize;
use throng_base::units::show_duration;
use throng_report::render::{count, micros, or_dash, rate};
use throng_report::{Grade, Interval, Summary};

use crate::error::LabError;
use crate::lab::Lab;
use crate::measure::{counter_growth, gauge_max, latency};
use crate::options::LabInfo;
use crate::progress::LabProgress;
use crate::report::{LabReport, LabTable, SCHEMA};
use crate::test_bed::{FinishedRun, LoadSpec, NextStep, ServerSpec};
pub(crate) use offer::Offer;

pub(crate) const INFO: LabInfo = LabInfo {
    name: "stressgrid-100k",
    article: "Achieving 100k connections per second with Elixir (Stressgrid, 2019)",
    summary: "connections per second, once for each way to accept: one registry, one listener, one a core",
    takes_rate: false,
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
    pub(crate) connect_p50_us: Option<u64>,
    pub(crate) connect_p90_us: Option<u64>,
    pub(crate) connect_p99_us: Option<u64>,
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

/// The three ways under one load.
pub(crate) struct TopologyComparison {
    pub(crate) offer: Offer,
    pub(crate) rows: Vec<Row>,
    pub(crate) interrupted: bool,
}

pub(crate) fn run(
    lab: &Lab<'_>,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<LabReport, LabError> {
    let seconds = lab.options.seconds.unwrap_or(30);
    let TopologyComparison { offer, rows, interrupted } =
        compare(lab, seconds, Duration::MAX, progress)?;
    let mut setup = format!(
        "{} users, each connects, waits 1 s ±10 %, closes, comes back; {seconds} s a row on {} CPUs{}",
        count(offer.users as f64),
        lab.machine.cpus,
        offer.describe()
    );
    if lab.test_bed.is_isolated() {
        setup += ", each end in its own network namespace";
    }
    Ok(LabReport {
        schema: SCHEMA,
        diagnoses: Vec::new(),
        lab: INFO.name,
        article: INFO.article,
        setup,
        tables: tables(&rows),
        verdict: verdict::verdict(&rows, offer.users, offer.capacity),
        notes: notes(&rows),
        grade: grade(&rows),
        interrupted,
        rows: serde_json::to_value(&rows).expect("rows are plain data"),
        kept: None,
        next: Vec::new(),
    })
}

/// Runs each way to accept for `seconds`. Where a row is not valid, less is asked for and all of them are run again, if
/// that is over `within` a time from the beginning.
pub(crate) fn compare(
    lab: &Lab<'_>,
    seconds: u64,
    within: Duration,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<TopologyComparison, LabError> {
    let began = Instant::now();
    let before = if lab.options.users.is_none() { 2 } else { 0 };
    let (mut offer, mut interrupted) = Offer::find(lab, before + VARIANTS.len(), progress)?;
    lab.check_fits(offer.users)?;
    let mut rows = Vec::new();
    for again in 0..=AGAIN_MOST {
        rows.clear();
        let all_take =
            Duration::from_secs(VARIANTS.len() as u64 * (seconds + ROW_OVERHEAD_SECONDS));
        for (i, accept) in VARIANTS.into_iter().enumerate() {
            if interrupted || lab.test_bed.is_stopped() {
                interrupted = true;
                break;
            }
            let (number, of) = (before + i + 1, before + VARIANTS.len());
            progress(LabProgress::Row { name: accept, number, of, seconds });
            let run = run_row(lab, accept, accept, offer.users, seconds, progress)?;
            interrupted |= run.interrupted;
            rows.push(row(accept, &run));
            let may_be_again = again < AGAIN_MOST && began.elapsed() + all_take < within;
            if grade(&rows) > Grade::Valid && offer.may_be_lowered() && may_be_again {
                break;
            }
        }
        if interrupted || rows.len() == VARIANTS.len() {
            break;
        }
        offer.lower();
        progress(LabProgress::Note(&format!(
            "a row was {}: all of them again, with {} users",
            grade(&rows),
            count(offer.users as f64)
        )));
    }
    Ok(TopologyComparison { offer, rows, interrupted })
}

/// Runs one way to accept under the article's script.
fn run_row(
    lab: &Lab<'_>,
    name: &str,
    accept: &str,
    users: u64,
    seconds: u64,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<FinishedRun, LabError> {
    // A connection that its client has closed is open at the server for a moment more.
    let cores = lab.machine.cores_for(users + users / 4);
    let server = lab.test_bed.serve(ServerSpec { accept, ..ServerSpec::new(name, "ok", cores) })?;
    let text = scenario(users, seconds);
    let spec = LoadSpec::tcp(name, &text, seconds);
    let run = lab.test_bed.load(&spec, &server.endpoint, progress, |_| NextStep::Continue)?;
    server.stop();
    Ok(run)
}

/// The grade of the worst row.
pub(crate) fn grade(rows: &[Row]) -> Grade {
    rows.iter().map(|row| row.grade).max().unwrap_or(Grade::Invalid)
}

/// The article's script for `users`, in `seconds` instead of its 31 minutes.
fn scenario(users: u64, seconds: u64) -> String {
    // The article: 15 minutes up, 1 minute sustained, 15 minutes down. Ramps that a server cannot
    // follow would say nothing, so half of the time goes up and the height gets its share.
    let ms = |percent: u64| show_duration(Duration::from_millis(seconds * 10 * percent));
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

fn row(accept: &str, run: &FinishedRun) -> Row {
    let intervals = &run.file.intervals;
    let summary = Summary::of(&run.file);
    let at_height = |interval: &&Interval| {
        interval.load.as_ref().is_some_and(|load| load.phase.starts_with("hold"))
    };
    let height = latency(intervals.iter().filter(at_height), |load| load.latencies().connect);
    let worst = intervals
        .iter()
        .filter_map(|interval| interval.load.as_ref())
        .filter(|load| !load.latencies().connect.is_empty())
        .map(|load| load.latencies().connect.percentile(90.0))
        .max();
    let server = summary.server.as_ref();
    Row {
        accept: accept.to_owned(),
        rate_most: summary.connect.rate_most,
        connect_p50_us: (height.count > 0).then_some(height.p50),
        connect_p90_us: (height.count > 0).then_some(height.p90).or(worst),
        connect_p99_us: (height.count > 0).then_some(height.p99),
        connect_p90_us_most: worst,
        syn_recv_most: gauge_max(intervals, "listener.syn_recv"),
        accept_queue_most: gauge_max(intervals, "listener.accept_queue_most"),
        overflows: counter_growth(intervals, "TcpExt.ListenOverflows"),
        drops: counter_growth(intervals, "TcpExt.ListenDrops"),
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
    let number = |n: Option<u64>| or_dash(n, |n| count(n as f64));
    let decimal = |n: Option<f64>| or_dash(n, |n| format!("{n:.1}"));
    let us = |us: Option<u64>| or_dash(us, micros);
    let registry = |row: &Row| match row.accept.as_str() {
        "dispatch" => number(row.registry_mailbox_most),
        _ => "-".to_owned(),
    };
    let mut taken = side_by_side("Connections, by --accept", rows);
    taken.cells("best second", rows, |row| or_dash(row.rate_most, rate));
    taken.cells("connect p50, at the height", rows, |row| us(row.connect_p50_us));
    taken.cells("connect p90, at the height", rows, |row| us(row.connect_p90_us));
    taken.cells("connect p90, worst second", rows, |row| us(row.connect_p90_us_most));
    taken.cells("failed", rows, |row| count(row.failed as f64));
    taken.cells("the row is", rows, |row| row.grade.to_string());
    let mut queues = side_by_side("Where they wait, and what they cost", rows);
    queues.cells("in SYN-RECV, most", rows, |row| number(row.syn_recv_most));
    queues.cells("in the accept queue, most", rows, |row| number(row.accept_queue_most));
    queues.cells("accept queue overflows", rows, |row| number(row.overflows));
    queues.cells("SYNs dropped", rows, |row| number(row.drops));
    queues.cells("waited for the registry, most", rows, registry);
    queues.cells("server CPU each, µs", rows, |row| decimal(row.server_cpu_us));
    queues.cells("generator CPU each, µs", rows, |row| decimal(row.load_cpu_us));
    let cpus = |n: Option<f64>| or_dash(n, |n| format!("{n:.2}"));
    queues.cells("CPUs of the server", rows, |row| cpus(row.server_cpus));
    queues.cells("CPUs of the generator", rows, |row| cpus(row.load_cpus));
    let mut article = LabTable::new("The article, on 36 cores", ["--accept", "the article"]);
    for row in rows {
        article.row([row.accept.clone(), article_of(&row.accept).to_owned()]);
    }
    vec![taken, queues, article]
}

/// A table with a column for each row that was run.
pub(crate) fn side_by_side(title: &str, rows: &[Row]) -> LabTable {
    let head = [""].into_iter().chain(rows.iter().map(|row| row.accept.as_str()));
    LabTable { title: title.to_owned(), head: head.map(str::to_owned).collect(), rows: Vec::new() }
}

impl LabTable {
    /// Adds a line with a cell of each row that was run.
    pub(crate) fn cells(&mut self, name: &str, rows: &[Row], cell: impl Fn(&Row) -> String) {
        let cells = rows.iter().map(cell);
        self.rows.push([name.to_owned()].into_iter().chain(cells).collect());
    }
}

/// What the article reports for the same way to accept.
fn article_of(accept: &str) -> &'static str {
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

/// How often all rows are run again with less, where one of them was not valid.
const AGAIN_MOST: u32 = 2;
/// Starting and ending both ends of a row.
const ROW_OVERHEAD_SECONDS: u64 = 1;

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
    fn any_length_is_a_scenario() {
        for seconds in [1, 3, 30, 1860] {
            Scenario::parse(&scenario(10, seconds), "scaled").unwrap();
        }
    }
}
