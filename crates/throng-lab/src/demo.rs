//! The lab `demo`: the first one to run, on one screen and in under a minute.

use std::time::Duration;

use throng_measure::Grade;
use throng_report::render::{count, micros, or_dash, rate};

use crate::error::LabError;
use crate::experiment::Experiment;
use crate::lab::Lab;
use crate::progress::LabProgress;
use crate::report::{LabReport, LabTable, NextCommand};
use crate::stressgrid_100k::{Row, TopologyComparison, compare, grade, notes, side_by_side};

pub(crate) fn run(
    lab: &Lab<'_>,
    experiment: &'static Experiment,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<LabReport, LabError> {
    let seconds = lab.options.seconds.unwrap_or(ROW_SECONDS);
    let TopologyComparison { offer, rows, interrupted } =
        compare(lab, experiment, seconds, WITHIN, progress)?;
    let cpus = lab.machine.cpus;
    let setup = format!(
        "{} users connect, wait a second, close, reconnect; this machine has {}",
        count(offer.users as f64),
        if cpus == 1 { "1 CPU".to_owned() } else { format!("{cpus} CPUs") },
    );
    Ok(LabReport {
        setup,
        tables: vec![table(&rows)],
        verdict: vec![verdict(&rows)],
        notes: notes(&rows),
        grade: grade(&rows),
        interrupted,
        rows: serde_json::to_value(&rows).expect("rows are plain data"),
        next: NEXT.to_vec(),
        ..LabReport::of(&experiment.info)
    })
}

fn table(rows: &[Row]) -> LabTable {
    let mut table = side_by_side("", rows);
    let us = |us: Option<u64>| or_dash(us, micros);
    table.cells("connections, best second", rows, |row| or_dash(row.rate_most, rate));
    table.cells("connect p50", rows, |row| us(row.connect_p50_us));
    table.cells("connect p99", rows, |row| us(row.connect_p99_us));
    table.cells("CPU of the server, each", rows, |row| {
        or_dash(row.server_cpu_us, |us| format!("{us:.1} µs"))
    });
    table.cells("failed", rows, |row| count(row.failed as f64));
    table.cells("the result is", rows, |row| row.grade.to_string());
    table
}

/// Returns the conclusion in a sentence.
fn verdict(rows: &[Row]) -> String {
    if grade(rows) != Grade::Valid {
        return "These numbers do not count: the generator itself was late, because the machine has \
                too little spare CPU. Try again when fewer programs run beside it."
            .to_owned();
    }
    if let Some(row) = rows.iter().find(|row| row.failed > 0) {
        return format!(
            "{} did not accept all connections: {} connects failed.",
            row.accept, row.failed
        );
    }
    let cost =
        |row: &&Row| row.server_cpu_us.filter(|us| *us > 0.0).map(|us| (us, row.accept.clone()));
    let costs: Vec<_> = rows.iter().filter_map(|row| cost(&row)).collect();
    let least = costs.iter().min_by(|a, b| a.0.total_cmp(&b.0));
    let most = costs.iter().max_by(|a, b| a.0.total_cmp(&b.0));
    match (least, most) {
        (Some((least, cheap)), Some((most, dear))) if *most > least * COST_NOISE => format!(
            "All accepted every connection: {cheap} needs the least CPU, {dear} {:.0} % more.",
            (most / least - 1.0) * 100.0
        ),
        _ => "All three accepted every connection, at about the same cost: at this rate, the way \
              to accept is no limit."
            .to_owned(),
    }
}

/// The whole lab ends within a minute.
const WITHIN: Duration = Duration::from_secs(58);
const ROW_SECONDS: u64 = 7;
/// The factor within which the CPU times per connection of single runs are alike.
const COST_NOISE: f64 = 1.10;

const NEXT: [NextCommand; 4] = [
    NextCommand { args: "serve channels", does: "a chat server with a page" },
    NextCommand { args: "run examples/channels.yaml", does: "load it (another terminal)" },
    NextCommand { args: "doctor --for 1M", does: "can it hold a million?" },
    NextCommand { args: "lab", does: "more experiments" },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn row(accept: &str, server_cpu_us: f64) -> Row {
        let (accept, server_cpu_us) = (accept.to_owned(), Some(server_cpu_us));
        Row { accept, server_cpu_us, rate_most: Some(9_000.0), ..Row::default() }
    }

    #[test]
    fn the_cheapest_and_the_dearest_are_named_where_they_differ() {
        let sentences =
            verdict(&[row("dispatch", 30.0), row("shared", 22.0), row("reuseport", 20.0)]);
        assert!(
            sentences.contains("reuseport needs the least CPU, dispatch 50 % more"),
            "{sentences}"
        );
        let sentences =
            verdict(&[row("dispatch", 21.0), row("shared", 20.0), row("reuseport", 20.5)]);
        assert!(sentences.contains("at about the same cost"), "{sentences}");
    }

    #[test]
    fn a_result_that_is_not_valid_means_nothing() {
        let late = Row { grade: Grade::Degraded, ..row("shared", 20.0) };
        assert!(verdict(&[row("dispatch", 30.0), late]).contains("do not count"));
        assert!(verdict(&[]).contains("do not count"), "no row ran");
    }

    #[test]
    fn connects_that_failed_come_before_what_the_others_cost() {
        let sentences = verdict(&[row("dispatch", 30.0), Row { failed: 3, ..row("shared", 20.0) }]);
        assert_eq!(sentences, "shared did not accept all connections: 3 connects failed.");
    }

    #[test]
    fn the_report_fits_on_one_screen() {
        let rows = ["dispatch", "shared", "reuseport"].map(|accept| row(accept, 20.0));
        let (demo, _) = crate::catalogue::find("demo").unwrap();
        let report = LabReport {
            setup: "9.2k users connect, wait a second, close, reconnect; this machine has 2 CPUs"
                .into(),
            tables: vec![table(&rows)],
            verdict: vec![verdict(&rows)],
            kept: Some("target/demo".into()),
            next: NEXT.to_vec(),
            ..LabReport::of(&demo.info)
        };
        let text = report.text("target/release/throng");
        assert!(text.lines().count() <= 22, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
