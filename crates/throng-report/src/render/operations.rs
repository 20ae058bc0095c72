//! The operations of a run and their latencies, as the tables and the notes of a report have them.

use crate::LatencySummary;
use crate::summary::Summary;

/// A kind of operation and its latencies.
pub(super) struct Operation<'a> {
    /// The name of its row.
    pub(super) name: &'static str,
    /// Its name in thresholds.
    pub(super) key: &'static str,
    pub(super) done: u64,
    pub(super) mean: Option<f64>,
    pub(super) answered: &'a LatencySummary,
    pub(super) seen: &'a LatencySummary,
    pub(super) judged: &'a LatencySummary,
    pub(super) from_send: Option<&'a LatencySummary>,
}

impl Operation<'_> {
    /// Reports whether waits without an answer make one of its percentiles larger.
    pub(super) fn is_larger_judged(&self) -> bool {
        shown(self.judged) != shown(self.answered)
    }
}

/// Returns the operations that the run had, in the order of their rows.
pub(super) fn operations(summary: &Summary) -> Vec<Operation<'_>> {
    macro_rules! operation {
        ($name:literal, $key:literal, $of:expr, $done:expr) => {
            Operation {
                name: $name,
                key: $key,
                done: $done,
                mean: $of.rate_mean,
                answered: &$of.latency_us,
                seen: &$of.seen_us,
                judged: &$of.judged_us,
                from_send: None,
            }
        };
    }
    let (c, m) = (&summary.connect, &summary.message);
    let mut all = Vec::new();
    // The log of another tool may have requests without their connects.
    if c.intended > 0 || summary.run.imported.is_none() {
        let done = c.ok - timed_in_requests(summary);
        // Count, rate and times of a row are of the same connects.
        let mean = c.rate_mean.map(|rate| rate * done as f64 / c.ok.max(1) as f64);
        all.push(Operation { mean, ..operation!("connects", "connect", c, done) });
    }
    if m.sent > 0 || m.answered > 0 || m.unanswered_us.count > 0 {
        let done = if m.answered > 0 { m.answered } else { m.sent };
        let messages = operation!("messages", "message", m, done);
        all.push(Operation { from_send: Some(&m.from_send_us), ..messages });
    }
    all.extend(summary.join.as_ref().map(|j| operation!("joins", "join", j, j.ok)));
    all.extend(summary.push.as_ref().map(|p| operation!("pushes", "push", p, p.ok)));
    all.extend(summary.http.as_ref().map(|h| operation!("HTTP requests", "http", h, h.ok)));
    // The probe accounts for its missing deliveries itself.
    all.extend(summary.broadcast.as_ref().map(|b| Operation {
        name: "broadcasts",
        key: "broadcast",
        done: b.counters.delivered,
        mean: None,
        answered: &b.latency_us,
        seen: &b.seen_us,
        judged: &b.latency_us,
        from_send: None,
    }));
    all
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
