//! The latencies of a run as tables: of each kind of operation, and of each step with a name.

use throng_base::units::plural;
use throng_measure::{LatencyStats, LatencySummary};

use super::notes::differ;
use super::operations::{OperationRow, operations, shown};
use super::{Table, count, micros, or_dash, rate};
use crate::summary::{StepSummary, Summary};

/// Returns a row for each latency: how many, how often, and the percentiles.
pub(crate) fn latencies(summary: &Summary) -> Table {
    let mut table = Table::with_head(["", "done", "mean rate"].into_iter().chain(STATISTICS));
    let mut row = |name: &str, done: u64, mean: Option<f64>, l: &LatencySummary, key: &str| {
        let mut cells = vec![name.to_owned(), count(done as f64), or_dash(mean, rate)];
        cells.extend(latency_cells(l, summary.latency_stats.get(key)));
        table.row(cells);
    };
    // The answered latency; below it, if they differ, the latency until the generator read the
    // answers, the one from when the message was sent, and the one with the unanswered waits.
    for timed in operations(summary) {
        let OperationRow { operation, done, of, from_send } = &timed;
        row(operation.plural(), *done, of.rate_mean, &of.latency_us, operation.name());
        if differ(&of.latency_us, &of.seen_us) {
            row(AS_SEEN, of.seen_us.count, None, &of.seen_us, "");
        }
        if let Some(sent) = from_send.filter(|sent| is_mostly_before(sent, &of.latency_us)) {
            row(FROM_SEND, sent.count, None, &sent, "");
        }
        if timed.is_larger_judged() {
            row(WITH_UNANSWERED, of.judged_us.count, None, &of.judged_us, "");
        }
    }
    if summary.run.imported.is_none() {
        let lag = &summary.generator.lag_us;
        row("generator lag", lag.count, None, lag, "");
    }
    table
}

/// Returns the table of a report on one screen, of at most `rows_max` rows below its head: each
/// operation, and the slowest steps with a name.
pub(super) fn brief(summary: &Summary, rows_max: usize) -> Table {
    let mut rows = Vec::new();
    let brief_cells = |name: &str, done: u64, mean: &str, l: &LatencySummary, key: &str| {
        let [p50, _, p95, p99, _, max] = latency_cells(l, summary.latency_stats.get(key));
        vec![name.to_owned(), count(done as f64), mean.to_owned(), p50, p95, p99, max]
    };
    for timed in operations(summary) {
        let OperationRow { operation, done, of, .. } = &timed;
        let (name, mean) = (operation.plural(), or_dash(of.rate_mean, rate));
        rows.push(brief_cells(name, *done, &mean, &of.latency_us, operation.name()));
        if timed.is_larger_judged() {
            let judged = &of.judged_us;
            rows.push(brief_cells(WITH_UNANSWERED, judged.count, "", judged, ""));
        }
    }
    let of_step = |step: &StepSummary| {
        let (mean, key) = (or_dash(step.rate_mean, rate), format!("step.{}", step.name));
        let mut rows = vec![brief_cells(&step.name, step.ok, &mean, &step.latency_us, &key)];
        if shown(&step.judged_us) != shown(&step.latency_us) {
            let judged = &step.judged_us;
            rows.push(brief_cells(WITH_UNANSWERED, judged.count, "", judged, ""));
        }
        rows
    };
    let steps: Vec<_> = summary.steps.iter().map(of_step).collect();
    let room = rows_max.saturating_sub(rows.len());
    let (steps, left_out) = slowest(summary, steps, room);
    rows.extend(steps.into_iter().flatten());
    if left_out > 0 && room > 0 {
        let faster = if left_out < summary.steps.len() as u64 { "faster " } else { "" };
        let steps = plural(left_out, "step", "steps");
        rows.push(vec![format!("and {left_out} {faster}{steps}")]);
    }
    let mut table = Table::with_head(["", "done", "mean rate", "p50", "p95", "p99", "max"]);
    rows.into_iter().for_each(|row| table.row(row));
    table
}

/// Keeps the rows of the slowest steps, as many as there is room for, in the scenario's order.
/// Returns the number of the others.
fn slowest(
    summary: &Summary,
    mut rows: Vec<Vec<Vec<String>>>,
    room: usize,
) -> (Vec<Vec<Vec<String>>>, u64) {
    let all: usize = rows.iter().map(Vec::len).sum();
    if all <= room {
        return (rows, 0);
    }
    let mut by_p99: Vec<_> = (0..rows.len()).collect();
    by_p99.sort_by_key(|at| std::cmp::Reverse(summary.steps[*at].judged_us.p99));
    // The line that counts the others is a row, too.
    let mut left = room.saturating_sub(1);
    let mut left_out = 0;
    for at in by_p99 {
        match left.checked_sub(rows[at].len()) {
            Some(rest) => left = rest,
            None => {
                (left, left_out) = (0, left_out + 1);
                rows[at].clear();
            }
        }
    }
    (rows, left_out)
}

/// The row below a latency: until the generator read the answers.
const AS_SEEN: &str = "  as seen";
/// The row below a latency: from when the message was sent, of the connections that are followed.
const FROM_SEND: &str = "  from send";
/// The row below a latency that thresholds judge: with the waits that no answer ended.
pub(super) const WITH_UNANSWERED: &str = "  with unanswered";

/// Reports whether messages were sent so late that this was most of their latency.
fn is_mostly_before(from_send: &LatencySummary, latency: &LatencySummary) -> bool {
    from_send.count > 0 && from_send.p50.saturating_mul(2) < latency.p50
}

/// Returns a row for each step with a name and each transaction.
pub(crate) fn steps(summary: &Summary) -> Table {
    let mut table =
        Table::with_head(["step", "done", "errors", "mean rate"].into_iter().chain(STATISTICS));
    for step in &summary.steps {
        let mut row = |name: &str, done: u64, errors: &str, mean, latency: &LatencySummary| {
            let mut cells = vec![name.to_owned(), count(done as f64), errors.to_owned()];
            cells.push(mean);
            let stats = summary.latency_stats.get(&format!("step.{}", step.name));
            cells.extend(latency_cells(latency, stats));
            table.row(cells);
        };
        let (answered, judged) = (&step.latency_us, &step.judged_us);
        let errors = count(step.errors as f64);
        row(&step.name, step.ok, &errors, or_dash(step.rate_mean, rate), answered);
        if differ(answered, &step.seen_us) {
            row(AS_SEEN, step.seen_us.count, "", String::new(), &step.seen_us);
        }
        if shown(judged) != shown(answered) {
            row(WITH_UNANSWERED, judged.count, "", String::new(), judged);
        }
    }
    table
}

/// Returns a row for each operation of each class that a threshold is about.
pub(super) fn class_operations(summary: &Summary) -> Table {
    let head = ["class", "done", "failed", "mean rate"];
    let mut table = Table::with_head(head.into_iter().chain(STATISTICS));
    let classes = summary.class_operations.iter();
    let all = classes.flat_map(|(class, of)| of.operations.iter().map(move |it| (class, it)));
    for (class, (operation, of)) in all {
        let Some(of) = of else { continue };
        let name = format!("{class}: {}", operation.plural());
        let counts = [of.ok, of.failed].map(|n| count(n as f64));
        let mut cells: Vec<_> = [name].into_iter().chain(counts).collect();
        cells.push(or_dash(of.rate_mean, rate));
        cells.extend(latency_cells(&of.latency_us, None));
        table.row(cells);
        if shown(&of.judged_us) != shown(&of.latency_us) {
            let waits = count(of.judged_us.count as f64);
            let mut cells = vec![WITH_UNANSWERED.to_owned(), waits, String::new(), String::new()];
            cells.extend(latency_cells(&of.judged_us, None));
            table.row(cells);
        }
    }
    table
}

/// Returns what an imported log has of each latency without its values; `None` if it has all
/// values.
pub(crate) fn known_statistics(summary: &Summary) -> Option<Table> {
    let mut table =
        Table::with_head(["as imported", "values", "mean", "deviation", "smallest", "largest"]);
    for (name, stats) in &summary.latency_stats {
        let LatencyStats { count: values, mean_us, deviation_us, min_us, max_us, .. } = stats;
        let known = |us: Option<f64>| or_dash(us, |us| micros(us.round() as u64));
        let name = name.strip_prefix("step.").unwrap_or(name).to_owned();
        let statistics = [Some(*mean_us), *deviation_us, *min_us, *max_us].map(known);
        table.row([name, count(*values as f64)].into_iter().chain(statistics));
    }
    (!summary.latency_stats.is_empty()).then_some(table)
}

fn latency_cells(l: &LatencySummary, stats: Option<&LatencyStats>) -> [String; STATISTICS.len()] {
    match stats {
        _ if l.count > 0 => shown(l).map(micros),
        Some(stats) => stats.shown().map(|us| or_dash(us, micros)),
        None => STATISTICS.map(|_| "-".to_owned()),
    }
}

/// The heads of the columns of a latency.
const STATISTICS: [&str; 6] = ["p50", "p90", "p95", "p99", "p99.9", "max"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_rate_and_times_of_connects_are_of_the_same_connects() {
        let mut summary = Summary::default();
        (summary.connect.ok, summary.connect.intended) = (400, 400);
        summary.connect.rate_mean = Some(100.0);
        summary.connect.latency_us = LatencySummary { count: 300, p50: 700, ..Default::default() };
        let http = crate::summary::HttpSummary { ok: 100, connects: 100, ..Default::default() };
        summary.http = Some(http);
        let row = |table: &Table| {
            let text = table.to_string();
            let row = text.lines().find(|row| row.starts_with("connects")).unwrap();
            row.split_whitespace().skip(1).take(3).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(row(&brief(&summary, 9)), "300 75/s 700");
        assert_eq!(row(&latencies(&summary)), "300 75/s 700");
    }

    #[test]
    fn messages_that_were_sent_late_have_a_row_from_when_they_were_sent() {
        let shows = |p50: u64| {
            let mut summary = Summary::default();
            let message = &mut summary.message;
            (message.sent, message.answered) = (10, 10);
            message.latency_us = LatencySummary { count: 10, p50: 4_000_000, ..Default::default() };
            message.from_send_us = LatencySummary { count: 10, p50, ..Default::default() };
            latencies(&summary).to_string().contains("\n  from send")
        };
        assert!(shows(1_900_000));
        assert!(!shows(3_900_000));
    }
}
