//! The server accepts fewer connections a second than arrive.

use throng_measure::{Endpoint, Evidence, Finding, Metric, Severity, Side};
use throng_report::render::{count, rate};

use super::{Rule, RuleTrait};
use crate::cpus::{CpuUse, lasting};
use crate::history::Sample;
use crate::run_view::RunView;
use crate::trend::Trend;

pub(super) const RULE: Rule = Rule::new("accepts_slowly", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::LacksCpu])
    .explains(&["accept_queue_overflow", "server_slow", "latency_grows", "server_at_capacity"]);

/// Looks for an accept queue that becomes longer in each interval. A server that accepts nothing,
/// or only as many as it serves, has a queue that stands. A busy server accepts late because it is
/// busy.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let queue = |sample| run.value(Endpoint::Server, sample, Metric::LISTENER_ACCEPT_QUEUE);
    let connects = |sample: &Sample| sample.load().map_or(0, |load| load.counters.tcp_connects());
    let arriving = while_they_arrive(run.samples(), connects);
    let waits: Vec<_> = arriving.iter().filter(|sample| queue(sample) > Some(0)).collect();
    let points: Vec<_> = waits
        .iter()
        .filter_map(|sample| Some((sample.interval.at_ms, queue(sample)? as f64)))
        .collect();
    let trend = Trend::of(&points).filter(Trend::is_steady_growth)?;
    let (first, last) = (waits.first()?, waits.last()?);
    let seconds = last.interval.at_ms.saturating_sub(first.interval.at_ms).max(1) as f64 / 1000.0;
    let arrived = connects(last).saturating_sub(connects(first)) as f64 / seconds;
    let is_busy = lasting(CpuUse::of(run, Endpoint::Server), |used| {
        used.server.is_some_and(|server| server.busiest.unwrap_or(0.0) > BUSY_MIN)
    });
    let accepted = arrived - trend.per_second;
    if trend.by() < QUEUE_MIN || accepted < arrived * ACCEPTED_SHARE_MIN || is_busy.is_some() {
        return None;
    }
    let text = format!(
        "The server accepted {} connections and {} arrived: its accept queue grew by {} a second, \
         to {} at {} s. It is not busy, so it waits for something between two calls of accept(): a \
         sleep, a lock, a handshake, a process that it starts.",
        rate(accepted),
        rate(arrived),
        count(trend.per_second.round()),
        count(trend.to),
        count(trend.to_ms as f64 / 1000.0)
    );
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_severity(Severity::Slowed)
        .with_confidence(0.8)
        .with_evidence([Evidence {
            counter: Metric::LISTENER_ACCEPT_QUEUE.to_string(),
            from: trend.from.round(),
            to: trend.to.round(),
            at_ms: trend.from_ms,
        }])
        .remedied_by(
            "accept until the queue is empty each time that the listener is ready, in a thread \
             that does nothing else, or in more than one",
        );
    Some(finding)
}

/// Returns the intervals until connections no longer arrive as fast as before: a queue that
/// no connection joins becomes shorter.
fn while_they_arrive(all: &[Sample], connects: impl Fn(&Sample) -> u64) -> &[Sample] {
    let new: Vec<u64> =
        all.windows(2).map(|pair| connects(&pair[1]).saturating_sub(connects(&pair[0]))).collect();
    let most = new.iter().copied().max().unwrap_or(0);
    let end = new.iter().rposition(|new| new * 2 >= most).map_or(0, |at| at + 2);
    &all[..end.min(all.len())]
}

/// The smallest growth of the queue.
const QUEUE_MIN: f64 = 20.0;

/// The share of the connections that the server accepts at least.
const ACCEPTED_SHARE_MIN: f64 = 0.1;

/// The load of a thread from which it has no time to accept.
const BUSY_MIN: f64 = 0.7;

#[cfg(test)]
mod tests {
    use throng_measure::ProcessMetric;

    use super::super::fixture::Run;
    use super::*;

    /// A run with 110 connects a second, and an accept queue of this length.
    fn queueing(length: impl Fn(u64) -> i64) -> Run {
        Run::quiet().loaded(|load, second| load.counters.connects_ok = 110 * second).changed(
            move |interval, second| {
                interval.kernel.set(Metric::LISTENER_ACCEPT_QUEUE, length(second));
                interval.kernel.set(ProcessMetric::CPU_US.server, 10_000 * second as i64);
            },
        )
    }

    #[test]
    fn a_queue_that_grows_steadily_is_told_with_both_rates() {
        let found = queueing(|second| 68 * second as i64).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server accepted 42/s connections and 110/s arrived: its accept queue grew by 68 a \
             second, to 680 at 10 s"
        );
    }

    #[test]
    fn a_queue_that_becomes_shorter_when_no_more_arrive_is_told_too() {
        let length = |second: u64| 68 * second.min(6) as i64 - 42 * second.saturating_sub(6) as i64;
        let run =
            queueing(length).loaded(|load, second| load.counters.connects_ok = 110 * second.min(6));
        let found = run.speaks(&RULE);
        assert!(
            found.text.starts_with("The server accepted 42/s connections and 110/s"),
            "{found}"
        );
    }

    #[test]
    fn a_web_socket_arrives_before_its_upgrade_is_answered() {
        let run = queueing(|second| 68 * second as i64).loaded(|load, second| {
            load.counters.upgrades_started = 110 * second;
            load.counters.connects_ok = 42 * second;
        });
        let found = run.speaks(&RULE);
        assert!(found.text.contains("accepted 42/s connections and 110/s arrived"), "{found}");
    }

    #[test]
    fn a_queue_that_stands_a_burst_and_a_busy_server_are_none() {
        queueing(|_| 40).is_silent(&RULE);
        queueing(|second| if second < 3 { 400 } else { 0 }).is_silent(&RULE);
        // Nothing is accepted.
        queueing(|second| 110 * second as i64).is_silent(&RULE);
        let busy = ProcessMetric::BUSIEST_THREAD_PERMILLE.server;
        queueing(|second| 68 * second as i64).with(busy, 950).is_silent(&RULE);
    }
}
