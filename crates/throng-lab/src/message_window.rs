//! A stretch of a run in which users talk: how much was said and heard, and how long that took.

use serde::Serialize;
use throng_report::render::{count, micros, or_dash, rate};
use throng_report::{Interval, LoadCounters};

use crate::measure::latency;
use crate::report::LabTable;
use crate::user_run::server_cpu_us;

/// What was said and heard between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct MessageWindow {
    /// Users that were connected at its end.
    pub(crate) connected: u64,
    pub(crate) joins_per_second: f64,
    /// Pushes that should have been sent.
    pub(crate) due_per_second: f64,
    /// Pushes that were answered.
    pub(crate) said_per_second: f64,
    /// Messages that users received, the answers to their own among them.
    pub(crate) heard_per_second: f64,
    pub(crate) join_p99_us: Option<u64>,
    /// From when a push was due until it was answered.
    pub(crate) answer_p99_us: Option<u64>,
    /// From when a probe was due until a user of its room had it.
    pub(crate) delivery_p50_us: Option<u64>,
    pub(crate) delivery_p99_us: Option<u64>,
    /// The server's CPU per message that was heard, in microseconds.
    pub(crate) server_cpu_us: Option<f64>,
}

impl MessageWindow {
    /// Of the intervals that ended after `from_ms` and at `to_ms` at the latest; none where there are too few.
    pub(crate) fn between(intervals: &[Interval], from_ms: u64, to_ms: u64) -> Option<Self> {
        let is_in = |interval: &&Interval| {
            let stays = interval.load.as_ref().is_some_and(|load| !load.is_leaving());
            stays && (from_ms..=to_ms).contains(&interval.at_ms)
        };
        let within: Vec<_> = intervals.iter().filter(is_in).collect();
        let (first, last) = (within.first()?, within.last()?);
        let seconds = (last.at_ms - first.at_ms) as f64 / 1000.0;
        if seconds <= 0.0 {
            return None;
        }
        let (before, after) = (first.load.as_ref()?, last.load.as_ref()?);
        let grown = |of: fn(&LoadCounters) -> u64| {
            of(&after.counters).saturating_sub(of(&before.counters)) as f64 / seconds
        };
        // The first interval's own histograms are of what came before.
        let measured = || within[1..].iter().copied();
        let join = latency(measured(), |load| load.latencies().join);
        let answer = latency(measured(), |load| load.latencies().push);
        let delivery = latency(measured(), |load| load.latencies().broadcast);
        let some = |count: u64, us: u64| (count > 0).then_some(us);
        let heard = grown(|counters| counters.messages_received);
        Some(Self {
            connected: after.counters.connected,
            joins_per_second: grown(|counters| counters.joins_ok),
            due_per_second: grown(|counters| counters.turns_intended),
            said_per_second: grown(|counters| counters.pushes_ok),
            heard_per_second: heard,
            join_p99_us: some(join.count, join.p99),
            answer_p99_us: some(answer.count, answer.p99),
            delivery_p50_us: some(delivery.count, delivery.p50),
            delivery_p99_us: some(delivery.count, delivery.p99),
            server_cpu_us: server_cpu_each_heard(&within),
        })
    }

    /// As cells of a table under [`HEAD`].
    fn cells(&self) -> [String; 7] {
        [
            count(self.connected as f64),
            rate(self.said_per_second),
            rate(self.heard_per_second),
            or_dash(self.answer_p99_us, micros),
            or_dash(self.delivery_p50_us, micros),
            or_dash(self.delivery_p99_us, micros),
            or_dash(self.server_cpu_us, |us| format!("{us:.1} µs")),
        ]
    }
}

/// Between the first and the last of them in which the server answered.
fn server_cpu_each_heard(within: &[&Interval]) -> Option<f64> {
    let mut known = within.iter().filter_map(|interval| {
        let heard = interval.load.as_ref()?.counters.messages_received;
        Some((server_cpu_us(interval)?, heard))
    });
    let (cpu_before, heard_before) = known.next()?;
    let (cpu, heard) = known.next_back()?;
    let heard = heard.checked_sub(heard_before).filter(|heard| *heard > 0)?;
    Some(cpu.saturating_sub(cpu_before) as f64 / heard as f64)
}

/// Stretches of a run, one a row; dashes where there was none.
pub(crate) fn table(title: &str, talks: &[MessageWindow]) -> LabTable {
    let mut table = LabTable::new(title, HEAD);
    talks.iter().for_each(|talk| table.row(talk.cells()));
    if talks.is_empty() {
        table.row(HEAD.map(|_| "-".to_owned()));
    }
    table
}

/// The columns of [`Talk::cells`].
const HEAD: [&str; 7] =
    ["users", "said", "heard", "answer p99", "delivery p50", "delivery p99", "CPU each heard"];

#[cfg(test)]
mod tests {
    use throng_report::LoadInterval;

    use super::*;

    fn interval(second: u64, said: u64, heard: u64, delivery_us: u64) -> Interval {
        let mut load = LoadInterval::default();
        load.counters.pushes_ok = said;
        load.counters.messages_received = heard;
        load.broadcast.record_us(delivery_us);
        Interval { at_ms: 1000 * second, span_ms: 1000, load: Some(load), ..Interval::default() }
    }

    #[test]
    fn what_came_before_does_not_count() {
        let run = [
            interval(1, 100, 9_000, 900_000),
            interval(2, 110, 9_500, 10),
            interval(3, 120, 10_000, 10),
            interval(4, 900, 90_000, 900_000),
        ];
        let talk = MessageWindow::between(&run, 1_000, 3_000).unwrap();
        assert_eq!((talk.said_per_second, talk.heard_per_second), (10.0, 500.0));
        assert_eq!((talk.delivery_p99_us, talk.answer_p99_us), (Some(10), None));
        assert_eq!(MessageWindow::between(&run, 4_000, 9_000), None);
    }
}
