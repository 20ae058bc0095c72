//! The messages and latencies of one window of a run.

use serde::Serialize;
use throng_measure::{Interval, LoadCounters, Operation};

use crate::measure::latency;
use crate::user_cost::server_cpu_us;

/// The messages and latencies between two moments of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct MessageWindow {
    /// Users connected at the end of the window.
    pub(crate) connected: u64,
    pub(crate) joins_per_second: f64,
    /// Pushes that were due.
    pub(crate) due_per_second: f64,
    /// Pushes that were answered.
    pub(crate) said_per_second: f64,
    /// Messages that users received, including the answers to their pushes.
    pub(crate) heard_per_second: f64,
    pub(crate) join_p99_us: Option<u64>,
    /// Time from a push's intended moment to its answer.
    pub(crate) answer_p99_us: Option<u64>,
    /// Time from a probe's intended moment to its delivery to a user of its room.
    pub(crate) delivery_p50_us: Option<u64>,
    pub(crate) delivery_p99_us: Option<u64>,
    /// The server's CPU time per received message, in microseconds.
    pub(crate) server_cpu_us: Option<f64>,
}

impl MessageWindow {
    /// Computes the window of the intervals that ended between `from_ms` and `to_ms`; none if there
    /// are too few.
    pub(crate) fn between(intervals: &[Interval], from_ms: u64, to_ms: u64) -> Option<Self> {
        let is_within = |interval: &&Interval| {
            let is_staying = interval.load.as_ref().is_some_and(|load| !load.is_leaving());
            is_staying && (from_ms..=to_ms).contains(&interval.at_ms)
        };
        let within: Vec<_> = intervals.iter().filter(is_within).collect();
        let (first, last) = (within.first()?, within.last()?);
        let seconds = (last.at_ms - first.at_ms) as f64 / 1000.0;
        if seconds <= 0.0 {
            return None;
        }
        let (before, after) = (first.load.as_ref()?, last.load.as_ref()?);
        let grown = |of: fn(&LoadCounters) -> u64| {
            of(&after.counters).saturating_sub(of(&before.counters)) as f64 / seconds
        };
        // The histograms of the first interval cover the time before the window.
        let measured = || within[1..].iter().copied();
        let join = latency(measured(), |load| load.latency(Operation::Join));
        let answer = latency(measured(), |load| load.latency(Operation::Push));
        let delivery = latency(measured(), |load| load.latency(Operation::Broadcast));
        let some = |count: u64, us: u64| (count > 0).then_some(us);
        Some(Self {
            connected: after.counters.connected,
            joins_per_second: grown(|counters| counters.joins_ok),
            due_per_second: grown(|counters| counters.turns_intended),
            said_per_second: grown(|counters| counters.pushes_ok),
            heard_per_second: grown(|counters| counters.messages_received),
            join_p99_us: some(join.count, join.p99),
            answer_p99_us: some(answer.count, answer.p99),
            delivery_p50_us: some(delivery.count, delivery.p50),
            delivery_p99_us: some(delivery.count, delivery.p99),
            server_cpu_us: server_cpu_per_message(&within),
        })
    }
}

/// Returns the server's CPU time per received message, between the first and the last interval in
/// which the server answered.
fn server_cpu_per_message(within: &[&Interval]) -> Option<f64> {
    let mut known = within.iter().filter_map(|interval| {
        let received = interval.load.as_ref()?.counters.messages_received;
        Some((server_cpu_us(interval)?, received))
    });
    let (cpu_before, received_before) = known.next()?;
    let (cpu, received) = known.next_back()?;
    let received = received.checked_sub(received_before).filter(|received| *received > 0)?;
    Some(cpu.saturating_sub(cpu_before) as f64 / received as f64)
}

#[cfg(test)]
mod tests {
    use throng_measure::LoadInterval;

    use super::*;
    use crate::experiment::tests::verdict;

    fn interval(second: u64, pushes_ok: u64, received: u64, delivery_us: u64) -> Interval {
        let mut load = LoadInterval::default();
        load.counters.pushes_ok = pushes_ok;
        load.counters.messages_received = received;
        load.times[Operation::Broadcast].record_us(delivery_us);
        Interval { at_ms: 1000 * second, span_ms: 1000, load: Some(load), ..Interval::default() }
    }

    #[test]
    fn intervals_before_the_window_do_not_count() {
        let run = [
            interval(1, 100, 9_000, 900_000),
            interval(2, 110, 9_500, 10),
            interval(3, 120, 10_000, 10),
            interval(4, 900, 90_000, 900_000),
        ];
        let window = MessageWindow::between(&run, 1_000, 3_000).unwrap();
        assert_eq!((window.said_per_second, window.heard_per_second), (10.0, 500.0));
        assert_eq!((window.delivery_p99_us, window.answer_p99_us), (Some(10), None));
        assert_eq!(MessageWindow::between(&run, 4_000, 9_000), None);
    }

    #[test]
    fn the_first_sentence_has_the_messages_sent_and_received() {
        let steady = MessageWindow {
            connected: 990,
            said_per_second: 60.0,
            heard_per_second: 3_000.0,
            delivery_p99_us: Some(4_000),
            ..MessageWindow::default()
        };
        let row = serde_json::json!({"rooms": 20, "finished": 300, "steady": steady});
        let sentences = verdict("simulated-chat", &row);
        assert!(
            sentences.contains("990 users in 20 rooms sent 60/s messages and received 3k/s"),
            "{sentences}"
        );
        assert!(sentences.contains("99 % of the deliveries within 4.00 ms"), "{sentences}");
        assert!(sentences.contains("300 users arrived, and each left as planned"), "{sentences}");
    }
}
