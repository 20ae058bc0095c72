//! The latencies of a run as tables: of each kind of operation, and of each step with a name.

use super::notes::{differ, shown};
use super::{Table, count, micros, or_dash, rate};
use crate::summary::Summary;
use crate::{LatencyStats, LatencySummary};

/// Returns a row for each latency: how many, how often, and the percentiles.
pub(crate) fn latencies(summary: &Summary) -> Table {
    let mut table = Table::with_head(["", "done", "mean rate"].into_iter().chain(STATISTICS));
    let (connect, message) = (&summary.connect, &summary.message);
    let mut row = |name: &str, done: u64, mean: Option<f64>, l: &LatencySummary| {
        let mut cells = vec![name.to_owned(), count(done as f64), or_dash(mean, rate)];
        let of = match name {
            "connects" => "connect",
            "messages" => "message",
            "HTTP requests" => "http",
            other => other,
        };
        cells.extend(latency_cells(l, summary.latency_stats.get(of)));
        table.row(cells);
    };
    // The answered latency; below it, if they differ, the latency until the generator read the
    // answers, and the latency with the unanswered waits.
    let mut both =
        |name, done, mean, [answered, seen]: [&_; 2], unanswered: &LatencySummary, judged: &_| {
            row(name, done, mean, answered);
            if differ(answered, seen) {
                row(AS_SEEN, seen.count, None, seen);
            }
            let from_send = &message.from_send_us;
            if name == "messages" && is_mostly_before(from_send, answered) {
                row(FROM_SEND, from_send.count, None, from_send);
            }
            if shown(judged) != shown(answered) {
                row(AND_UNANSWERED, unanswered.count, None, judged);
            }
        };
    let c = connect;
    // The log of another tool may have requests without their connects.
    if c.intended > 0 || summary.run.imported.is_none() {
        both(
            "connects",
            c.ok,
            c.rate_mean,
            [&c.latency_us, &c.seen_us],
            &c.unanswered_us,
            &c.judged_us,
        );
    }
    if message.sent > 0 || message.answered > 0 || message.unanswered_us.count > 0 {
        let m = message;
        let done = if m.answered > 0 { m.answered } else { m.sent };
        both(
            "messages",
            done,
            m.rate_mean,
            [&m.latency_us, &m.seen_us],
            &m.unanswered_us,
            &m.judged_us,
        );
    }
    if let Some(j) = &summary.join {
        both(
            "joins",
            j.ok,
            j.rate_mean,
            [&j.latency_us, &j.seen_us],
            &j.unanswered_us,
            &j.judged_us,
        );
    }
    if let Some(p) = &summary.push {
        both(
            "pushes",
            p.ok,
            p.rate_mean,
            [&p.latency_us, &p.seen_us],
            &p.unanswered_us,
            &p.judged_us,
        );
    }
    if let Some(h) = &summary.http {
        both(
            "HTTP requests",
            h.ok,
            h.rate_mean,
            [&h.latency_us, &h.seen_us],
            &h.unanswered_us,
            &h.judged_us,
        );
    }
    if let Some(broadcast) = &summary.broadcast {
        let b = broadcast;
        let delivered = b.counters.delivered;
        // The probe accounts for its deliveries itself.
        let unanswered = LatencySummary::default();
        let clocks = [&b.latency_us, &b.seen_us];
        both("broadcasts", delivered, None, clocks, &unanswered, &b.latency_us);
    }
    if summary.run.imported.is_some() {
        return table;
    }
    row("generator lag", summary.generator.lag_us.count, None, &summary.generator.lag_us);
    table
}

/// The row below a latency: until the generator read the answers.
const AS_SEEN: &str = "  as seen";
/// The row below a latency: from when the message was sent, of the connections that are followed.
const FROM_SEND: &str = "  from send";
/// The row below a latency: with the waits that no answer ended.
const AND_UNANSWERED: &str = "+ unanswered";

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
            row(AND_UNANSWERED, step.unanswered_us.count, "", String::new(), judged);
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
