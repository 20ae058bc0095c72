//! The lab `stressgrid-100k`: how fast can a server accept connections, and does the accept
//! topology matter?

mod offer;
mod row;
mod verdict;

use std::time::{Duration, Instant};

use throng_measure::Grade;
use throng_report::render::{count, micros, or_dash, percent, rate};

use crate::error::LabError;
use crate::experiment::Experiment;
use crate::lab::Lab;
use crate::progress::LabProgress;
use crate::report::{LabReport, LabTable};
pub(crate) use offer::Offer;
pub(crate) use row::Row;
use row::{row, run_row, size};

/// The accept topologies in the article's order, from the slowest to the fastest.
const VARIANTS: [&str; 3] = ["dispatch", "shared", "reuseport"];

/// The three accept topologies under one load.
pub(crate) struct TopologyComparison {
    pub(crate) offer: Offer,
    pub(crate) rows: Vec<Row>,
    pub(crate) interrupted: bool,
}

pub(crate) fn run(
    lab: &Lab<'_>,
    experiment: &'static Experiment,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<LabReport, LabError> {
    let seconds = lab.options.seconds.unwrap_or(30);
    let TopologyComparison { offer, rows, interrupted } =
        compare(lab, experiment, seconds, Duration::MAX, progress)?;
    let mut setup = format!(
        "{} users, each connects, waits 1 s ±10 %, closes, reconnects; {seconds} s per row on {} \
         CPUs{}",
        count(offer.users as f64),
        lab.machine.cpus,
        offer.describe()
    );
    if lab.options.over_tls {
        setup += ", over TLS 1.3";
    }
    if lab.test_bed.is_isolated() {
        setup += ", each end in its own network namespace";
    }
    Ok(LabReport {
        setup,
        tables: tables(&rows),
        verdict: verdict::verdict(&rows, offer.users, offer.capacity),
        notes: notes(&rows),
        grade: grade(&rows),
        interrupted,
        rows: serde_json::to_value(&rows).expect("rows are plain data"),
        ..LabReport::of(&experiment.info)
    })
}

/// Runs each accept topology for `seconds`. If a row is not valid, lowers the load and runs all of
/// them again, as long as the whole comparison ends `within` this time.
pub(crate) fn compare(
    lab: &Lab<'_>,
    experiment: &Experiment,
    seconds: u64,
    within: Duration,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<TopologyComparison, LabError> {
    let began = Instant::now();
    let before = if lab.options.users.is_none() { 2 } else { 0 };
    let (mut offer, mut interrupted) =
        Offer::find(lab, experiment, before + VARIANTS.len(), progress)?;
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
            let sized = size(lab, experiment, offer.users, seconds)?;
            let run = run_row(lab, accept, accept, &sized, progress)?;
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
            "a row was {}: running all rows again with {} users",
            grade(&rows),
            count(offer.users as f64)
        )));
    }
    Ok(TopologyComparison { offer, rows, interrupted })
}

/// Returns the grade of the worst row.
pub(crate) fn grade(rows: &[Row]) -> Grade {
    rows.iter().map(|row| row.grade).max().unwrap_or(Grade::Invalid)
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
    if rows.iter().any(|row| row.resumed_share.is_some()) {
        taken.cells("handshakes resumed", rows, |row| or_dash(row.resumed_share, percent));
    }
    taken.cells("the row is", rows, |row| row.grade.to_string());
    let mut queues = side_by_side("Queues and costs", rows);
    queues.cells("in SYN-RECV, most", rows, |row| number(row.syn_recv_most));
    queues.cells("in the accept queue, most", rows, |row| number(row.accept_queue_most));
    queues.cells("accept queue overflows", rows, |row| number(row.overflows));
    queues.cells("SYNs dropped", rows, |row| number(row.drops));
    queues.cells("waiting for the registry, most", rows, registry);
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

/// Returns a table with a column for each accept topology.
pub(crate) fn side_by_side(title: &str, rows: &[Row]) -> LabTable {
    let head = [""].into_iter().chain(rows.iter().map(|row| row.accept.as_str()));
    LabTable { title: title.to_owned(), head: head.map(str::to_owned).collect(), rows: Vec::new() }
}

impl LabTable {
    /// Adds a line with a cell for each accept topology.
    pub(crate) fn cells(&mut self, name: &str, rows: &[Row], cell: impl Fn(&Row) -> String) {
        let cells = rows.iter().map(cell);
        self.rows.push([name.to_owned()].into_iter().chain(cells).collect());
    }
}

/// Returns the article's result for the same accept topology.
fn article_of(accept: &str) -> &'static str {
    match accept {
        "dispatch" => "Ranch 1.7: breaks at 70k/s, peak 82k/s, p90 1 s, 20-200 messages wait",
        "shared" => "multi-supervisor: breaks at 70k/s, p90 1 s, 1k in SYN-RECV",
        _ => "SO_REUSEPORT: 99k/s, p90 1-2 ms",
    }
}

/// Returns the reasons why rows are not valid.
pub(crate) fn notes(rows: &[Row]) -> Vec<String> {
    let of = |row: &Row| {
        let reasons = row.reasons.join("; ");
        (row.grade != Grade::Valid).then(|| format!("{} is {}: {reasons}", row.accept, row.grade))
    };
    rows.iter().filter_map(of).collect()
}

/// The most repetitions of all rows with less load, where one of them is not valid.
const AGAIN_MOST: u32 = 2;
/// The time to start and end server and generator of a row.
const ROW_OVERHEAD_SECONDS: u64 = 1;
