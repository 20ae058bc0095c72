//! The operations of a run and their latencies, as the tables and the notes of a report have them.

use throng_measure::{LatencySummary, Operation};

use crate::summary::{OperationSummary, Summary};

/// A row of an operation and its latencies.
pub(super) struct OperationRow {
    pub(super) operation: Operation,
    pub(super) done: u64,
    pub(super) of: OperationSummary,
    /// Latency of messages from when they were sent.
    pub(super) from_send: Option<LatencySummary>,
}

impl OperationRow {
    /// Reports whether waits without an answer make one of its percentiles larger.
    pub(super) fn is_larger_judged(&self) -> bool {
        shown(&self.of.judged_us) != shown(&self.of.latency_us)
    }
}

/// Returns the operations that the run had, in the order of their rows.
pub(super) fn operations(summary: &Summary) -> Vec<OperationRow> {
    let m = &summary.message;
    let rows = summary.operations().filter_map(|(operation, of)| {
        let row = OperationRow { operation, done: of.ok, of, from_send: None };
        match operation {
            // The log of another tool may have requests without their connects.
            Operation::Connect => {
                let is_known = summary.connect.intended > 0 || summary.run.imported.is_none();
                let done = of.ok - timed_in_requests(summary);
                // Count, rate and times of a row are of the same connects.
                let share = done as f64 / of.ok.max(1) as f64;
                let of =
                    OperationSummary { rate_mean: of.rate_mean.map(|mean| mean * share), ..of };
                is_known.then_some(OperationRow { done, of, ..row })
            }
            Operation::Message => {
                let is_any = m.sent > 0 || m.answered > 0 || m.unanswered_us.count > 0;
                let done = if m.answered > 0 { m.answered } else { m.sent };
                is_any.then_some(OperationRow { done, from_send: Some(m.from_send_us), ..row })
            }
            _ => Some(row),
        }
    });
    rows.collect()
}

/// Returns the number of connects that are part of the times of HTTP requests, and are not in the
/// row of connects: that has those of steps of their own.
pub(super) fn timed_in_requests(summary: &Summary) -> u64 {
    let of_requests = summary.http.as_ref().map_or(0, |http| http.connects);
    let untimed = summary.connect.ok.saturating_sub(summary.connect.latency_us.count);
    if summary.connect.latency_us.count == 0 { 0 } else { of_requests.min(untimed) }
}

/// Returns the columns of a latency.
pub(super) fn shown(l: &LatencySummary) -> [u64; 6] {
    [l.p50, l.p90, l.p95, l.p99, l.p999, l.max]
}
